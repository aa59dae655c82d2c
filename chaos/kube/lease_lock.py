"""Holding the cluster's lock: a Lease that a thread of ours renews, looked at again before each deed.

In wall time, also where the cluster's time is another: it keeps away people and other machines, not simulated ones.
"""

from __future__ import annotations

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

POLL_PERIOD = 1.0  # seconds between two looks at the Lease: somebody may ask the run to stop
_TRIES = 3
_LOST_HINT = "what this run did is undone; see nodefall status"
_CONFLICT = 409  # changed meanwhile, or created by somebody else


@dataclass(frozen=True, slots=True)
class Identity:
    """Who holds it: ``holder`` is unlike any other process's; ``about`` are annotations for those who look."""

    holder: str
    annotations: Mapping[str, str]


@dataclass
class ClusterLock:
    """``wall`` tells the time since the epoch, for people. ``told`` is called when somebody asks the holder to stop."""

    kube: KubeApi
    namespace: str
    identity: Identity
    wall_clock: Callable[[], float]
    on_abort: Callable[[str], None] = lambda _: None
    _leadership: Leadership | None = None
    _loss_reason: str = ""
    _renew_error: str = ""  # why it could not be renewed
    _renew_mutex: threading.Lock = field(default_factory=threading.Lock)
    _stop_event: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def acquire(self, note: Callable[[str], object], *, wait_for_live: bool = False) -> None:
        """Take it, and begin to renew it. Raises Refused, naming the holder, where somebody lives on it.

        A holder that does not renew is watched for the whole duration of its lock before it counts as dead; one that
        ran on this machine is dead for sure, as its lock file is ours. Who is ``patient`` watches also one that has
        renewed just now.
        """
        watched: ObservedLease | None = None
        while not self._try_acquire(watched):
            record, now = self._read(), time.monotonic()
            if record is None or not record.holder:
                continue
            if watched is None:
                if not wait_for_live and record.is_recent(self.wall_clock()):
                    raise _in_use_error(record)
                note(f"waiting up to {record.duration:.0f}s for the lock of {record.holder}, unless it renews it")
            elif watched.version != record.version:
                raise _in_use_error(record)
            watched = observe(record, watched, now)
            self._stop_event.wait(POLL_PERIOD)
        self._thread = threading.Thread(target=self._renew_loop, name="cluster lock", daemon=True)
        self._thread.start()

    def _try_acquire(self, watched: ObservedLease | None) -> bool:
        begun = time.monotonic()
        record, here = self._read(), self.identity.annotations.get(MACHINE)
        dead = bool(record and here and record.annotations.get(MACHINE) == here)
        return decide(record, watched, begun, holder_dead=dead) is Decision.ACQUIRE and self._write(record, begun)

    def check(self) -> None:
        """The last thing before a deed. Raises Aborted unless nobody else can have the lock."""
        if not self._is_valid() and not self.renew():
            raise Aborted(f"the cluster's lock could not be renewed: {self._renew_error}")
        if self._loss_reason:
            raise Aborted(self._loss_reason, hint=_LOST_HINT)

    def renew(self) -> bool:
        """Whether the API server says that it is ours, and has renewed it. Raises Aborted where it says another's."""
        with self._renew_mutex:
            try:
                renewed = any(self._try_renew() for _ in range(_TRIES))
                self._renew_error = "" if renewed else "somebody writes to it all the time"
            except NodefallError as error:
                renewed, self._renew_error = False, error.message
        if self._loss_reason:
            raise Aborted(self._loss_reason, hint=_LOST_HINT)
        return renewed

    def _is_valid(self) -> bool:
        return self._leadership is not None and self._leadership.is_valid(time.monotonic())

    def _try_renew(self) -> bool:
        """False where somebody else wrote to it meanwhile."""
        begun = time.monotonic()
        record = self._read()
        if self._leadership is None or not self._leadership.is_held(record):
            self._loss_reason = _describe_loss(record)
            return True
        return self._write(record, begun)

    def release(self) -> None:
        """Give it up; never raises: a lock that nobody renews ends by itself."""
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
        """The fencing number, 0 before the lock was taken."""
        return self._leadership.fence if self._leadership else 0

    @property
    def _path(self) -> str:
        return f"{_collection(self.namespace)}/{LOCK_NAME}"

    def _read(self) -> LeaseRecord | None:
        return read_lock(self.kube, self.namespace)

    def _write(self, over: LeaseRecord | None, begun: float) -> bool:
        """Only over what was read; False where somebody else was quicker."""
        mine = self._leadership is not None and self._leadership.is_held(over)
        fence = self._leadership.fence if mine and self._leadership else (over.fence if over else 0) + 1
        about = {**(over.annotations if mine and over else {}), **self.identity.annotations}
        lease = lease_body(
            self.namespace, self.identity.holder, fence, self.wall_clock(), about, over.version if over else ""
        )
        if over is None:
            response = self.kube.request("POST", _collection(self.namespace), body=lease)
        else:
            response = self.kube.request("PUT", self._path, body=lease)
        if response.status in {_CONFLICT, 404}:
            return False
        _decode_success(response, "written")
        self._leadership = Leadership(self.identity.holder, fence, begun)
        return True

    def _renew_loop(self) -> None:
        """Renew until it is over; what cannot be renewed now is tried again, as nobody may act meanwhile."""
        renewed = time.monotonic()
        while not self._stop_event.wait(POLL_PERIOD):
            try:
                self._check_abort()
                if time.monotonic() - renewed >= RETRY_PERIOD and self.renew():
                    renewed = time.monotonic()
            except NodefallError:
                continue  # check() tells, before the next deed

    def _check_abort(self) -> None:
        record = self._read()
        if record and record.abort and self._leadership and self._leadership.is_held(record):
            self.on_abort(record.abort)


def read_lock(kube: KubeApi, namespace: str) -> LeaseRecord | None:
    """The cluster's lock, None if nobody ever took it. Raises NodefallError."""
    response = kube.request("GET", f"{_collection(namespace)}/{LOCK_NAME}")
    return None if response.status == 404 else parse(_decode_success(response, "read"))


def request_abort(kube: KubeApi, namespace: str, why: str) -> None:
    """Annotate the lock; its holder looks every second. Raises NodefallError."""
    patch = {"metadata": {"annotations": {ABORT: why}}}
    path = f"{_collection(namespace)}/{LOCK_NAME}"
    _decode_success(kube.request("PATCH", path, body=patch, content_type=MERGE_PATCH), "annotated")


def _collection(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _decode_success(response: Response, what: str) -> dict[str, Any]:
    if response.status == 403:
        raise Refused(
            f"the cluster's lock may not be {what}: {status_message(response)}",
            hint="nodefall rbac prints the rights that it needs",
        )
    if response.status >= 300:
        raise NodefallError(f"the cluster's lock could not be {what}: {response.status}: {status_message(response)}")
    return dict(decode_body(response))


def _in_use_error(record: LeaseRecord) -> Refused:
    run = record.annotations.get(RUN_LABEL)
    return Refused(
        f"{record.holder} is at work on this cluster{f' (run {run})' if run else ''}",
        hint="let it end; nodefall status shows it, nodefall abort stops it",
    )


def _describe_loss(record: LeaseRecord | None) -> str:
    if record is None:
        return "somebody removed the cluster's lock"
    return f"{record.holder or 'somebody'} has taken the cluster's lock"
