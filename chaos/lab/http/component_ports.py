"""Ports of the components: kubelet and kube-controller-manager.

What the port of a kubelet answers: ``/metrics``, ``/configz``, ``/pods`` and ``/healthz``, to authorized users.
Metrics of kube-controller-manager. Facts 4.
Sources: pkg/controller/nodelifecycle/metrics.go, tainteviction/metrics, podgc/metrics, volume/attachdetach/metrics, and
k8s.io/component-base/metrics/prometheus/clientgo/leaderelection. Labelled metrics exist from their first count.
The port of kube-controller-manager: ``/metrics`` for authorized users, ``/healthz`` for all.
Users are those of the API, as with TokenReview and SubjectAccessReview of the real one.
cmd/kube-controller-manager/app/controllermanager.go; k8s.io/controller-manager/app/serve.go, BuildHandlerChain.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from functools import partial

from aiohttp import web

from chaos.lab.controllers import Controllers
from chaos.lab.http.access import Access, Attributes
from chaos.lab.http.errors import ApiError
from chaos.lab.http.messages import Handle, Handler, Request, json_response
from chaos.lab.node.kubelet.metrics import family
from chaos.lab.node.machine import Machine
from chaos.lab.sim.lockstep import Lockstep, Waits
from chaos.lab.sim.time_source import Listener, PortReservation

_SUBRESOURCES = {  # of nodes; permission for one of them is enough; pkg/kubelet/server/auth.go
    "/metrics": ("metrics",),
    "/pods": ("pods", "proxy"),
    "/healthz": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
}


class KubeletEndpoints:
    """The handlers of one kubelet."""

    def __init__(self, machine: Machine, access: Access) -> None:
        self._machine, self._access = machine, access

    @property
    def is_responsive(self) -> bool:
        """False for a process stopped by SIGSTOP, or behind a firewall."""
        return not self._machine.kubelet.is_frozen and self._machine.is_kubelet_port_open

    def routes(self) -> list[web.RouteDef]:
        """Handlers by path; they are called through :meth:`respond`."""
        return [
            web.get("/healthz", self._healthz),
            web.get("/metrics", self._metrics),
            web.get("/configz", self._configz),
            web.get("/pods", self._pods),
        ]

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse:
        """Authorize a request and handle it."""
        try:
            user = self._access.authenticate(request.headers.get("Authorization", ""))
            if user.is_anonymous:
                return web.Response(status=401, text="Unauthorized")
            subresources = _SUBRESOURCES.get(request.path, ("proxy",))
            if not any(user.is_allowed(self._attributes(name)) for name in subresources):
                names = " ".join(subresources)
                text = f"Forbidden (user={user.name}, verb=get, resource=nodes, subresource(s)=[{names}])\n"
                return web.Response(status=403, text=text)
            return await handle()
        except ApiError:
            return web.Response(status=401, text="Unauthorized")

    def _attributes(self, subresource: str) -> Attributes:
        return Attributes("get", "", f"nodes/{subresource}", "", self._machine.name)

    async def _healthz(self, _: Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: Request) -> web.Response:
        text = self._machine.kubelet.metrics_text().encode()
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _configz(self, _: Request) -> web.Response:
        return json_response(self._machine.kubelet.configz())

    async def _pods(self, _: Request) -> web.Response:
        return json_response(
            {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self._machine.kubelet.pods()}
        )


class KubeletServer:
    """Server that listens on ``port`` while the kubelet of ``machine`` runs."""

    def __init__(
        self, machine: Machine, port: PortReservation, lockstep: Lockstep, tls: ssl.SSLContext, access: Access
    ) -> None:
        self._machine, self._port, self._lockstep, self._tls = machine, port, lockstep, tls
        self._endpoints = KubeletEndpoints(machine, access)
        self._responsive = asyncio.Event()
        self._runner = web.AppRunner(self._app(), access_log=None)

    async def start(self) -> None:
        await self._runner.setup()
        self._machine.on_change.append(self._on_machine_change)
        self._on_machine_change(self._machine)
        await self._port.wait_started()

    async def stop(self) -> None:
        self._port.close()
        await self._runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_routes(self._endpoints.routes())
        return app

    def _on_machine_change(self, machine: Machine) -> None:
        if self._endpoints.is_responsive:
            self._responsive.set()
        else:
            self._responsive.clear()
        if machine.kubelet.is_running:
            self._port.start_listening(self._listen, self._lockstep)
            return
        self._port.stop_listening()
        for connection in self._runner.server.connections if self._runner.server else ():
            if connection.transport:
                connection.transport.abort()

    async def _listen(self, sock: socket.socket) -> Listener:
        assert self._runner.server is not None  # noqa: S101 - set up in start
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._runner.server, sock=sock, ssl=self._tls)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # a process stopped by SIGSTOP, or behind a firewall, does not respond; simulated time continues
        await self._responsive.wait()
        with self._lockstep.request():
            return await self._endpoints.respond(request, partial(handler, request))


def format_metrics(controllers: Controllers) -> str:
    """Format the metrics of the only instance, which is the leader."""
    lifecycle, pod_gc = controllers.node_lifecycle, controllers.pod_gc
    evictions, zones = lifecycle.evictions.items(), lifecycle.zones.items()
    forced = {f'{{reason="{reason}"}}': n for reason, n in sorted(controllers.attach_detach.forced_detaches.items())}
    health = {
        _zone(zone): 100 * ready / (ready + not_ready) if ready + not_ready else 100
        for zone, (ready, not_ready) in zones
    }
    lines = [
        *family("attach_detach_controller_attachdetach_controller_forced_detaches", "counter", forced),
        *family("leader_election_master_status", "gauge", {'{name="kube-controller-manager"}': 1}),
        *family("node_collector_evictions_total", "counter", {_zone(zone): n for zone, n in evictions}),
        *family("node_collector_unhealthy_nodes_in_zone", "gauge", {_zone(zone): n for zone, (_, n) in zones}),
        *family("node_collector_zone_health", "gauge", health),
        *family("node_collector_zone_size", "gauge", {_zone(zone): sum(counts) for zone, counts in zones}),
        *family("pod_gc_collector_force_delete_pod_errors_total", "counter", _by_reason(pod_gc.errors)),
        *family("pod_gc_collector_force_delete_pods_total", "counter", _by_reason(pod_gc.deletions)),
        *family("taint_eviction_controller_pod_deletions_total", "counter", {"": controllers.taint_eviction.deletions}),
    ]
    return "\n".join(lines) + "\n"


def _zone(key: str) -> str:
    return f'{{zone="{key}"}}'


def _by_reason(counts: Counter[tuple[str, str]]) -> dict[str, float]:
    return {f'{{namespace="{namespace}",reason="{reason}"}}': n for (namespace, reason), n in sorted(counts.items())}


class ControllerManagerServer:
    """HTTP server of the only instance, which is the leader."""

    def __init__(self, controllers: Controllers, lockstep: Waits, access: Access) -> None:
        self._controllers, self._lockstep, self._access = controllers, lockstep, access

    def app(self) -> web.Application:
        """Create the application."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        """Handlers by path; they are called through :meth:`respond`."""
        return [web.get("/healthz", self._healthz), web.get("/metrics", self._metrics)]

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return await self.respond(request, partial(handler, request))

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse:
        """Authorize a request and handle it; errors become responses."""
        with self._lockstep.request():
            try:
                user = self._access.authenticate(request.headers.get("Authorization", ""))
                self._access.authorize(user, Attributes(request.method.lower(), path=request.path))
                return await handle()
            except ApiError as error:
                return json_response(error.status(), error.code, error.headers())

    async def _healthz(self, _: Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: Request) -> web.Response:
        body = format_metrics(self._controllers).encode()
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
