"""Server of the kubelet: ``/metrics``, ``/configz``, ``/pods`` and ``/healthz``, while the kubelet runs."""

from __future__ import annotations

import asyncio
import socket
import ssl

from aiohttp import web

from chaos.lab.apiserver.http.access import Access, Attributes
from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Handler, json_response
from chaos.lab.node.machine import Machine
from chaos.lab.server.port_reservation import Listener, PortReservation
from chaos.lab.sim.lockstep import Lockstep

_SUBRESOURCES = {  # of nodes; permission for one of them is enough; pkg/kubelet/server/auth.go
    "/metrics": ("metrics",),
    "/pods": ("pods", "proxy"),
    "/healthz": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
}


class KubeletServer:
    """Server that listens on ``port`` while the kubelet of ``machine`` runs."""

    def __init__(
        self, machine: Machine, port: PortReservation, lockstep: Lockstep, tls: ssl.SSLContext, access: Access
    ) -> None:
        self._machine, self._port, self._lockstep, self._tls, self._access = machine, port, lockstep, tls, access
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
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/configz", self._configz)
        app.router.add_get("/pods", self._pods)
        return app

    def _on_machine_change(self, machine: Machine) -> None:
        if machine.kubelet.is_frozen or not machine.is_kubelet_port_open:
            self._responsive.clear()
        else:
            self._responsive.set()
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
            try:
                user = self._access.authenticate(request.headers.get("Authorization", ""))
                if user.is_anonymous:
                    return web.Response(status=401, text="Unauthorized")
                subresources = _SUBRESOURCES.get(request.path, ("proxy",))
                if not any(user.is_allowed(self._attributes(name)) for name in subresources):
                    names = " ".join(subresources)
                    text = f"Forbidden (user={user.name}, verb=get, resource=nodes, subresource(s)=[{names}])\n"
                    return web.Response(status=403, text=text)
                return await handler(request)
            except ApiError:
                return web.Response(status=401, text="Unauthorized")

    def _attributes(self, subresource: str) -> Attributes:
        return Attributes("get", "", f"nodes/{subresource}", "", self._machine.name)

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: web.Request) -> web.Response:
        text = self._machine.kubelet.metrics_text().encode()
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _configz(self, _: web.Request) -> web.Response:
        return json_response(self._machine.kubelet.configz())

    async def _pods(self, _: web.Request) -> web.Response:
        return json_response(
            {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self._machine.kubelet.pods()}
        )
