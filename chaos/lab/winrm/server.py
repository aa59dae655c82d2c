"""WinRM's listener of one machine, HTTPS, while its service runs.

Logins to the WS-Management service: Basic, and NTLM (alone or in SPNEGO), which belongs to a connection.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import spnego
from aiohttp import web
from spnego.exceptions import SpnegoError

from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.sim.time_source import Listener, PortReservation
from chaos.lab.windows.machine import WINRM, WindowsMachine
from chaos.lab.winrm.service import Client, WsmanService
from chaos.lab.winshell.connections import InboundGate
from chaos.lab.winshell.process import WinHost
from chaos.lab.winshell.programs import PROGRAMS

_SERVER = "Microsoft-HTTPAPI/2.0"
_SOAP = "application/soap+xml;charset=UTF-8"
_MAX_BODY = 512_000  # MaxEnvelopeSizekb


class WinRmServer:
    """WinRM of ``machine`` with one account."""

    def __init__(
        self,
        machine: WindowsMachine,
        port: PortReservation,
        lockstep: Lockstep,
        sim: SimClock,
        tls: ssl.SSLContext,
        account: Account,
    ) -> None:
        self._machine, self._lockstep = machine, lockstep
        self.port, self._gate = port, InboundGate(machine, port)
        self._tls, self._logins = tls, Logins(account)
        self.service = WsmanService(WinHost(machine, sim, lockstep, PROGRAMS))
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
        await self.port.wait_started()

    async def stop(self) -> None:
        self.service.stop()
        self.port.close()
        await self._runner.cleanup()

    def _on_machine_change(self, machine: Machine) -> None:
        assert isinstance(machine, WindowsMachine)  # noqa: S101 - the only one it listens to
        self._gate.update()
        if machine.services.get(WINRM).is_running:
            self.port.start_listening(self._listen, self._lockstep)
            return
        self.port.stop_listening()
        self.service.stop()
        for connection in self._runner.server.connections if self._runner.server else ():
            if connection.transport:
                connection.transport.abort()

    async def _listen(self, sock: socket.socket) -> Listener:
        assert self._runner.server is not None  # noqa: S101 - set up in start
        return await asyncio.get_running_loop().create_server(self._runner.server, sock=sock, ssl=self._tls)

    async def _handle(self, request: web.Request) -> web.Response:
        await self._gate.wait()
        with self._lockstep.request():
            response = await self._respond(request)
        await self._gate.wait()
        return response

    async def _respond(self, request: web.Request) -> web.Response:
        """Log in, and answer once the login is complete."""
        transport, token = request.transport, b""
        if transport is None:
            return web.Response(status=400)
        kind, _, credentials = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() in ("negotiate", "ntlm"):
            try:
                token = self._logins.step(transport, base64.b64decode(credentials, validate=True))
            except (SpnegoError, binascii.Error, ValueError):
                return _unauthorized()
        is_basic = kind.lower() == "basic" and self._logins.account.is_basic(credentials)
        if not is_basic and not self._logins.is_complete(transport):
            return _unauthorized(token)
        body = await request.read()
        response = await self._answer(request, body) if body or is_basic else web.Response()  # the login alone
        response.headers["Server"] = _SERVER
        if token:
            response.headers["WWW-Authenticate"] = f"Negotiate {base64.b64encode(token).decode()}"
        return response

    async def _answer(self, request: web.Request, body: bytes) -> web.Response:
        client = Client(self._logins.account.user, request.remote or "", (request.url.host or "").lower())
        status, text = await self.service.handle(body, client)
        return web.Response(status=status, body=text.encode(), headers={"Content-Type": _SOAP})


def _unauthorized(token: bytes = b"") -> web.Response:
    """401. No recording: the order of the two lines, and the realm."""
    response = web.Response(status=401, headers={"Server": _SERVER})
    negotiate = f"Negotiate {base64.b64encode(token).decode()}" if token else "Negotiate"
    response.headers.add("WWW-Authenticate", negotiate)
    if not token:
        response.headers.add("WWW-Authenticate", 'Basic realm="WSMAN"')
    return response


_USER_FILE = "NTLM_USER_FILE"  # where pyspnego looks for the passwords of those who log in


class Account:
    """The only account: the built-in administrator. ``store``: a private file for its password."""

    def __init__(self, user: str, password: str, store: Path) -> None:
        self.user, self._password, self._store = user, password, store
        store.touch(mode=0o600)
        store.write_text(f":{user}:{password}\n", encoding="utf-8")

    def is_basic(self, credentials: str) -> bool:
        """Whether these are the account's credentials, in base64; a domain before the user is ignored."""
        try:
            name, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        is_user = name.rpartition("\\")[2].lower() == self.user.lower()
        return hmac.compare_digest(password.encode(), self._password.encode()) and is_user

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """Let pyspnego know the password for this block. Without await in it, as the variable is the process's."""
        before = os.environ.get(_USER_FILE)
        os.environ[_USER_FILE] = str(self._store)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_USER_FILE]
            else:
                os.environ[_USER_FILE] = before


class Logins:
    """Login contexts of NTLM or Negotiate by connection; they are dropped once the connection is closed."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self._contexts: dict[int, tuple[asyncio.BaseTransport, spnego.ContextProxy]] = {}

    def is_complete(self, transport: asyncio.BaseTransport) -> bool:
        """Whether a connection is logged in."""
        found = self._contexts.get(id(transport))
        return found is not None and found[0] is transport and found[1].complete

    def step(self, transport: asyncio.BaseTransport, token: bytes) -> bytes:
        """Process a token and return the next, b"" for none; after a complete login a new one begins.

        Raises SpnegoError.
        """
        self._contexts = {key: item for key, item in self._contexts.items() if not item[0].is_closing()}
        with self.account.offered():
            if id(transport) not in self._contexts or self.is_complete(transport):
                self._contexts[id(transport)] = transport, spnego.server(protocol="negotiate")
            try:
                return self._contexts[id(transport)][1].step(token) or b""
            except SpnegoError:
                del self._contexts[id(transport)]
                raise
