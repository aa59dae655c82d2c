"""A WS-Management service on loopback that replays recorded answers of Windows, and fails as its script says."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import ssl
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import spnego
import yaml
from spnego.exceptions import SpnegoError

from chaos.machines.winrm.endpoint import Endpoint

RECORDINGS = Path(__file__).parents[1] / "recordings" / "winrm"
USER, PASSWORD = "Administrator", "Passw0rd-of-the-test"
SOAP = "application/soap+xml;charset=UTF-8"
_STREAM = '<rsp:Stream Name="{}" CommandId="{}">{}</rsp:Stream>'
_OLD_COMMAND = re.compile('CommandId="[0-9A-F-]{36}"')


def recorded(name: str) -> str:
    """A recorded body."""
    return (RECORDINGS / name).read_text(encoding="utf-8")


# What Windows answered to each operation, when all was well.
ANSWERS = {
    "Create": recorded("masterzen/createShellResponse.xml"),
    "Command": recorded("masterzen/executeCommandResponse.xml"),
    "Send": recorded("pywinrm/run_cmd_send_input_response.xml"),
    "Receive": recorded("masterzen/doneCommandExitCode0Response.xml"),
    "Signal": recorded("pywinrm/cleanup_cmd_response.xml"),
    "Delete": recorded("pywinrm/close_shell_response.xml"),
    "Get": yaml.safe_load(recorded("pypsrp/config_get.yml"))["messages"][0]["response"],
}


@dataclass(frozen=True)
class Request:
    operation: str
    body: str

    def find(self, pattern: str) -> str:
        match = re.search(pattern, self.body, re.DOTALL)
        return match[1] if match else ""

    @property
    def message_id(self) -> str:
        return self.find(r"MessageID>(uuid:[^<]+)<")

    @property
    def shell(self) -> str:
        return self.find(r'Name="ShellId">([^<]+)<')

    @property
    def command(self) -> str:
        return self.find(r'CommandId="([^"]+)"')

    @property
    def seconds(self) -> int:
        return int(self.find(r"OperationTimeout>PT(\d+)S<"))


@dataclass(frozen=True)
class Answer:
    """``text`` None: the identifiers of the default answer. ``drop``: the connection is closed instead."""

    status: int = 200
    text: str | bytes | None = None
    content_type: str = SOAP
    drop: bool = False
    hang: bool = False  # no answer until the server stops
    trickle: bool = False  # one byte now and then
    relates: bool = True  # to the request
    headers: tuple[tuple[str, str], ...] = ()


def fault(name: str) -> Answer:
    """A recorded fault."""
    return Answer(500, recorded(name))


def received(stdout: bytes = b"", stderr: bytes = b"", exit_code: str | None = None) -> Answer:
    """A recorded end of a command, or with no exit code a recorded Running, with other output."""
    text = recorded("masterzen/doneCommandResponse.xml" if exit_code is not None else "masterzen/outputResponse.xml")
    text = re.sub("<rsp:Stream .*?</rsp:Stream>|<rsp:Stream [^>]*/>", "", text, flags=re.DOTALL)
    pieces = [
        _STREAM.format(name, "0" * 36, base64.b64encode(data).decode())
        for name, data in (("stdout", stdout), ("stderr", stderr))
        if data
    ]
    text = text.replace("<rsp:ReceiveResponse>", "<rsp:ReceiveResponse>" + "".join(pieces))
    return Answer(text=re.sub("<rsp:ExitCode>.*</rsp:ExitCode>", f"<rsp:ExitCode>{exit_code}</rsp:ExitCode>", text))


def quoted_fault(code: int) -> Answer:
    """A fault whose detail alone was recorded, in a recorded envelope."""
    details = re.findall("<f:WSManFault.*?</f:WSManFault>", recorded("faults/quoted_in_issues.xml"), re.DOTALL)
    detail = next(each for each in details if f"'{code}'" in each)
    envelope = recorded("faults/masterzen_executeCommandResponseWithError.xml")
    return Answer(500, re.sub("<f:WSManFault.*</f:WSManFault>", lambda _: detail, envelope, flags=re.DOTALL))


RUNNING_OUT = fault("faults/masterzen_operationTimeoutResponse.xml")
Respond = Callable[[Request], Answer]


@dataclass
class WsManServer:
    """``script`` has the next answers of each operation, ``then`` what follows them; else the recorded default."""

    port: int
    authority: Path | None
    fingerprint: str
    script: defaultdict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    then: dict[str, Answer | Respond] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    accepts_login: bool = True
    shells: set[str] = field(default_factory=set)
    connections: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    scheme: str = "https"
    by_certificate: bool = False  # which TLS has verified
    cuts_logins: int = 0  # so many challenges are the last answer on their connection
    ntlm: bool = False  # messages must be encrypted, as with AllowUnencrypted=false

    def endpoint(self, **changes: Any) -> Endpoint:
        """The endpoint that reaches this server."""
        settings: dict[str, Any] = {
            "name": "win-1", "address": "127.0.0.1", "port": self.port, "auth": "basic", "user": USER,
            "password": PASSWORD, "ca_file": self.authority, "connect_timeout": 5.0, "scheme": self.scheme,
        }  # fmt: skip
        return Endpoint(**settings | changes)

    def operations(self) -> list[str]:
        return [request.operation for request in self.requests]

    def answer(self, request: Request) -> tuple[Answer, bytes]:
        """The scripted or default answer, with the identifiers of the request and new ones."""
        self.requests.append(request)
        following = self.then.get(request.operation, Answer())
        scripted = self.script[request.operation]
        answer = scripted.popleft() if scripted else following if isinstance(following, Answer) else following(request)
        text = ANSWERS[request.operation] if answer.text is None else answer.text
        if isinstance(text, bytes):
            return answer, text
        if answer.relates:
            text = re.sub("(RelatesTo>)[^<]*<", rf"\g<1>{request.message_id}<", text)
        if request.operation == "Create" and answer.status == 200:
            self.shells.add(new := str(uuid.uuid4()).upper())
            text = re.sub('(Name="ShellId">)[^<]*<', rf"\g<1>{new}<", text)
        elif request.operation == "Command":
            text = re.sub("(CommandId>)[^<]*<", rf"\g<1>{str(uuid.uuid4()).upper()}<", text)
        elif request.operation == "Delete" and answer.status == 200:
            self.shells.discard(request.shell)
        elif request.operation == "Receive":
            text = _OLD_COMMAND.sub(f'CommandId="{request.command}"', text)
        return answer, text.encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wsman: WsManServer
    context: Any = None  # of NTLM, which is that of a connection

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.wsman.headers.append(dict(self.headers))
        if self.wsman.ntlm:
            if plain := self._unseal(body):
                self._answer(plain.decode())
            return
        login = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.wsman.by_certificate:
            login = "http://schemas.dmtf.org/wbem/wsman/1/wsman/secprofile/https/mutual"
        if self.headers.get("Authorization") != login or not self.wsman.accepts_login:
            self._send(401, b"", {"WWW-Authenticate": 'Basic realm="WSMAN"'})
            return
        self._answer(body.decode())

    def _unseal(self, body: bytes) -> bytes:
        """The message, if its connection is logged in; else the next step of NTLM, or a refusal, is sent."""
        token = (self.headers.get("Authorization") or "").removeprefix("Negotiate ")
        if self.context is None or token:
            self.context = self.context or spnego.server(protocol="ntlm")
            with suppress(SpnegoError):
                answer = base64.b64encode(self.context.step(base64.b64decode(token)) or b"").decode() if token else ""
                if not self.context.complete:
                    self._send(401, b"", {"WWW-Authenticate": f"Negotiate {answer}".strip(), **self._cut(answer)})
                    return b""
        if not self.context.complete or (body and b"--Encrypted Boundary" not in body):
            self._send(401, b"", {"WWW-Authenticate": "Negotiate"})
            return b""
        if not body:
            self._send(200, b"", {})
            return b""
        sealed = body.split(b"octet-stream\r\n", 1)[1].removesuffix(b"--Encrypted Boundary--\r\n")
        length = int.from_bytes(sealed[:4], "little")
        plain: bytes = self.context.unwrap_winrm(sealed[4 : 4 + length], sealed[4 + length :])
        return plain

    def _cut(self, challenge: str) -> dict[str, str]:
        """Headers that end the connection, where the challenge is to be the last answer on it."""
        if not challenge or not self.wsman.cuts_logins:
            return {}
        self.wsman.cuts_logins -= 1
        self.close_connection = True
        return {"Connection": "close"}

    def _sealed(self, content: bytes) -> tuple[bytes, str]:
        assert self.context
        result = self.context.wrap_winrm(content)
        kind = "application/HTTP-SPNEGO-session-encrypted"
        head = (
            f"--Encrypted Boundary\r\n\tContent-Type: {kind}\r\n"
            f"\tOriginalContent: type=application/soap+xml;charset=UTF-8;Length={len(content)}\r\n"
            "--Encrypted Boundary\r\n\tContent-Type: application/octet-stream\r\n"
        )
        body = head.encode() + len(result.header).to_bytes(4, "little") + result.header + result.data
        kind = f'multipart/encrypted;protocol="{kind}";boundary="Encrypted Boundary"'
        return body + b"--Encrypted Boundary--\r\n", kind

    def _answer(self, text: str) -> None:
        match = re.search(r"Action[^>]*>[^<]*/(\w+)<", text)
        assert match
        answer, content = self.wsman.answer(Request(match[1], text))
        if answer.hang:
            self.wsman.stopping.wait(60)
        if answer.drop or answer.hang:
            self._reset()
        elif answer.trickle:
            self._trickle()
        else:
            kind = answer.content_type
            if self.wsman.ntlm and kind == SOAP:
                content, kind = self._sealed(content)
            headers = {"Content-Type": kind, "Server": "Microsoft-HTTPAPI/2.0", **dict(answer.headers)}
            self._send(answer.status, content, headers)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _trickle(self) -> None:
        self.send_response_only(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        while not self.wsman.stopping.wait(0.2):
            self.wfile.write(b" ")
        self._reset()

    def _reset(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext | None
    wsman: WsManServer

    def get_request(self) -> tuple[socket.socket, Any]:
        sock, address = super().get_request()
        self.wsman.connections += 1
        if self.context:  # the handshake is the handler's: it may never come
            sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return sock, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that clients close are no news."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def sha256_of(context_file: Path) -> str:
    """Of the first certificate in a PEM file."""
    pem = context_file.read_text(encoding="ascii")
    certificate = pem[: pem.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()


@contextmanager
def serving_wsman(
    context: ssl.SSLContext | None, authority: Path | None, fingerprint: str = "", address: str = "127.0.0.1"
) -> Iterator[WsManServer]:
    """A running service; without ``context`` over plain HTTP."""
    handler = type("Handler", (_Handler,), {})
    server = (_Server6 if ":" in address else _Server)((address, 0), handler)
    wsman = WsManServer(server.server_address[1], authority, fingerprint, scheme="https" if context else "http")
    server.context, server.wsman = context, wsman
    handler.wsman = wsman  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield wsman
    finally:
        wsman.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
