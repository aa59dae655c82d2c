"""A program in a container over a WebSocket of the API server: pods/exec.

Subprotocols v5.channel.k8s.io and v4.channel.k8s.io (k8s.io/apimachinery pkg/util/remotecommand): the first byte of a
message is its channel. kubernetes.stream connects without a time-out and cannot be written to without blocking.
"""

# ruff: noqa: PLC0415 - websocket is slow to import
from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from chaos.cluster.credentials import Headers
from chaos.cluster.errors import RESET, KubeUnreachable, from_exception, from_response
from chaos.cluster.pools import Pool, open_socket
from chaos.cluster.tls_in_tls import TlsInTls
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.ports import Response

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_FRAME = 32 << 10  # bytes of stdin in one message
_RECORD = 16 << 10  # bytes that are written at once: one record of TLS
_MAX_MESSAGE = 8 << 20  # bytes; kubelets send 32 KiB at most
_FRAME_TIMEOUT = 30.0  # seconds for the rest of a message that has begun


class ExecStatus(Struct, frozen=True):
    """The Status in channel 3; its reason is NonZeroExitCode for a program that ended with another code than 0."""

    status: str = ""
    message: str = ""
    reason: str = ""

    @property
    def error(self) -> str:
        """Why no program ran, or its end is unknown; "" if one ran to its end."""
        is_end = self.status == "Success" or self.reason == "NonZeroExitCode"
        return "" if is_end else self.message or "it failed without a message"


class ExecStream:
    """One program, for one thread; :meth:`abort` is for all. Input is written while output is read."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection  # a websocket.WebSocket
        self.can_end_input = connection.subprotocol == V5
        self._outgoing = bytearray()
        self.status: ExecStatus | None = None
        self.has_ended = False

    def write(self, data: bytes) -> None:
        """Queue input."""
        for start in range(0, len(data), _FRAME):
            self._queue(bytes([_STDIN]) + data[start : start + _FRAME])

    def end_input(self) -> None:
        """Queue the end of the input; only v5 has one."""
        if self.can_end_input:
            self._queue(bytes([_CLOSE, _STDIN]))

    def flush(self) -> None:
        """Write queued data as long as that does not block. Raises OSError if the connection is lost."""
        while self._outgoing and self._write():
            pass

    def step(self, timeout: float) -> tuple[bytes, bytes]:
        """Wait for output, and write input meanwhile; new output, empty where none came within ``timeout`` seconds."""
        if self.has_ended:
            return b"", b""
        try:
            if not self._has_buffered():
                poll = select.poll()
                sock = self._connection.sock
                has_more = self._outgoing or getattr(sock, "unsent", None)
                poll.register(sock, select.POLLIN | (select.POLLOUT if has_more else 0))
                events = poll.poll(timeout * 1000)
                if not events:
                    return b"", b""
                if not events[0][1] & ~select.POLLOUT:
                    self._write()
                    return b"", b""
            return self._receive()
        except (OSError, ValueError):  # ValueError: the descriptor of a connection that was closed
            self.has_ended = True
            return b"", b""

    def abort(self) -> None:
        """Break the connection, even if a thread is reading from it."""
        with suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Break the connection and free it."""
        self.has_ended = True
        self.abort()
        self._connection.shutdown()

    def _queue(self, payload: bytes) -> None:
        from websocket import ABNF

        self._outgoing += ABNF.create_frame(payload, ABNF.OPCODE_BINARY).format()

    def _write(self) -> bool:
        """Whether something could be written without waiting."""
        sock = self._connection.sock
        if sock is None:
            raise ConnectionError("the connection is closed")
        sock.settimeout(0)
        try:
            sent = sock.send(self._outgoing[:_RECORD])
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False
        finally:
            sock.settimeout(_FRAME_TIMEOUT)
        del self._outgoing[:sent]
        return True

    def _has_buffered(self) -> bool:
        """Whether TLS has decrypted more than was read: the socket would not show it."""
        sock = self._connection.sock
        return isinstance(sock, (ssl.SSLSocket, TlsInTls)) and sock.pending() > 0

    def _receive(self) -> tuple[bytes, bytes]:
        from websocket import ABNF, WebSocketException

        try:
            opcode, frame = self._connection.recv_data_frame(control_frame=True)
        except WebSocketException:
            self.has_ended = True
            return b"", b""
        if opcode == ABNF.OPCODE_CLOSE:
            self.has_ended = True
        elif opcode in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) and frame.data:
            channel, data = frame.data[0], bytes(frame.data[1:])
            if channel in (_STDOUT, _STDERR):
                return (data, b"") if channel == _STDOUT else (b"", data)
            if channel == _ERROR:
                self.status = _read_status(data)
        return b"", b""


