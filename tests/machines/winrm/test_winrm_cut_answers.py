"""A connection that ends within an answer: it is lost, whatever the part that came looks like."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from chaos.machines.winrm.client import WinRmClient
from chaos.machines.winrm.endpoint import Endpoint, LoginPause, RejectedLogin
from chaos.machines.winrm.faults import RequestFailure
from tests.kit.tls_authority import Authority

HEAD = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n"
WHOLE = HEAD + b"\r\n"
# Within the status line, at its end, within a header, after it, and before the empty line that ends the headers.
CUTS = [0, 1, 12, 20, 27, 40, 54, 55, 57, len(HEAD) - 1, len(HEAD), len(HEAD) + 1]


@contextlib.contextmanager
def cutting(answer: bytes, tls: ssl.SSLContext | None) -> Iterator[int]:
    """A server that answers the first request with these bytes and ends the connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with tls.wrap_socket(connection, server_side=True) if tls else connection as stream:
                stream.recv(65536)
                stream.sendall(answer)
                stream.shutdown(socket.SHUT_WR)  # without TLS's notice of the end
                while stream.recv(65536):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join(10)


@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize("length", CUTS)
def test_an_answer_without_its_end_is_no_answer(authority: Authority, scheme: str, length: int) -> None:
    """Neither a rejected login, which would make the account pause, nor an answer that is not understood."""
    tls = authority.server() if scheme == "https" else None
    with cutting(WHOLE[:length], tls) as port:
        endpoint = Endpoint(
            "win-1", "127.0.0.1", port, "ntlm", "ops", "password", scheme="https" if tls else "http",
            ca_file=authority.file if tls else None,
        )  # fmt: skip
        client = WinRmClient(endpoint, lambda _: None, LoginPause())
        with pytest.raises(RequestFailure) as failed:
            client.create_shell(5)
        client.close()
    assert failed.value.breaks_connection
    assert not isinstance(failed.value.error, RejectedLogin)
    assert failed.value.error.message.startswith(
        f"the connection to {endpoint.label} was lost during Create: it closed the connection"
    )
