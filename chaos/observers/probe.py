"""A probe of a user's endpoint: what a client would have seen, through the whole run.

Whatever a client would suffer too counts against the endpoint: a refused or silent connection, a bad certificate, a
bad status, a name that does not exist. What keeps only nodefall from asking is a blind window: no network of its
own, a resolver that does not answer, an API server that does not pass the question on.
"""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from chaos.model.duration import parse_duration
from chaos.model.experiment import Probe, ServiceReference
from chaos.model.ports import Clock, Sink
from chaos.model.recording import Line, ProbeAnswer
from chaos.observers.api import ClusterApi, KubeUnreachable
from chaos.observers.health import ApiHealth
from chaos.observers.sight import Sight
from chaos.observers.unreachable import causes, explain
from chaos.observers.wire import UNDECODABLE
from chaos.observers.worker import Worker

_GOOD = range(200, 400)  # as the kubelet's own HTTP probes
_NO_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
_OURS = (
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
)
_SEND = "send"
Ask = Callable[[], int | None]  # the HTTP status, None where there is none


class NotSent(Exception):
    """Nothing can be said of the endpoint."""


class NoGood(Exception):
    """A client would have got no answer."""


class ProbeObserver:
    """Asks again every ``probe.every``, or as soon as the answer before is there."""

    def __init__(self, probe: Probe, ask: Ask, clock: Clock) -> None:
        self.name = f"probe {probe.name}"
        self._probe, self._ask, self._clock = probe.name, ask, clock
        self._every, self._timeout = parse_duration(probe.every), parse_duration(probe.timeout)
        self._sight = Sight(f"probe@{probe.name}", clock, self._emit)
        self._worker = Worker(self.name, clock, self._run, self._crashed)
        self._sink: Sink | None = None
        self._asked = False

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def synced(self) -> bool:
        return self._asked

    def _emit(self, line: Line) -> None:
        if self._sink and not self._worker.stopping:
            self._sink(line)

    def _crashed(self, reason: str) -> None:
        self._sight.lost(_SEND, self._clock.now(), reason)

    def _run(self) -> None:
        while not self._worker.stopping:
            began = self._clock.now()
            self._look(began)
            self._asked = True
            self._worker.pause(max(0.0, began + self._every - self._clock.now()))

    def _look(self, began: float) -> None:
        status, error = None, ""
        try:
            status = self._ask()
        except NotSent as reason:
            self._sight.lost(_SEND, began, str(reason))
            return
        except NoGood as reason:
            error = str(reason)
        took = self._clock.now() - began
        if not error and status is not None and status not in _GOOD:
            error = f"HTTP {status}"
        elif not error and took > self._timeout:
            error = f"it took {took:.1f}s"
        answer = ProbeAnswer(not error, status, error, round(took, 3))
        self._sight.regained(_SEND)
        self._emit(Line(self._clock.now(), "probe", self._probe, msgspec.Raw(msgspec.json.encode(answer))))


def observer(probe: Probe, api: ClusterApi, health: ApiHealth, namespace: str, clock: Clock) -> ProbeObserver:
    """The observer of one probe; ``namespace`` is the workload's."""
    timeout = parse_duration(probe.timeout)
    if probe.http:
        return ProbeObserver(probe, http(probe.http, timeout), clock)
    if probe.tcp:
        return ProbeObserver(probe, tcp(probe.tcp, timeout), clock)
    assert probe.service  # noqa: S101 - the model has exactly one of three
    return ProbeObserver(probe, service(probe.service, api, health, namespace, timeout), clock)


def http(url: str, timeout: float) -> Ask:
    """GET over a connection of its own each time; redirects are answers. ``timeout`` in wall seconds."""
    from urllib3 import PoolManager, Timeout
    from urllib3.exceptions import HTTPError

    where = url.partition("?")[0]  # a query may hold what is nobody's business
    pool = PoolManager(cert_reqs="CERT_REQUIRED", headers={"Connection": "close", "User-Agent": "nodefall"})

    def ask() -> int:
        try:
            response: Any = pool.request(
                "GET", url, timeout=Timeout(total=timeout), retries=False, redirect=False, preload_content=False
            )
        except (HTTPError, OSError) as error:
            raise _told(error, where) from error
        response.close()
        return int(response.status)

    return ask


def tcp(endpoint: str, timeout: float) -> Ask:
    """Connect and hang up. ``timeout`` in wall seconds."""
    host, _, port = endpoint.rpartition(":")
    address = host.removeprefix("[").removesuffix("]"), int(port)

    def ask() -> None:
        try:
            socket.create_connection(address, timeout).close()
        except OSError as error:
            raise _told(error, endpoint) from error

    return ask


def service(wanted: ServiceReference, api: ClusterApi, health: ApiHealth, namespace: str, timeout: float) -> Ask:
    """Through the API server's proxy: what it says itself about its user or its load says nothing of the Service."""
    where = namespace if wanted.namespace == "workload" else wanted.namespace
    path = f"/api/v1/namespaces/{where}/services/{wanted.proxied}/proxy{wanted.path}"

    def ask() -> int:
        if health.reason:
            raise NotSent(health.reason)
        try:
            response = api.request("GET", path, timeout=timeout)
        except KubeUnreachable as error:
            if not error.sent or health.reason:
                raise NotSent(error.message) from error
            raise NoGood(error.message) from error  # the server is well: it waits for the Service
        said = _status_of(response.body) if response.status >= 400 else ""
        if said and response.status in (401, 403, 429):
            raise NotSent(f"{path}: {response.status} {said}")
        if said:
            raise NoGood(said)
        return response.status

    return ask


def _status_of(body: bytes) -> str:
    """The message of a Kubernetes Status; "" for an answer of the Service's own."""
    try:
        found = msgspec.json.decode(body)
    except UNDECODABLE:
        return ""
    if not isinstance(found, dict) or found.get("kind") != "Status":
        return ""
    return str(found.get("message") or found.get("reason"))


def _told(error: Exception, where: str) -> NotSent | NoGood:
    """Whose fault it is."""
    message = explain(error, where).message
    for cause in causes(error):
        if isinstance(cause, socket.gaierror):
            return NoGood(message) if cause.errno in _NO_NAME else NotSent(f"{message}: {cause.strerror}")
        if isinstance(cause, OSError) and cause.errno in _OURS:
            return NotSent(message)
    return NoGood(message)
