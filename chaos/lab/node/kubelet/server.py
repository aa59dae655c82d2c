"""Server of the kubelet, while the kubelet runs."""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import partial

from aiohttp import web

from chaos.lab.apiserver.http.access import Access
from chaos.lab.apiserver.http.messages import Handler
from chaos.lab.node.kubelet.endpoints import KubeletEndpoints
from chaos.lab.node.machine import Machine
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.sim.ports import Listener, PortReservation


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
