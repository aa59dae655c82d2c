"""WinRM's listeners of one machine: HTTP with message encryption and HTTPS, while its service runs."""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
import re
import socket
import ssl
from collections.abc import Iterable

from aiohttp import web
from spnego.exceptions import SpnegoError

from chaos.lab.node.machine import Machine
from chaos.lab.server.port_reservation import Listener, PortReservation
from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import WinRmMisbehaviour
from chaos.lab.windows.machine import WINRM, WindowsMachine
from chaos.lab.winrm.authentication import CONTENT_TYPE, PROTOCOL, Account, Logins, NegotiateContext, SealError
from chaos.lab.winrm.service import Client, WsmanService
from chaos.lab.winshell.inbound_gate import InboundGate
from chaos.lab.winshell.process import WinHost
from chaos.lab.winshell.programs import PROGRAMS

_SERVER = "Microsoft-HTTPAPI/2.0"
_SOAP = "application/soap+xml;charset=UTF-8"
_MAX_BODY = 512_000  # MaxEnvelopeSizekb
_NEGOTIATE = re.compile(r"(?:Negotiate|NTLM)\s+(\S+)", re.IGNORECASE)


class WinRmServer:
    """WinRM of ``machine`` with one account. ``http`` answers only encrypted bodies, as AllowUnencrypted is false."""

    def __init__(
        self,
        machine: WindowsMachine,
        ports: tuple[PortReservation, PortReservation],
        lockstep: Lockstep,
        sim: SimClock,
        tls: ssl.SSLContext,
        account: Account,
        misbehaviours: Iterable[WinRmMisbehaviour] = (),
    ) -> None:
        self._machine, self._lockstep = machine, lockstep
        self.http, self.https = ports
        self._gates = (InboundGate(machine, self.http), InboundGate(machine, self.https))
        self._tls, self._logins = tls, Logins(account)
        self.service = WsmanService(WinHost(machine, sim, lockstep, PROGRAMS), misbehaviours)
        self._is_serving = self._has_served = self._was_off = False
        app = web.Application(client_max_size=2 * _MAX_BODY)
        app.router.add_post("/wsman", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True)

    @property
    def machine(self) -> WindowsMachine:
        return self._machine

    async def start(self) -> None:
        await self._runner.setup()
        self._machine.on_change.append(self._on_machine_change)
        self._on_machine_change(self._machine)
        for port in (self.http, self.https):
            await port.wait_started()

    async def stop(self) -> None:
        self.service.stop()
        for port in (self.http, self.https):
            port.close()
        await self._runner.cleanup()

    def _on_machine_change(self, machine: Machine) -> None:
        assert isinstance(machine, WindowsMachine)  # noqa: S101 - the only one it listens to
        for gate in self._gates:
            gate.update()
        if machine.services.get(WINRM).is_running:
            if not self._is_serving:
                self.service.fault_injector.on_start(after_boot=self._has_served and self._was_off)
            self._is_serving, self._has_served, self._was_off = True, True, False
            self.http.start_listening(functools.partial(self._listen, None), self._lockstep)
            self.https.start_listening(functools.partial(self._listen, self._tls), self._lockstep)
            return
        self._is_serving = False
        self._was_off = self._was_off or not machine.is_up
        self.http.stop_listening()
        self.https.stop_listening()
        self.service.stop()
        for connection in self._runner.server.connections if self._runner.server else ():
            if connection.transport:
                connection.transport.abort()

    async def _listen(self, tls: ssl.SSLContext | None, sock: socket.socket) -> Listener:
        assert self._runner.server is not None  # noqa: S101 - set up in start
        return await asyncio.get_running_loop().create_server(self._runner.server, sock=sock, ssl=tls)

    async def _handle(self, request: web.Request) -> web.Response:
        gate = self._gates[request.secure]
        await gate.wait()
        await self.service.fault_injector.wait_awake()
        response = await self._respond(request)
        await gate.wait()
        return response

    async def _respond(self, request: web.Request) -> web.Response:
        with self._lockstep.request():
            transport = request.transport
            if transport is None:
                return web.Response(status=400)
            context, token = self._logins.of(transport), b""
            authorization = request.headers.get("Authorization", "")
            is_basic = self._is_basic(request, authorization)
            if not is_basic and (match := _NEGOTIATE.fullmatch(authorization)):
                try:
                    context, token = self._logins.step(transport, base64.b64decode(match[1], validate=True))
                except (SpnegoError, binascii.Error, ValueError):
                    return _unauthorized()
                if not context.is_complete:
                    return _unauthorized(token)
            elif not is_basic and context is None:
                return _unauthorized()
            response = await self._answer(request, None if is_basic else context)
            if token:
                response.headers["WWW-Authenticate"] = f"Negotiate {base64.b64encode(token).decode()}"
            return response

    def _is_basic(self, request: web.Request, authorization: str) -> bool:
        """Whether the request has valid Basic credentials; over HTTP they are refused."""
        kind, _, credentials = authorization.partition(" ")
        allowed = request.secure and self.service.config.basic and kind.lower() == "basic"
        return allowed and self._logins.account.is_basic(credentials)

    async def _answer(self, request: web.Request, context: NegotiateContext | None) -> web.Response:
        body = await request.read()
        sealed = PROTOCOL in request.headers.get("Content-Type", "")
        if not body and context is not None:
            return web.Response(headers={"Server": _SERVER})  # the login alone
        if sealed and context is not None:
            try:
                body = context.unseal(body)
            except SealError:
                return web.Response(status=400, headers={"Server": _SERVER})
        elif not request.secure:
            return _unauthorized()  # AllowUnencrypted is false: also for the right password
        address = request.remote or ""
        client = Client(self._logins.account.user, address, (request.url.host or "").lower())
        status, text = await self.service.handle(body, client)
        if sealed and context is not None:
            data, kind = context.seal(text.encode()), CONTENT_TYPE
        else:
            data, kind = text.encode(), _SOAP
        return web.Response(status=status, body=data, headers={"Content-Type": kind, "Server": _SERVER})


def _unauthorized(token: bytes = b"") -> web.Response:
    """401. No recording: the order of the two lines, and the realm."""
    response = web.Response(status=401, headers={"Server": _SERVER})
    negotiate = f"Negotiate {base64.b64encode(token).decode()}" if token else "Negotiate"
    response.headers.add("WWW-Authenticate", negotiate)
    if not token:
        response.headers.add("WWW-Authenticate", 'Basic realm="WSMAN"')
    return response
