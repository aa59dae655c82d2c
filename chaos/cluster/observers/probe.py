"""Probe of a user's endpoint: what a client would have observed during the run.

What any client would suffer counts against the endpoint: a refused or silent connection, a bad certificate, a bad
status, a name that does not exist. What affects only nodefall is a blind window: no network here, a resolver that does
not respond, an API server that does not proxy the request, a process or machine that stood still.
"""

# ruff: noqa: PLC0415 - urllib3 is slow to import
from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from chaos.cluster.api import ClusterApi
from chaos.cluster.errors import KubeUnreachable, causes, from_exception
from chaos.cluster.observers.base import ThreadedObserver
from chaos.cluster.observers.plugin import ObserverContext, ServerHealth
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_path import resource_path
from chaos.core.duration import parse_duration
from chaos.core.ports import Clock
from chaos.core.probes import Probe, ServiceReference
from chaos.core.recording import EntryKind, ProbeResult, RecordingEntry

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
_OVERDUE = 5.0  # seconds by which a probe is over at most after its time-out, unless this process did not run
ProbeFunc = Callable[[], int | None]  # the HTTP status, None where there is none


class ProbeNotSent(Exception):
    """The probe was not sent: no finding about the endpoint."""


class ProbeFailed(Exception):
    """A client would have got no response."""


class ProbeObserver(ThreadedObserver):
    """Probes every ``probe.every``, or as soon as the previous probe is over."""

    def __init__(self, probe: Probe, probe_func: ProbeFunc, clock: Clock) -> None:
        super().__init__(f"probe {probe.name}", f"probe@{probe.name}", clock)
        self._probe_name, self._probe_func = probe.name, probe_func
        self._period, self._timeout = parse_duration(probe.every), parse_duration(probe.timeout)

    def _run(self) -> None:
        while not self._thread.is_stopping:
            began = self._clock.now()
            self._probe_once(began)
            self._has_synced = True
            self._thread.pause(max(0.0, began + self._period - self._clock.now()))

    def _probe_once(self, began: float) -> None:
        status, error = None, ""
        try:
            status = self._probe_func()
        except ProbeNotSent as reason:
            self._blind_windows.open(self.cause, began, str(reason))
            return
        except ProbeFailed as reason:
            error = str(reason)
        took = self._clock.now() - began
        if took > self._timeout + _OVERDUE:  # the endpoint may have answered at once
            why = f"a probe took {took:.1f} s, longer than its timeout of {self._timeout:g} s: nodefall stalled"
            self._blind_windows.open(self.cause, began, why)
            return
        if not error and status is not None and status not in _SUCCESS_STATUSES:
            error = f"HTTP {status}"
        elif not error and took > self._timeout:
            error = f"it took {took:.1f} s"
        result = msgspec.Raw(msgspec.json.encode(ProbeResult(not error, status, error, round(took, 3))))
        self._blind_windows.close(self.cause)
        self._emit(RecordingEntry(self._clock.now(), EntryKind.PROBE, self._probe_name, result))


def build_probe_observer(
    probe: Probe, api: ClusterApi, health: ServerHealth, namespace: str, clock: Clock
) -> ProbeObserver:
    """The observer for a probe. ``namespace`` is the namespace of the workload."""
    timeout = parse_duration(probe.timeout)
    if probe.http:
        return ProbeObserver(probe, http_probe(probe.http, timeout), clock)
    if probe.tcp:
        return ProbeObserver(probe, tcp_probe(probe.tcp, timeout), clock)
    assert probe.service  # noqa: S101 - the model has exactly one of three
    return ProbeObserver(probe, service_probe(probe.service, api, health, namespace, timeout), clock)


def http_probe(url: str, timeout: float) -> ProbeFunc:
    """GET over a new connection each time; redirects are not followed. ``timeout`` in wall seconds."""
    from urllib3 import PoolManager, Timeout
    from urllib3.exceptions import HTTPError

    where = url.partition("?")[0]  # the query may contain a secret
    pool = PoolManager(cert_reqs="CERT_REQUIRED", headers={"Connection": "close", "User-Agent": "nodefall"})

    def probe() -> int:
        try:
            response: Any = pool.request(
                "GET", url, timeout=Timeout(total=timeout), retries=False, redirect=False, preload_content=False
            )
        except (HTTPError, OSError) as error:
            raise _classify(error, where) from error
        response.close()
        return int(response.status)

    return probe


def tcp_probe(endpoint: str, timeout: float) -> ProbeFunc:
    """Connect and disconnect. ``timeout`` in wall seconds."""
    host, _, port = endpoint.rpartition(":")
    address = host.removeprefix("[").removesuffix("]"), int(port)

    def probe() -> None:
        try:
            socket.create_connection(address, timeout).close()
        except OSError as error:
            raise _classify(error, endpoint) from error

    return probe


def service_probe(
    reference: ServiceReference, api: ClusterApi, health: ServerHealth, namespace: str, timeout: float
) -> ProbeFunc:
    """GET through the API server's proxy. A rejection by the API server itself is no finding about the Service."""
    where = namespace if reference.namespace == "workload" else reference.namespace
    path = f"{resource_path('v1', 'services', where, reference.proxy_name, 'proxy')}{reference.path}"

    def probe() -> int:
        if health.reason:
            raise ProbeNotSent(health.reason)
        try:
            response = api.request("GET", path, timeout=timeout)
        except KubeUnreachable as error:
            if not error.sent or health.reason:
                raise ProbeNotSent(error.message) from error
            raise ProbeFailed(error.message) from error  # the server is healthy: it waits for the Service
        message = _status_message(response.body) if response.status >= 400 else ""
        if message and response.status in (401, 403, 429):
            raise ProbeNotSent(f"{path}: {response.status} {message}")
        if message:
            raise ProbeFailed(message)
        return response.status

    return probe


def _status_message(body: bytes) -> str:
    """The message of a Kubernetes Status; "" if the response is the Service's."""
    try:
        found = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return ""
    if not isinstance(found, dict) or found.get("kind") != "Status":
        return ""
    return str(found.get("message") or found.get("reason"))


def _classify(error: Exception, where: str) -> ProbeNotSent | ProbeFailed:
    """The failure of the endpoint, or of nodefall's side."""
    message = from_exception(error, where).message
    for cause in causes(error):
        if isinstance(cause, socket.gaierror):
            return (
                ProbeFailed(message) if cause.errno in _NAME_NOT_FOUND else ProbeNotSent(f"{message}: {cause.strerror}")
            )
        if isinstance(cause, OSError) and cause.errno in _LOCAL_ERRNOS:
            return ProbeNotSent(message)
    return ProbeFailed(message)


class ProbePlugin:
    name = "probes"

    def build(self, context: ObserverContext) -> list[ProbeObserver]:
        health, namespace = context.cluster.health, context.plan.namespace
        return [
            build_probe_observer(probe, context.api, health, namespace, context.clock)
            for probe in context.experiment.spec.probes
        ]


OBSERVER = ProbePlugin()
