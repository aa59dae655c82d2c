"""An API server over TLS that records who asks it and how, and a proxy (CONNECT and SOCKS5) that leads to it."""

from __future__ import annotations

import base64
import ipaddress
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.kit.tls_authority import DAY, NOW, Authority

NAMES = ("localhost", "api.internal")  # of the server's certificate, besides 127.0.0.1


@dataclass(frozen=True)
class Seen:
    """A request: its path, the headers that say who sends it, sorted, the client certificate's name, and the SNI."""

    path: str
    identity: tuple[tuple[str, str], ...]
    certificate: str
    sni: str


@dataclass
class Recorder:
    """What the server and the proxy have seen. ``refused``: tokens that are answered with 401."""

    seen: list[Seen] = field(default_factory=list)
    proxied: list[str] = field(default_factory=list)  # the proxy's logins
    refused: set[str] = field(default_factory=set)
    names: dict[Any, str] = field(default_factory=dict)
    port: int = 0
    plain_port: int = 0
    proxy_port: int = 0

    def clear(self) -> None:
        self.seen.clear()
        self.proxied.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10.0
    recorder: Recorder

    def setup(self) -> None:
        """Shake hands here, in the connection's own thread."""
        super().setup()
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.do_handshake()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Quiet."""

    def do_GET(self) -> None:
        headers = [(key.lower(), value.encode("latin-1").decode()) for key, value in self.headers.items()]
        identity = sorted(pair for pair in headers if pair[0].startswith(("authorization", "impersonate-")))
        name = ""
        if isinstance(self.connection, ssl.SSLSocket) and (found := self.connection.getpeercert()):
            name = str(found["subject"][0][0][1])
        sni = self.recorder.names.get(self.connection, "")
        self.recorder.seen.append(Seen(self.path, tuple(identity), name, sni))
        if "watch=" in self.path:  # nothing happens until the client leaves
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.rfile.read(1)
            return
        tokens = {value.removeprefix("Bearer ") for key, value in identity if key == "authorization"}
        body = b"{}"
        self.send_response(401 if tokens & self.recorder.refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that do not trust the server are the point."""


class _Proxy(socketserver.BaseRequestHandler):
    recorder: Recorder

    def handle(self) -> None:
        """Lead to the recording server, whatever name is asked for."""
        first = self.request.recv(1)
        login = self._socks() if first == b"\x05" else self._connect(first)
        self.recorder.proxied.append(login)
        with socket.create_connection(("127.0.0.1", self.recorder.port)) as server:
            back = threading.Thread(target=_copy, args=(server, self.request), daemon=True)
            back.start()
            _copy(self.request, server)
            back.join(10)

    def _connect(self, first: bytes) -> str:
        head = first
        while b"\r\n\r\n" not in head:
            head += self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        lines = [line for line in head.decode().split("\r\n") if line.lower().startswith("proxy-authorization: basic ")]
        return base64.b64decode(lines[0].split()[-1]).decode() if lines else ""

    def _socks(self) -> str:
        methods, login = self.request.recv(self.request.recv(1)[0]), ""
        if 2 in methods:
            self.request.sendall(b"\x05\x02")
            self.request.recv(1)
            user = self.request.recv(self.request.recv(1)[0]).decode()
            login = f"{user}:{self.request.recv(self.request.recv(1)[0]).decode()}"
            self.request.sendall(b"\x01\x00")
        else:
            self.request.sendall(b"\x05\x00")
        kind = self.request.recv(4)[3]
        self.request.recv({1: 4, 4: 16}.get(kind) or self.request.recv(1)[0])
        self.request.recv(2)
        self.request.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        return login


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


class _ProxyServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients break off."""


@contextmanager
def proxying(recorder: Recorder) -> Iterator[int]:
    """A proxy to the server at the recorder's port; yields its port."""
    proxy = _ProxyServer(("127.0.0.1", 0), type("Proxy", (_Proxy,), {"recorder": recorder}))
    threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield proxy.server_address[1]
    finally:
        proxy.shutdown()
        proxy.server_close()


@contextmanager
def recording(folder: Path) -> Iterator[Recorder]:
    """A server whose certificate ``folder``/cluster.crt has signed; client certificates by the same authority."""
    authority = Authority(folder, "cluster")
    issue(authority, "server", NAMES)
    recorder = Recorder()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    tls.sni_callback = lambda connection, name, _: recorder.names.__setitem__(connection, name or "")
    handler = type("Handler", (_Handler,), {"recorder": recorder})
    servers = [_Server(("127.0.0.1", 0), handler) for _ in range(2)]
    servers[0].socket = tls.wrap_socket(servers[0].socket, server_side=True, do_handshake_on_connect=False)
    recorder.port, recorder.plain_port = (server.server_address[1] for server in servers)
    for each in servers:
        threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    for user in ("ada", "grace"):
        issue(authority, user)
    try:
        with proxying(recorder) as recorder.proxy_port:
            yield recorder
    finally:
        for each in servers:
            each.shutdown()
            each.server_close()


def issue(authority: Authority, name: str, hosts: tuple[str, ...] = ()) -> None:
    """``name``.crt and ``name``.key, for a server with the names ``hosts`` if there are any."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
    )
    if hosts:
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        names = x509.SubjectAlternativeName([address, *(x509.DNSName(host) for host in hosts)])
        builder = builder.add_extension(names, False)
    certificate = builder.sign(authority.key, hashes.SHA256())
    (authority.folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (authority.folder / f"{name}.key").write_bytes(private)
