"""WinRM over IPv6, verified by the address in the certificate."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.machines.winrm.endpoint import Endpoint
from chaos.machines.winrm.session import WinRmSession
from tests.kit.tls_authority import Authority
from tests.kit.wsman_server import WsManServer, serving_wsman

RUN = HostCommand((r"C:\Windows\System32\hostname.exe",), timeout=20)


@pytest.fixture
def service(authority: Authority) -> Iterator[WsManServer]:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"no IPv6 loopback here: {error}")
    with serving_wsman(authority.server(address="::1"), authority.file, address="::1") as found:
        yield found


def test_a_command(service: WsManServer) -> None:
    session = WinRmSession(service.endpoint(address="::1"))
    outcome = session.run(RUN)
    session.close()
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 0)
    assert session.label == f"win-1 (Administrator@[::1]:{service.port})"


def test_a_certificate_for_another_address(service: WsManServer) -> None:
    session = WinRmSession(service.endpoint(address="::1", hostname="fd00::7"))
    outcome = session.run(RUN)
    session.close()
    assert outcome.delivery == Delivery.NOT_SENT
    assert "has a certificate that cannot be trusted" in outcome.error
    assert service.requests == []


@pytest.mark.parametrize("address", ["fd00::7", "::1"])
def test_the_url_has_brackets(address: str) -> None:
    assert Endpoint("w", address, 5986, "ntlm").url == f"https://[{address}]:5986/wsman"