def _read_status(data: bytes) -> ExecStatus:
    try:
        return msgspec.json.decode(data, type=ExecStatus)
    except DECODE_ERRORS:
        return ExecStatus("Failure", data.decode("utf-8", "replace"))


def exec_path(pod_path: str, argv: Sequence[str], container: str) -> str:
    """Path and query that run ``argv`` with stdin, stdout and stderr in a container of the pod at ``pod_path``."""
    streams = [(name, "true") for name in ("stdin", "stdout", "stderr")]
    query = [("container", container), *streams, *(("command", word) for word in argv)]
    return f"{pod_path}/exec?{urlencode(query)}"


class _Until:
    """A socket whose reads end at a deadline together: a node may send its part of the answer byte by byte."""

    def __init__(self, sock: Any, seconds: float) -> None:
        self._sock, self._deadline = sock, time.monotonic() + seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv(self, size: int) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._sock.settimeout(left)
        return bytes(self._sock.recv(size))


def open_exec(pool: Pool, url: str, headers: Headers, timeout: float) -> ExecStream:
    """Connect within ``timeout`` wall seconds, over a new connection like those of the pool.

    Raises KubeUnreachable, and KubeRejected with the server's own words.
    """
    from urllib3.exceptions import HTTPError
    from websocket import WebSocket, WebSocketBadStatusException, WebSocketException

    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    connection: Any = WebSocket(skip_utf8_validation=True)
    try:
        sock = open_socket(pool, url, timeout)
        connection.connect(
            url.replace("http", "ws", 1),
            socket=_Until(sock, timeout),
            header=[f"{name}: {value}" for name, value in headers],
            subprotocols=[V5, V4],
            timeout=timeout,
            redirect_limit=0,
        )
        _check_protocol(connection)
        _bound_messages(connection)
        connection.sock = sock
        connection.settimeout(_FRAME_TIMEOUT)
    except WebSocketBadStatusException as error:
        connection.shutdown()
        body = error.resp_body or b""
        raise from_response(Response(error.status_code, bytes(body), {}), "exec") from error
    except (HTTPError, WebSocketException, OSError) as error:
        connection.shutdown()
        if isinstance(error, WebSocketException):
            raise KubeUnreachable(RESET, f"{origin}: no connection for exec: {error}") from error
        raise from_exception(error, origin, pool.proxy) from error
    return ExecStream(connection)


def _bound_messages(connection: Any) -> None:
    """Make a message that is too long an error before it fills the memory: a node may write its own."""
    from websocket import WebSocketException

    frame, parts = connection.frame_buffer, connection.cont_frame
    receive = frame.recv_length

    def recv_length() -> None:
        receive()
        before = len(parts.cont_data[1]) if parts.cont_data else 0
        if before + frame.length > _MAX_MESSAGE:
            raise WebSocketException(f"a message of {before + frame.length} bytes")

    frame.recv_length = recv_length


def _check_protocol(connection: Any) -> None:
    """Raises WebSocketException for an answer that is no exec, as a redirect."""
    from websocket import WebSocketException

    if connection.status != 101 or connection.subprotocol not in (V5, V4):
        raise WebSocketException(f"it answered {connection.status}, in no protocol of exec")
