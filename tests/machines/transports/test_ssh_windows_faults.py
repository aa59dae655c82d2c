"""Faults on the wire of SSH to Windows: what is known of the command, and the message."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.machines.transports.host_keys import HostKeyPin
from chaos.machines.transports.settings import HostSettings
from chaos.machines.transports.ssh import SshSession
from chaos.machines.windows_command_line import WindowsShell
from tests.kit.proxy import Proxy
from tests.kit.windows_sshd import WindowsSshd, serving_windows

RUN = HostCommand((r"C:\Windows\System32\shutdown.exe", "/r"), timeout=20)
LOST, NOT_SENT = Delivery.LOST, Delivery.NOT_SENT


@pytest.fixture(params=list(WindowsShell))
def windows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WindowsSshd]:
    with serving_windows(tmp_path, request.param) as found:
        yield found
        found.hangs = False


@pytest.fixture
def proxy(windows: WindowsSshd) -> Iterator[Proxy]:
    found = Proxy(("127.0.0.1", windows.settings.port))
    yield found
    found.close()


def through(windows: WindowsSshd, port: int) -> HostSettings:
    """Settings that reach the server by another port, where it has the same key."""
    known_hosts = windows.settings.known_hosts
    key = known_hosts.read_text().partition(" ")[2]
    known_hosts.write_text(f"[127.0.0.1]:{port} {key}")
    return replace(windows.settings, port=port)


def test_a_connection_that_drops_while_a_program_runs(windows: WindowsSshd, proxy: Proxy) -> None:
    """The program may have done its work; it is not sent again, and the next command has a new connection."""
    session = SshSession(through(windows, proxy.port))
    windows.hangs, windows.on_start = True, proxy.cut
    outcome = session.run(RUN)
    assert (outcome.delivery, outcome.exit) == (LOST, None)
    label = re.escape(session.settings.label)  # by whether the host has confirmed the start before
    assert re.search(f"{label} was lost (before the command ended|while the command was sent)", outcome.error)
    windows.hangs, windows.on_start = False, lambda: None
    proxy.mend()
    assert session.run(RUN).exit == 0
    assert len(windows.started) == 2
    session.close()


def test_a_program_that_hangs(windows: WindowsSshd) -> None:
    session = SshSession(windows.settings)
    windows.hangs = True
    outcome = session.run(HostCommand(RUN.argv, timeout=1.0))
    assert (outcome.delivery, outcome.exit) == (LOST, None)
    assert "1 s" in outcome.error
    windows.hangs = False
    assert session.run(RUN).exit == 0
    session.close()


def refused(windows: WindowsSshd, _: Proxy) -> HostSettings:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return replace(windows.settings, port=free.getsockname()[1])


def cut(windows: WindowsSshd, proxy: Proxy) -> HostSettings:
    proxy.cut()
    return through(windows, proxy.port)


def unknown_key(windows: WindowsSshd, _: Proxy) -> HostSettings:
    windows.settings.known_hosts.write_text("")
    return windows.settings


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (refused, "Connection refused"),
        (cut, "cannot be reached|failed the SSH handshake"),  # by who notices the reset: the connecting or the greeting
        (unknown_key, "host key"),
    ],
)
def test_nothing_is_sent_without_a_connection(
    windows: WindowsSshd, proxy: Proxy, fault: Callable[[WindowsSshd, Proxy], HostSettings], message: str
) -> None:
    session = SshSession(fault(windows, proxy))
    outcome = session.run(RUN)
    session.close()
    assert (outcome.delivery, outcome.exit) == (NOT_SENT, None)
    assert re.search(message, outcome.error)
    assert windows.started == []


def test_a_server_that_never_greets(windows: WindowsSshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        session = SshSession(replace(windows.settings, port=deaf.getsockname()[1], connect_timeout=0.5))
        outcome = session.run(RUN)
        session.close()
    assert (outcome.delivery, outcome.exit) == (NOT_SENT, None)
    assert "failed the SSH handshake" in outcome.error


def test_a_host_with_another_key_gets_nothing(windows: WindowsSshd) -> None:
    """Also where known_hosts has the key: it is not the machine of the run."""
    pin = HostKeyPin()
    pin.expect("ssh-ed25519 SHA256:of-another-machine")
    session = SshSession(windows.settings, pin)
    outcome = session.run(RUN)
    session.close()
    assert (outcome.delivery, outcome.exit) == (NOT_SENT, None)
    assert "has changed hands" in outcome.error
    assert windows.started == []
