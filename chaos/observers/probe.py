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

from chaos.kube.client import ApiClient
from chaos.kube.errors import KubeUnreachable, causes, from_exception
from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.duration import parse_duration
from chaos.model.experiment import Probe, ServiceReference
from chaos.model.ports import Clock, Sink
from chaos.model.recording import ProbeResult, RecordingEntry
from chaos.observers.blind_windows import BlindWindowTracker
from chaos.observers.health import ApiHealth
from chaos.observers.observer_thread import ObserverThread

_SUCCESS_STATUSES = range(200, 400)  # as the kubelet's own HTTP probes
_NAME_NOT_FOUND = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
_LOCAL_ERRNOS = (
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
)
_SEND = "send"
ProbeFunc = Callable[[], int | None]  # the HTTP status, None where there is none


class ProbeNotSent(Exception):
    """Nothing can be said of the endpoint."""


class ProbeFailed(Exception):
    """A client would have got no answer."""


class ProbeObserver:
    """Asks again every ``probe.every``, or as soon as the answer before is there."""

    def __init__(self, probe: Probe, ask: ProbeFunc, clock: Clock) -> None:
        self.name = f"probe {probe.name}"
        self._probe_name, self._probe_func, self._clock = probe.name, ask, clock
        self._period, self._timeout = parse_duration(probe.every), parse_duration(probe.timeout)
        self._blind_windows = BlindWindowTracker(f"probe@{probe.name}", clock, self._emit)
        self._thread = ObserverThread(self.name, clock, self._run, self._on_crash)
        self._sink: Sink | None = None
        self._has_probed = False

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def has_synced(self) -> bool:
        return self._has_probed

    def _emit(self, line: RecordingEntry) -> None:
        if self._sink and not self._thread.is_stopping:
            self._sink(line)

    def _on_crash(self, reason: str) -> None:
        self._blind_windows.open(_SEND, self._clock.now(), reason)

    def _run(self) -> None:
        while not self._thread.is_stopping:
            began = self._clock.now()
            self._probe_once(began)
            self._has_probed = True
            self._thread.pause(max(0.0, began + self._period - self._clock.now()))

    def _probe_once(self, began: float) -> None:
        status, error = None, ""
        try:
            status = self._probe_func()
        except ProbeNotSent as reason:
            self._blind_windows.open(_SEND, began, str(reason))
            return
        except ProbeFailed as reason:
            error = str(reason)
        took = self._clock.now() - began
        if not error and status is not None and status not in _SUCCESS_STATUSES:
            error = f"HTTP {status}"
        elif not error and took > self._timeout:
            error = f"it took {took:.1f}s"
        answer = ProbeResult(not error, status, error, round(took, 3))
        self._blind_windows.close(_SEND)
        self._emit(
            RecordingEntry(self._clock.now(), "probe", self._probe_name, msgspec.Raw(msgspec.json.encode(answer)))
        )


def build_probe_observer(
    probe: Probe, api: ApiClient, health: ApiHealth, namespace: str, clock: Clock
) -> ProbeObserver:
    """The observer of one probe; ``namespace`` is the workload's."""
    timeout = parse_duration(probe.timeout)
    if probe.http:
        return ProbeObserver(probe, http_probe(probe.http, timeout), clock)
    if probe.tcp:
        return ProbeObserver(probe, tcp_probe(probe.tcp, timeout), clock)
    assert probe.service  # noqa: S101 - the model has exactly one of three
    return ProbeObserver(probe, service_probe(probe.service, api, health, namespace, timeout), clock)


def http_probe(url: str, timeout: float) -> ProbeFunc:
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
            raise _classify(error, where) from error
        response.close()
        return int(response.status)

    return ask


def tcp_probe(endpoint: str, timeout: float) -> ProbeFunc:
    """Connect and hang up. ``timeout`` in wall seconds."""
    host, _, port = endpoint.rpartition(":")
    address = host.removeprefix("[").removesuffix("]"), int(port)

    def ask() -> None:
        try:
            socket.create_connection(address, timeout).close()
        except OSError as error:
            raise _classify(error, endpoint) from error

    return ask


def service_probe(
    wanted: ServiceReference, api: ApiClient, health: ApiHealth, namespace: str, timeout: float
) -> ProbeFunc:
    """Through the API server's proxy: what it says itself about its user or its load says nothing of the Service."""
    where = namespace if wanted.namespace == "workload" else wanted.namespace
    path = f"/api/v1/namespaces/{where}/services/{wanted.proxy_name}/proxy{wanted.path}"

    def ask() -> int:
        if health.reason:
            raise ProbeNotSent(health.reason)
        try:
            response = api.request("GET", path, timeout=timeout)
        except KubeUnreachable as error:
            if not error.sent or health.reason:
                raise ProbeNotSent(error.message) from error
            raise ProbeFailed(error.message) from error  # the server is well: it waits for the Service
        said = _status_message(response.body) if response.status >= 400 else ""
        if said and response.status in (401, 403, 429):
            raise ProbeNotSent(f"{path}: {response.status} {said}")
        if said:
            raise ProbeFailed(said)
        return response.status

    return ask


def _status_message(body: bytes) -> str:
    """The message of a Kubernetes Status; "" for an answer of the Service's own."""
    try:
        found = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return ""
    if not isinstance(found, dict) or found.get("kind") != "Status":
        return ""
    return str(found.get("message") or found.get("reason"))


def _classify(error: Exception, where: str) -> ProbeNotSent | ProbeFailed:
    """Whose fault it is."""
    message = from_exception(error, where).message
    for cause in causes(error):
        if isinstance(cause, socket.gaierror):
            return (
                ProbeFailed(message) if cause.errno in _NAME_NOT_FOUND else ProbeNotSent(f"{message}: {cause.strerror}")
            )
        if isinstance(cause, OSError) and cause.errno in _LOCAL_ERRNOS:
            return ProbeNotSent(message)
    return ProbeFailed(message)
