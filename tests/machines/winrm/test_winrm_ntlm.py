"""NTLM over plain HTTP: every message is encrypted, by keys of its connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.machines.winrm.session import WinRmSession
from tests.kit.wsman_server import PASSWORD, USER, Answer, WsManServer, received, serving_wsman

RUN = HostCommand((r"C:\Windows\System32\hostname.exe",), timeout=20)


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
