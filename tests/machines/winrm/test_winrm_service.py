"""What a WinRM service reports of a connection and of its quotas, and what becomes of it as facts."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

import chaos.faults.readings.windows
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.fact import HostFact
from chaos.core.registry import discover
from chaos.machines.pool import Hosts, WindowsFacts
from chaos.machines.sessions.arming import RetryingSession
from chaos.machines.winrm.client import parse_quotas
from chaos.machines.winrm.faults import UnexpectedAnswer
from chaos.machines.winrm.session import WinRmSession
from tests.kit.fakes import FakeClock, FakeKube, FakeSession
from tests.kit.wsman_server import ANSWERS, Answer, WsManServer, recorded

CREATED = ANSWERS["Create"]
QUOTAS = {
    "MaxShellsPerUser": 2147483647,
    "MaxProcessesPerShell": 2147483647,
    "MaxConcurrentOperationsPerUser": 1500,
}
SSH = "10.0.0.7 40000 10.0.0.9 22\r\n"


def created_for(address: str) -> Answer:
    return Answer(text=re.sub("(ClientIP>)[^<]*<", rf"\g<1>{address}<", CREATED))


def hosts(session: Any) -> Hosts:
    windows = WindowsFacts(lambda _: True, lambda: discover(chaos.faults.readings.windows, HostFact))
    clock = FakeClock()
    return Hosts(
        lambda _: RetryingSession(session, clock), lambda _: None, FakeKube({}), {}, clock, windows=windows
    )  # fmt: skip


def test_the_recorded_quotas() -> None:
    document: Any = yaml.safe_load(recorded("pypsrp/config_get.yml"))
    answer = document["messages"][0]["response"]
    assert parse_quotas(answer.encode()) == QUOTAS
    for name in QUOTAS:
        with pytest.raises(UnexpectedAnswer, match=f"it has no {name}"):
            parse_quotas(answer.replace(f"<cfg:{name}>", f"<cfg:{name}>many").encode())


def test_quotas_are_a_fact(session: WinRmSession, service: WsManServer) -> None:
    assert hosts(session).read("win-1", PseudoFact.WINRM_QUOTAS) == QUOTAS
    assert service.operations() == ["Create", "Get"]
    assert service.requests[1].find(r"ResourceURI[^>]*>([^<]*)<").endswith("/wsman/1/config")
    assert session.run(HostCommand(("C:\\a.exe",), timeout=20)).exit == 0  # in the same shell
    assert service.operations().count("Create") == 1


def test_quotas_that_the_user_may_not_read(session: WinRmSession, service: WsManServer) -> None:
    envelope = recorded("faults/pypsrp_unit_87_server2016.xml")  # that of 5 was never recorded
    service.script["Get"].append(Answer(500, envelope.replace('Code="87"', 'Code="5"')))
    with pytest.raises(Unreachable, match="authenticated, but not authorized"):
        hosts(session).read("win-1", PseudoFact.WINRM_QUOTAS)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [("203.0.113.20", "203.0.113.20"), ("::ffff:10.0.0.8", "10.0.0.8"), ("fe80::1%4", "fe80::1")],
)
def test_where_the_connection_comes_from(
    session: WinRmSession, service: WsManServer, reported: str, expected: str
) -> None:
    service.script["Create"].append(created_for(reported))
    assert hosts(session).read("win-1", "connection-peers") == [expected]
    assert service.operations() == ["Create"]


def test_another_connection_may_come_from_elsewhere(session: WinRmSession, service: WsManServer) -> None:
    service.script["Create"] += [created_for("10.0.0.8"), created_for("10.0.0.9")]
    pool = hosts(session)
    assert pool.read("win-1", "connection-peers") == ["10.0.0.8"]
    service.script["Receive"].append(Answer(drop=True))
    assert pool.send("win-1", HostCommand(("C:\\a.exe",), timeout=20)).delivery is Delivery.LOST
    assert pool.read("win-1", "connection-peers") == ["10.0.0.9"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(text=re.sub(r"<rsp:ClientIP>[^<]*</rsp:ClientIP>", "", CREATED)), "does not report where"),
        (created_for(""), "does not report where"),
        (created_for("gateway"), "ClientIP is 'gateway'"),
        (Answer(text=recorded("winrb/open_shell_v1.xml")), "does not report where"),
    ],
)
def test_an_unknown_client_is_never_guessed(
    session: WinRmSession, service: WsManServer, answer: Answer, why: str
) -> None:
    service.script["Create"].append(answer)
    with pytest.raises(NodefallError, match=why):
        hosts(session).read("win-1", "connection-peers")


def test_over_ssh_a_program_on_the_host_reports_it() -> None:
    class Ssh(FakeSession):
        def run(self, command: HostCommand) -> Outcome:
            return Outcome(Delivery.ANSWERED, 0, SSH)

    pool = hosts(Ssh({}))
    assert pool.read("win-1", "connection-peers") == ["10.0.0.7"]
    assert pool.read("win-1", PseudoFact.WINRM_QUOTAS) == {}


def test_a_host_that_cannot_be_reached_has_no_known_client(service: WsManServer) -> None:
    service.accepts_login = False
    session = WinRmSession(service.endpoint())
    with pytest.raises(NodefallError, match="rejected the login"):
        hosts(session).read("win-1", "connection-peers")
    session.close()
