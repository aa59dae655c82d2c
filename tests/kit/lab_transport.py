"""A transport to a lab in this process, below the API client: its connection pools, of which every request is a call.

The client is the product's own, with its watches, time-outs and errors; only sockets are missing. Time-outs are in
simulated time, in which a thread that waits for an answer lets the others have their turn.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from email.utils import formatdate
from urllib.parse import urlsplit

from multidict import CIMultiDict
from urllib3 import Timeout
from urllib3.exceptions import NewConnectionError, ProtocolError, ReadTimeoutError

from chaos.cluster.access import Access
from chaos.cluster.client import ApiClient
from chaos.cluster.kubeconfig import UserEntry
from chaos.cluster.pools import Pool
from chaos.lab.facade import Answer, DirectLab, Task
from chaos.rehearsal.kube import CONTROLLERS, DirectKube
from chaos.rehearsal.turns import Turns
from tests.kit.disturbance import DisturbancePlan


def lab_client(lab: DirectLab, turns: Turns, plan: DisturbancePlan | None = None) -> ApiClient:
    """The API client of a lab, whose watches are as ``plan`` has it."""
    client = ApiClient(lambda: Access(DirectKube.server, user=UserEntry(token=lab.token)))
    pools = client._pools
    assert pools
    pools.api = pools.kubelet = pools.component = Pool(LabPool(lab, turns, plan))
    return client


class LabPool:
    """Stands in for urllib3's PoolManager, as chaos.cluster uses it."""

    def __init__(self, lab: DirectLab, turns: Turns, plan: DisturbancePlan | None) -> None:
        self.lab, self.turns, self.plan = lab, turns, plan

    def request(
        self, method: str, url: str, *, body: bytes | None, headers: Mapping[str, str], timeout: Timeout, **_: object
    ) -> LabResponse | WatchResponse:
        target, seconds = url.removeprefix(DirectKube.server), timeout.read_timeout
        assert isinstance(seconds, float)
        headers = CIMultiDict(headers)
        if "watch=true" in url:
            watch = WatchResponse(self, target, headers)
            return watch if watch.is_open else self._answer(watch.task, url, seconds)
        return self._answer(self._send(method, url, target, headers, body or b""), url, seconds)

    def clear(self) -> None:
        """No-op: there are no connections."""

    def _send(self, method: str, url: str, target: str, headers: Mapping[str, str], body: bytes) -> Task[Answer]:
        parts = urlsplit(url)
        if url.startswith(DirectKube.server):
            content_type = headers.get("Content-Type", "application/json")
            return self.lab.request(method, target, headers, body=body, content_type=content_type)
        if url.startswith(CONTROLLERS):
            return self.lab.read_controllers(parts.path, headers)
        task = self.lab.read_kubelet(str(parts.hostname), parts.port or 0, parts.path, headers)
        if task is None:
            raise NewConnectionError(self, "refused") from ConnectionRefusedError()  # type: ignore[arg-type]
        return task

    def _answer(self, task: Task[Answer], url: str, seconds: float) -> LabResponse:
        if not task.done:
            self.turns.block(self.lab.sim.now + seconds, lambda end: task.add_done_callback(lambda _: end()))
        if not task.done:
            task.cancel()
            raise ReadTimeoutError(self, url, "no answer")  # type: ignore[arg-type]
        return LabResponse(task.result(), formatdate(self.lab.sim.now, usegmt=True))


class LabResponse:
    """A response whose body has come."""

    def __init__(self, answer: Answer, date: str) -> None:
        self.status, self._body = answer.status, answer.body
        self.headers = {**answer.headers, "Date": date}
        self.connection = None  # urllib3's, to which it was returned with the body

    def stream(self, _: int) -> Iterator[bytes]:
        yield self._body

    def release_conn(self) -> None: ...

    def close(self) -> None: ...


class WatchResponse:
    """The response of a watch, read as it comes. It is its own connection."""

    status = 200

    def __init__(self, pool: LabPool, target: str, headers: Mapping[str, str]) -> None:
        self._pool, self._path = pool, target.partition("?")[0]
        self._ready: deque[bytes] = deque()
        self._waiting = 0  # pieces that are due later
        self._has_ended = self._is_cut = self._is_closed = False
        self._end_wait: Callable[[], None] = lambda: None
        self.sock = _Socket()
        self.connection = self
        self.task = pool.lab.watch(target, headers, self)

    @property
    def is_open(self) -> bool:
        """Whether the watch was accepted; else its task has the refusal."""
        return self._has_ended or not self.task.done

    def receive(self, data: bytes) -> None:
        """Deliver a piece as the plan has it. Of the lab's port."""
        if self._pool.plan is None:
            self._deliver(data, counts=False)
            return
        sim, line = self._pool.lab.sim, data.rstrip(b"\n")
        for due in self._pool.plan.schedule(self._path, line):
            self._waiting += 1
            if due <= sim.now:
                self._deliver(data)
            else:
                sim.at(due, self._deliver, data)

    def end(self, *, is_cut: bool) -> None:
        """Of the lab's port."""
        self._has_ended, self._is_cut = True, is_cut
        self._end_wait()

    def stream(self, _: int) -> Iterator[bytes]:
        while not self._is_closed:
            if self._ready:
                pieces, self._ready = b"".join(self._ready), deque()
                yield pieces
            elif self._has_ended and not self._waiting:
                if self._is_cut:
                    raise ProtocolError("Connection broken", ConnectionResetError())
                return
            else:
                self._wait()

    def shutdown(self) -> None:
        """End the response, whoever reads it."""
        self._is_closed = True
        self.task.cancel()
        self._end_wait()

    close = shutdown

    def _wait(self) -> None:
        """Wait until something has come."""

        def register(end: Callable[[], None]) -> None:
            self._end_wait = end

        until = self._pool.lab.sim.now + self.sock.timeout
        self._pool.turns.block(until, register)
        if not (self._ready or self._has_ended or self._is_closed):
            raise ReadTimeoutError(self._pool, self._path, "nothing came")  # type: ignore[arg-type]

    def _deliver(self, data: bytes, *, counts: bool = True) -> None:
        self._waiting -= counts
        if self._is_closed:
            return
        if self._pool.plan:
            self._pool.plan.note_delivery(self._path, data.rstrip(b"\n"), self._pool.lab.sim.now)
        self._ready.append(data)
        self._end_wait()


class _Socket:
    """The socket of a watch: its time-out, and a descriptor on which nothing comes."""

    _quiet, _other_end = socket.socketpair()
    timeout = 0.0

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds

    def fileno(self) -> int:
        return self._quiet.fileno()
