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

from chaos.model.command import MERGE_PATCH
from chaos.model.errors import Aborted, NodefallError, Refused
from chaos.model.marks import LOCK, RUN
from chaos.model.ports import KubeApi, Response
from chaos.store.lease import (
    ABORT,
    MACHINE,
    RENEW,
    Answer,
    Record,
    Tenure,
    Watched,
    body,
    decide,
    parse,
    watch,
)
from chaos.transports.kube_answer import decoded, words

LOOK = 1.0  # seconds between two looks at the Lease: somebody may ask the run to stop
_TRIES = 3
_LOST = "what this run did is undone; see nodefall status"
_CONFLICT = 409  # changed meanwhile, or created by somebody else


@dataclass(frozen=True, slots=True)
class Identity:
    """Who holds it: ``holder`` is unlike any other process's; ``about`` are annotations for those who look."""

    holder: str
    about: Mapping[str, str]


@dataclass
class ClusterLock:
    """``wall`` tells the time since the epoch, for people. ``told`` is called when somebody asks the holder to stop."""

    kube: KubeApi
    namespace: str
    identity: Identity
    wall: Callable[[], float]
    told: Callable[[str], None] = lambda _: None
    _tenure: Tenure | None = None
    _lost: str = ""
    _silent: str = ""  # why it could not be renewed
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def acquire(self, note: Callable[[str], object], *, patient: bool = False) -> None:
        """Take it, and begin to renew it. Raises Refused, naming the holder, where somebody lives on it.

        A holder that does not renew is watched for the whole duration of its lock before it counts as dead; one that
        ran on this machine is dead for sure, as its lock file is ours. Who is ``patient`` watches also one that has
        renewed just now.
        """
        watched: Watched | None = None
        while not self._take(watched):
            record, now = self._read(), time.monotonic()
            if record is None or not record.holder:
                continue
            if watched is None:
                if not patient and record.seems_alive(self.wall()):
                    raise _held(record)
                note(f"waiting up to {record.duration:.0f}s for the lock of {record.holder}, unless it renews it")
            elif watched.version != record.version:
                raise _held(record)
            watched = watch(record, watched, now)
            self._over.wait(LOOK)
        self._thread = threading.Thread(target=self._keep, name="cluster lock", daemon=True)
        self._thread.start()

    def _take(self, watched: Watched | None) -> bool:
        begun = time.monotonic()
        record, here = self._read(), self.identity.about.get(MACHINE)
        dead = bool(record and here and record.annotations.get(MACHINE) == here)
        return decide(record, watched, begun, dead=dead) is Answer.TAKE and self._write(record, begun)

    def check(self) -> None:
        """The last thing before a deed. Raises Aborted unless nobody else can have the lock."""
        if not self._may_act() and not self.renew():
            raise Aborted(f"the cluster's lock could not be renewed: {self._silent}")
        if self._lost:
            raise Aborted(self._lost, hint=_LOST)

    def renew(self) -> bool:
        """Whether the API server says that it is ours, and has renewed it. Raises Aborted where it says another's."""
        with self._gate:
            try:
                renewed = any(self._renewed() for _ in range(_TRIES))
                self._silent = "" if renewed else "somebody writes to it all the time"
            except NodefallError as error:
                renewed, self._silent = False, error.message
        if self._lost:
            raise Aborted(self._lost, hint=_LOST)
        return renewed

    def _may_act(self) -> bool:
        return self._tenure is not None and self._tenure.may_act(time.monotonic())

    def _renewed(self) -> bool:
        """False where somebody else wrote to it meanwhile."""
        begun = time.monotonic()
        record = self._read()
        if self._tenure is None or not self._tenure.still_mine(record):
            self._lost = _taken(record)
            return True
        return self._write(record, begun)

    def release(self) -> None:
        """Give it up; never raises: a lock that nobody renews ends by itself."""
        self._over.set()
        if self._thread:
            self._thread.join()
        with suppress(NodefallError):
            record = self._read()
            if record and self._tenure and self._tenure.still_mine(record):
                preconditions = {"resourceVersion": record.version}
                self.kube.request("DELETE", self._path, body={"kind": "DeleteOptions", "preconditions": preconditions})

    @property
    def fence(self) -> int:
        """The fencing number, 0 before the lock was taken."""
        return self._tenure.fence if self._tenure else 0

    @property
    def _path(self) -> str:
        return f"{_collection(self.namespace)}/{LOCK}"

    def _read(self) -> Record | None:
        return read_lock(self.kube, self.namespace)

    def _write(self, over: Record | None, begun: float) -> bool:
        """Only over what was read; False where somebody else was quicker."""
        mine = self._tenure is not None and self._tenure.still_mine(over)
        fence = self._tenure.fence if mine and self._tenure else (over.fence if over else 0) + 1
        about = {**(over.annotations if mine and over else {}), **self.identity.about}
        lease = body(self.namespace, self.identity.holder, fence, self.wall(), about, over.version if over else "")
        if over is None:
            response = self.kube.request("POST", _collection(self.namespace), body=lease)
        else:
            response = self.kube.request("PUT", self._path, body=lease)
        if response.status in {_CONFLICT, 404}:
            return False
        _good(response, "written")
        self._tenure = Tenure(self.identity.holder, fence, begun)
        return True

    def _keep(self) -> None:
        """Renew until it is over; what cannot be renewed now is tried again, as nobody may act meanwhile."""
        renewed = time.monotonic()
        while not self._over.wait(LOOK):
            try:
                self._look()
                if time.monotonic() - renewed >= RENEW and self.renew():
                    renewed = time.monotonic()
            except NodefallError:
                continue  # check() tells, before the next deed

    def _look(self) -> None:
        record = self._read()
        if record and record.abort and self._tenure and self._tenure.still_mine(record):
            self.told(record.abort)


def read_lock(kube: KubeApi, namespace: str) -> Record | None:
    """The cluster's lock, None if nobody ever took it. Raises NodefallError."""
    response = kube.request("GET", f"{_collection(namespace)}/{LOCK}")
    return None if response.status == 404 else parse(_good(response, "read"))


def ask_to_stop(kube: KubeApi, namespace: str, why: str) -> None:
    """Annotate the lock; its holder looks every second. Raises NodefallError."""
    patch = {"metadata": {"annotations": {ABORT: why}}}
    path = f"{_collection(namespace)}/{LOCK}"
    _good(kube.request("PATCH", path, body=patch, content_type=MERGE_PATCH), "annotated")


def _collection(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _good(response: Response, what: str) -> dict[str, Any]:
    if response.status == 403:
        raise Refused(
            f"the cluster's lock may not be {what}: {words(response)}",
            hint="nodefall rbac prints the rights that it needs",
        )
    if response.status >= 300:
        raise NodefallError(f"the cluster's lock could not be {what}: {response.status}: {words(response)}")
    return dict(decoded(response))


def _held(record: Record) -> Refused:
    run = record.annotations.get(RUN)
    return Refused(
        f"{record.holder} is at work on this cluster{f' (run {run})' if run else ''}",
        hint="let it end; nodefall status shows it, nodefall abort stops it",
    )


def _taken(record: Record | None) -> str:
    if record is None:
        return "somebody removed the cluster's lock"
    return f"{record.holder or 'somebody'} has taken the cluster's lock"
