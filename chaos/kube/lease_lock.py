"""The cluster's lock: a Lease renewed by a background thread and re-checked before each operation.

In wall time, even where the cluster's time is another: the lock keeps away people and machines, not simulated ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chaos.kube.lease import (
    ABORT,
    MACHINE,
    RETRY_PERIOD,
    Decision,
    Leadership,
    LeaseRecord,
    ObservedLease,
    decide,
    lease_body,
    observe,
    parse,
)
from chaos.kube.response import decode_body, status_message
from chaos.model.command import MERGE_PATCH
from chaos.model.errors import Aborted, NodefallError, Refused
from chaos.model.labels import LOCK_NAME, RUN_LABEL
from chaos.model.ports import KubeApi, Response
from chaos.model.threads import ContextThread

POLL_PERIOD = 1.0  # seconds between two reads of the Lease, for a request to abort
_TRIES = 3
_LOST_HINT = "see nodefall status; the effects of this run have been undone"
_CONFLICT = 409  # changed meanwhile, or created by another process
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Holder of the lock: ``holder`` is unique to this process; ``annotations`` describe it to people."""

    holder: str
    annotations: Mapping[str, str]


@dataclass
class ClusterLock:
    """One run at a time on a cluster.

    ``wall_clock`` returns seconds since the epoch. ``on_abort`` is called, in the lock's thread, with the reason when
    the holder is requested to stop, and ``on_crash`` with the exception that ended that thread.
    """

    kube: KubeApi
    namespace: str
    identity: Identity
    wall_clock: Callable[[], float]
    on_abort: Callable[[str], None] = lambda _: None
    on_crash: Callable[[BaseException], None] = lambda _: None
    _leadership: Leadership | None = None
    _loss_reason: str = ""
    _renew_error: str = ""  # of the last renewal
    _renew_mutex: threading.Lock = field(default_factory=threading.Lock)
    _stop_event: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def acquire(self, note: Callable[[str], object], *, wait_for_live: bool = False) -> None:
        """Acquire the lock and begin to renew it. Raises Refused, naming the holder, if the holder is alive.

        A holder that does not renew counts as dead after the whole duration of its lock. One that ran on this machine
        is dead for certain, as this process has its lock file. ``wait_for_live``: wait that long even for a holder that
        has renewed just now.
        """
        observed: ObservedLease | None = None
        while not self._try_acquire(observed):
            record, now = self._read(), time.monotonic()
            if record is None or not record.holder:
                continue
            if observed is None:
                if not wait_for_live and record.is_recent(self.wall_clock()):
                    raise _in_use_error(record)
                note(f"waiting up to {record.duration:.0f} s for the lock of {record.holder}, unless it renews it")
            elif observed.version != record.version:
                raise _in_use_error(record)
            observed = observe(record, observed, now)
            self._stop_event.wait(POLL_PERIOD)
        self._thread = ContextThread(self._run, "cluster lock")
        self._thread.start()

    def _try_acquire(self, observed: ObservedLease | None) -> bool:
        begun = time.monotonic()
        record, here = self._read(), self.identity.annotations.get(MACHINE)
        dead = bool(record and here and record.annotations.get(MACHINE) == here)
        return decide(record, observed, begun, holder_dead=dead) is Decision.ACQUIRE and self._write(record, begun)

    def check(self) -> None:
        """The last check before an operation. Raises Aborted if another process may hold the lock."""
        if not self._is_valid() and not self.renew():
            raise Aborted(f"the cluster's lock could not be renewed: {self._renew_error}")
        if self._loss_reason:
            raise Aborted(self._loss_reason, hint=_LOST_HINT)

    def renew(self) -> bool:
        """Renew the lock; False if the API server did not confirm that. Raises Aborted if another process holds it."""
        with self._renew_mutex:
            try:
                renewed = any(self._try_renew() for _ in range(_TRIES))
                self._renew_error = "" if renewed else "another process keeps changing the Lease"
            except NodefallError as error:
                renewed, self._renew_error = False, error.message
        if self._loss_reason:
            raise Aborted(self._loss_reason, hint=_LOST_HINT)
        return renewed

    def _is_valid(self) -> bool:
        return self._leadership is not None and self._leadership.is_valid(time.monotonic())

    def _try_renew(self) -> bool:
        """False if the Lease was changed meanwhile."""
        begun = time.monotonic()
        record = self._read()
        if self._leadership is None or not self._leadership.is_held(record):
            self._loss_reason = _describe_loss(record)
            return True
        return self._write(record, begun)

    def release(self) -> None:
        """Delete the Lease. Never raises: a lock that is not renewed expires."""
        self._stop_event.set()
        if self._thread:
            self._thread.join()
        with suppress(NodefallError):
            record = self._read()
            if record and self._leadership and self._leadership.is_held(record):
                preconditions = {"resourceVersion": record.version}
                self.kube.request("DELETE", self._path, body={"kind": "DeleteOptions", "preconditions": preconditions})

    @property
    def fence(self) -> int:
        """The fencing number; 0 before the lock is acquired."""
        return self._leadership.fence if self._leadership else 0

    @property
    def _path(self) -> str:
        return f"{_collection(self.namespace)}/{LOCK_NAME}"

    def _read(self) -> LeaseRecord | None:
        return read_lock(self.kube, self.namespace)

    def _write(self, over: LeaseRecord | None, begun: float) -> bool:
        """Write the Lease over exactly the record that was read; False if another process was quicker."""
        is_held = self._leadership is not None and self._leadership.is_held(over)
        fence = self._leadership.fence if is_held and self._leadership else (over.fence if over else 0) + 1
        annotations = {**(over.annotations if is_held and over else {}), **self.identity.annotations}
        version = over.version if over else ""
        lease = lease_body(self.namespace, self.identity.holder, fence, self.wall_clock(), annotations, version)
        if over is None:
            response = self.kube.request("POST", _collection(self.namespace), body=lease)
        else:
            response = self.kube.request("PUT", self._path, body=lease)
        if response.status in {_CONFLICT, 404}:
            return False
        _decode_success(response, "written")
        self._leadership = Leadership(self.identity.holder, fence, begun)
        return True

    def _run(self) -> None:
        try:
            self._renew_loop()
        except Exception as error:  # noqa: BLE001 - a lock that silently stops being renewed must end the run
            _log.exception("thread %s crashed", threading.current_thread().name)
            self.on_crash(error)

    def _renew_loop(self) -> None:
        """Renew until released. A failed renewal is tried again; check() raises before the next operation."""
        renewed = time.monotonic()
        while not self._stop_event.wait(POLL_PERIOD):
            try:
                self._check_abort()
                if time.monotonic() - renewed >= RETRY_PERIOD and self.renew():
                    renewed = time.monotonic()
            except NodefallError as error:
                _log.debug("the cluster's lock was not renewed: %s", error.message)

    def _check_abort(self) -> None:
        record = self._read()
        if record and record.abort and self._leadership and self._leadership.is_held(record):
            self.on_abort(record.abort)


