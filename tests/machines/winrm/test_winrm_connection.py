"""WinRM over IPv6, verified by the address in the certificate.

A connection that ends within an answer: it is lost, whatever the part that came looks like.

NTLM over plain HTTP: every message is encrypted, by keys of its connection.

A rejected login is not repeated at once, by whichever session: accounts get locked.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.machines.sessions.arming import RetryingSession
from chaos.machines.winrm.client import WinRmClient
from chaos.machines.winrm.endpoint import Endpoint, LoginPause, RejectedLogin
from chaos.machines.winrm.faults import RequestFailure
from chaos.machines.winrm.session import WinRmSession
from tests.kit.fakes import FakeClock
from tests.kit.tls_authority import Authority
from tests.kit.wsman_server import PASSWORD, USER, Answer, WsManServer, received, serving_wsman

RUN = HostCommand((r"C:\Windows\System32\hostname.exe",), timeout=20)
HEAD = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n"
WHOLE = HEAD + b"\r\n"
# Within the status line, at its end, within a header, after it, and before the empty line that ends the headers.
CUTS = [0, 1, 12, 20, 27, 40, 54, 55, 57, len(HEAD) - 1, len(HEAD), len(HEAD) + 1]
COMMAND = HostCommand((r"C:\Windows\System32\where.exe",), timeout=20)


@pytest.fixture
def ipv6_service(authority: Authority) -> Iterator[WsManServer]:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"no IPv6 loopback here: {error}")
    with serving_wsman(authority.server(address="::1"), authority.file, address="::1") as found:
        yield found


def test_a_command(ipv6_service: WsManServer) -> None:
    session = WinRmSession(ipv6_service.endpoint(address="::1"))
    outcome = session.run(RUN)
    session.close()
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 0)
    assert session.label == f"win-1 (Administrator@[::1]:{ipv6_service.port})"


def test_a_certificate_for_another_address(ipv6_service: WsManServer) -> None:
    session = WinRmSession(ipv6_service.endpoint(address="::1", hostname="fd00::7"))
    outcome = session.run(RUN)
    session.close()
    assert outcome.delivery == Delivery.NOT_SENT
    assert "has a certificate that cannot be trusted" in outcome.error
    assert ipv6_service.requests == []


@pytest.mark.parametrize("address", ["fd00::7", "::1"])
def test_the_url_has_brackets(address: str) -> None:
    assert Endpoint("w", address, 5986, "ntlm").url == f"https://[{address}]:5986/wsman"


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


@pytest.fixture
def ntlm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WsManServer]:
    accounts = tmp_path / "accounts"
    accounts.write_text(f"LAB:{USER}:{PASSWORD}\n")
    monkeypatch.setenv("NTLM_USER_FILE", str(accounts))
    with serving_wsman(None, None) as found:
        found.ntlm = True
        yield found


@pytest.fixture
def session(ntlm: WsManServer) -> Iterator[WinRmSession]:
    found = WinRmSession(ntlm.endpoint(auth="ntlm", user=f"LAB\\{USER}"))
    yield found
    found.close()


def test_messages_are_encrypted(session: WinRmSession, ntlm: WsManServer) -> None:
    ntlm.script["Receive"].append(received("ä".encode(), exit_code="7"))
    assert session.run(RUN) == Outcome(Delivery.ANSWERED, 7, "ä")
    messages = [headers["Content-Type"] for headers in ntlm.headers if int(headers["Content-Length"])]
    assert messages
    assert all(kind.startswith("multipart/encrypted;") for kind in messages)
    assert ntlm.connections == 1


def test_after_a_loss_the_next_connection_has_keys_of_its_own(session: WinRmSession, ntlm: WsManServer) -> None:
    ntlm.script["Receive"].append(Answer(drop=True))
    assert session.run(RUN).delivery == Delivery.LOST
    assert session.run(RUN).exit == 0
    assert ntlm.connections == 2


def test_a_wrong_password(ntlm: WsManServer) -> None:
    session = WinRmSession(ntlm.endpoint(auth="ntlm", user=f"LAB\\{USER}", password="other-password"))
    outcome = session.run(RUN)
    session.close()
    assert outcome.delivery == Delivery.NOT_SENT
    assert "rejected the login by ntlm (401): the user or password is wrong, or messages must be" in outcome.error
    assert ntlm.requests == []


def test_a_connection_that_is_lost_within_the_login_is_no_wrong_password(ntlm: WsManServer) -> None:
    """The last message of NTLM on another connection would be rejected, and begin a pause of logins."""
    ntlm.cuts_logins = 1
    session = WinRmSession(ntlm.endpoint(auth="ntlm", user=f"LAB\\{USER}"))
    outcome = session.run(RUN)
    assert outcome.delivery == Delivery.NOT_SENT
    assert "was lost during the login for Create" in outcome.error
    assert (ntlm.connections, ntlm.requests) == (1, [])
    assert session.run(RUN).exit == 0
    assert ntlm.connections == 2
    session.close()


def test_an_answer_that_is_not_encrypted_is_no_answer(session: WinRmSession, ntlm: WsManServer) -> None:
    ntlm.script["Command"].append(Answer(200, b"<html>", "text/html"))
    outcome = session.run(RUN)
    assert outcome.delivery == Delivery.LOST
    assert "it is not well-formed XML; the command may have run" in outcome.error


class Watch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def sessions(service: WsManServer, watch: Watch) -> Iterator[list[WinRmSession]]:
    logins = LoginPause(watch)
    found = [WinRmSession(service.endpoint(), logins=logins) for _ in range(2)]
    yield found
    for session in found:
        session.close()


def test_one_rejection_ends_the_attempts_of_all_sessions(service: WsManServer, sessions: list[WinRmSession]) -> None:
    service.accepts_login = False
    first, second = (RetryingSession(session, FakeClock()).run(COMMAND) for session in sessions)
    assert (first.delivery, second.delivery) == (Delivery.NOT_SENT, Delivery.NOT_SENT)
    assert len(service.headers) == 1
    assert "rejected the login by basic (401)" in second.error
    assert "not tried again for 15 s, as accounts get locked" in second.error


def test_pauses_double_up_to_two_minutes(watch: Watch) -> None:
    logins = LoginPause(watch)
    pauses = []
    for _ in range(7):
        logins.check()
        logins.reject(RejectedLogin("no"))
        with pytest.raises(RejectedLogin, match=r"no; not tried again for (\d+) s"):
            logins.check()
        begun = watch.seconds
        while True:
            try:
                logins.check()
                break
            except RejectedLogin:
                watch.seconds += 5
        pauses.append(watch.seconds - begun)
    assert pauses == [15, 30, 60, 120, 120, 120, 120]


def test_a_login_is_tried_again_and_accepted_after_the_pause(
    service: WsManServer, sessions: list[WinRmSession], watch: Watch
) -> None:
    service.accepts_login = False
    assert sessions[0].run(COMMAND).delivery is Delivery.NOT_SENT
    service.accepts_login = True
    watch.seconds = 14.9
    assert sessions[0].run(COMMAND).delivery is Delivery.NOT_SENT
    watch.seconds = 15.0
    assert sessions[0].run(COMMAND).delivery is Delivery.ANSWERED
    assert sessions[1].run(COMMAND).delivery is Delivery.ANSWERED
