"""The cluster's lock: a Lease renewed by a background thread and re-checked before each operation.

In wall time, even where the cluster's time is another: the lock keeps away people and machines, not simulated ones.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from chaos.cluster.lease import (
    RENEW_DEADLINE,
    RETRY_PERIOD,
    Decision,
    Leadership,
    LeaseRecord,
    ObservedLease,
    decide,
    delete_lock,
    describe_loss,
    lease_body,
    next_fence,
    observe,
    read_lock,
    write_lock,
)
from chaos.core.clock.system import uptime
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.labels import LOCK_NAME, RUN_LABEL
from chaos.core.ports import KubeApi
from chaos.core.store.process_lock import decode_identity, is_gone
from chaos.core.threads import ContextThread

POLL_PERIOD = 1.0  # seconds between two reads of the Lease, for its loss and a request to abort
REGAIN_TIMEOUT = 300.0  # seconds that a run with a pending undo waits for a lock that it has lost
_TRIES = 3
_LOST_HINT = "see nodefall status"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Holder of the lock: ``holder`` is unique to this process; ``annotations`` describe it to people."""

    holder: str
    annotations: Mapping[str, str]


@dataclass
class ClusterLock:
    """One run at a time on a cluster; with another ``name``, one process at a time that works on a game day.

    ``wall_clock`` returns seconds since the epoch. ``ended``: holders that have ended on this machine. The thread of
    the lock calls ``on_abort`` with the reason when the holder is requested to stop, ``on_loss`` when another process
    has taken or deleted the lock, and ``on_crash`` with the exception that ended that thread. A lock that was lost once
    permits no further operation, but ``regain`` acquires it again for the undo.
    """

    kube: KubeApi
    namespace: str
    identity: Identity
    wall_clock: Callable[[], float]
    on_abort: Callable[[str], None] = lambda _: None
    on_crash: Callable[[BaseException], None] = lambda _: None
    on_loss: Callable[[str], None] = lambda _: None
    ended: Collection[str] = ()
    name: str = LOCK_NAME
    loss: str = ""  # why the lock was lost first; stays when it is acquired again
    _leadership: Leadership | None = None
    _missing: str = ""  # why the lock is not held now
    _renew_error: str = ""  # of the last renewal
    _tried_at: float = -math.inf  # when the last renewal was tried
    _mutex: threading.RLock = field(default_factory=threading.RLock)
    _stop_event: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def acquire(self, note: Callable[[str], object], *, wait_for_live: bool = False) -> None:
        """Acquire the lock and begin to renew it. Raises Refused, naming the holder, if the holder is alive.

        A holder that does not renew counts as dead after the whole duration of its lock, and at once if its process
        has provably ended. ``wait_for_live``: wait that long even for a holder that has renewed just now.
        """
        observed: ObservedLease | None = None
        while not self._try_acquire(observed):
            record, now = self._read(), uptime()
            if record is None or not record.holder or self._is_dead(record):
                continue
            if observed is None:
                if not wait_for_live and record.is_surely_recent(self.wall_clock()):
                    raise _in_use_error(record)
                note(f"waiting up to {record.duration:.0f} s for the lock of {record.holder}, unless it renews it")
            elif observed.version != record.version:
                raise _in_use_error(record)
            observed = observe(record, observed, now)
            self._stop_event.wait(POLL_PERIOD)
        self._thread = ContextThread(self._run, "cluster lock")
        self._thread.start()

    def _try_acquire(self, observed: ObservedLease | None) -> bool:
        begun = uptime()
        record = self._read()
        dead = record is not None and self._is_dead(record)
        return decide(record, observed, begun, holder_dead=dead) is Decision.ACQUIRE and self._write(record, begun)

    def _is_dead(self, record: LeaseRecord) -> bool:
        """Whether the holder's process has provably ended, or is this one: its request was done, its answer lost.

        By two proofs: in a clone of the holder's machine its process is missing, too.
        """
        if record.holder == self.identity.holder:
            return True
        process = decode_identity(record.process)
        return record.holder in self.ended and process is not None and is_gone(process)

    def check(self) -> None:
        """The last check before an operation. Raises Aborted if another process may hold the lock."""
        if not self._is_valid() and not self.renew():
            raise Aborted(f"the cluster's lock could not be renewed: {self._renew_error}")
        self._require_no_loss()

    def renew(self) -> bool:
        """Renew the lock; False if the API server did not confirm that. Raises Aborted if the lock was ever lost."""
        self._require_no_loss()
        renewed = self._renew()
        self._require_no_loss()
        return renewed

    def blocked(self) -> str:
        """Why nothing may be undone now: another process may be doing so; "" if none is known to hold the lock.

        A process that was stopped asks first. An API server that does not answer is no reason: an undo must not wait
        for a control plane that it is to bring back.
        """
        now = uptime()
        if not self._missing and not self._is_valid() and now - self._tried_at >= RENEW_DEADLINE:
            self._renew()
        return self._missing

    def regain(self, pause: Callable[[], object]) -> str:
        """Acquire a lost lock again, so that this run can undo. Returns why that failed, or "".

        By the rules of every other process: only once the new holder has released it, has ended or has not renewed it
        for its whole duration. ``pause`` is called after each attempt.
        """
        begun = uptime()
        observed: ObservedLease | None = None
        while self._missing:
            try:
                with self._mutex:
                    if self._try_acquire(observed):
                        self._missing = ""
                        break
                if record := self._read():
                    observed = observe(record, observed, uptime())
                    self._missing = describe_loss(record)
            except NodefallError as error:
                _log.debug("the cluster's lock was not acquired again: %s", error.message)
            if uptime() - begun > REGAIN_TIMEOUT:
                break
            self._stop_event.wait(POLL_PERIOD)
            pause()
        return self._missing

    def release(self) -> bool:
        """Delete the Lease. Returns whether another process finds it free. Never raises, because an unrenewed Lease
        expires.
        """
        self._stop_event.set()
        if self._thread:
            self._thread.join()
        with suppress(NodefallError):
            record = self._read()
            if record and record.holder == self.identity.holder:
                return delete_lock(self.kube, self.namespace, record, self.name)
            return True
        return False

    @property
    def fence(self) -> int:
        """The fencing number; 0 before the lock is acquired."""
        return self._leadership.fence if self._leadership else 0

    def _require_no_loss(self) -> None:
        if self.loss:
            raise Aborted(self.loss, hint=_LOST_HINT)

    def _is_valid(self) -> bool:
        return self._leadership is not None and self._leadership.is_valid(uptime())

    def _read(self) -> LeaseRecord | None:
        return read_lock(self.kube, self.namespace, self.name)

    def _write(self, over: LeaseRecord | None, begun: float) -> bool:
        """Write the Lease over exactly the record that was read; False if another process was quicker."""
        is_held = self._leadership is not None and self._leadership.is_held(over)
        fence = next_fence(over, self._leadership)
        annotations = {**(over.annotations if is_held and over else {}), **self.identity.annotations}
        version = over.version if over else ""
        lease = lease_body(
            self.namespace, self.identity.holder, fence, self.wall_clock(), annotations, version, self.name
        )
        if not write_lock(self.kube, self.namespace, over, lease):
            return False
        self._leadership = Leadership(self.identity.holder, fence, begun)
        return True

    def _renew(self) -> bool:
        with self._mutex:
            self._tried_at = uptime()
            try:
                renewed = any(self._try_renew() for _ in range(_TRIES))
                self._renew_error = "" if renewed else "another process keeps changing the Lease"
            except NodefallError as error:
                renewed, self._renew_error = False, error.message
        return renewed and not self._missing

    def _try_renew(self) -> bool:
        """False if the Lease was changed meanwhile."""
        begun = uptime()
        record = self._read()
        if self._leadership is None or not self._leadership.is_held(record):
            self._lose(record)
            return True
        return self._write(record, begun)

    def _lose(self, record: LeaseRecord | None) -> None:
        """Requires the mutex."""
        self._missing = describe_loss(record)
        if not self.loss:
            self.loss = self._missing
        self.on_loss(self._missing)

    def _run(self) -> None:
        try:
            self._renew_loop()
        except Exception as error:  # noqa: BLE001 - a lock that silently stops being renewed must end the run
            _log.exception("thread %s crashed", threading.current_thread().name)
            self.on_crash(error)

    def _renew_loop(self) -> None:
        """Renew until released. A failed renewal is tried again; check() raises before the next operation."""
        renewed = uptime()
        while not self._stop_event.wait(POLL_PERIOD):
            try:
                self._poll()
                if uptime() - renewed >= RETRY_PERIOD and not self._missing and self._renew():
                    renewed = uptime()
            except NodefallError as error:
                _log.debug("the cluster's lock was not renewed: %s", error.message)

    def _poll(self) -> None:
        """Notice between two renewals that the lock was lost, or that its holder is requested to stop."""
        before = self._leadership
        record = self._read()
        with self._mutex:
            if self._missing or before is None or before is not self._leadership:
                return  # renewed or acquired meanwhile: the record may be older than that
            if not before.is_held(record):
                self._lose(record)
        if record and record.abort and not self._missing:
            self.on_abort(record.abort)


def _in_use_error(record: LeaseRecord) -> Refused:
    run = record.annotations.get(RUN_LABEL)
    return Refused(
        f"cluster in use by {record.holder}{f' (run {run})' if run else ''}",
        hint="wait for its end; nodefall status shows it, nodefall abort stops it",
    )