def read_lock(kube: KubeApi, namespace: str) -> LeaseRecord | None:
    """The cluster's lock; None if there is none. Raises NodefallError."""
    response = kube.request("GET", f"{_collection(namespace)}/{LOCK_NAME}")
    return None if response.status == 404 else parse(_decode_success(response, "read"))


def request_abort(kube: KubeApi, namespace: str, why: str) -> None:
    """Annotate the lock; its holder reads the annotation within ``POLL_PERIOD``. Raises NodefallError."""
    patch = {"metadata": {"annotations": {ABORT: why}}}
    path = f"{_collection(namespace)}/{LOCK_NAME}"
    _decode_success(kube.request("PATCH", path, body=patch, content_type=MERGE_PATCH), "annotated")


def _collection(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _decode_success(response: Response, operation: str) -> dict[str, Any]:
    if response.status == 403:
        raise Refused(
            f"the cluster's lock cannot be {operation}: {status_message(response)}",
            hint="grant the permissions that nodefall rbac prints",
        )
    if response.status >= 300:
        message = status_message(response)
        raise NodefallError(f"the cluster's lock cannot be {operation}: {response.status}: {message}")
    return dict(decode_body(response))


def _in_use_error(record: LeaseRecord) -> Refused:
    run = record.annotations.get(RUN_LABEL)
    return Refused(
        f"cluster in use by {record.holder}{f' (run {run})' if run else ''}",
        hint="wait for its end; nodefall status shows it, nodefall abort stops it",
    )


def _describe_loss(record: LeaseRecord | None) -> str:
    if record is None:
        return "the cluster's lock was deleted"
    return f"the cluster's lock was taken by {record.holder or 'another process'}"
