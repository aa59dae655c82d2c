"""Windows hosts over SSH: what programs read, whichever shell sshd passes commands to.

Faults on the wire of SSH to Windows: what is known of the command, and the message.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.settings import HostSettings, LocalUser, host_settings
from chaos.machines.transports.ssh import SshSession, open_session
from chaos.machines.windows_command_line import WindowsShell
from tests.kit.proxy import Proxy
from tests.kit.windows_sshd import WindowsSshd, serving_windows

EXE = r"C:\Program Files\x (1)\shutdown.exe"
ARGUMENTS = ("/c", 'a "quoted" word', "%PATH%", "a & b | c > d ^ e", "", "trailing\\", "größe")
COMMAND = HostCommand((EXE, *ARGUMENTS))
RUN = HostCommand((r"C:\Windows\System32\shutdown.exe", "/r"), timeout=20)
LOST, NOT_SENT = Delivery.LOST, Delivery.NOT_SENT


@pytest.fixture(params=list(WindowsShell))
def windows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WindowsSshd]:
    with serving_windows(tmp_path, request.param) as found:
        yield found


@pytest.fixture
def session(windows: WindowsSshd) -> Iterator[SshSession]:
    found = open_session(windows.settings)
    yield found
    found.close()


def test_a_program_reads_its_arguments(windows: WindowsSshd, session: SshSession) -> None:
    """Without sudo, and with the line ends of Linux."""
    windows.exit_code = 190
    outcome = session.run(HostCommand(COMMAND.argv, stdin="input"))
    assert windows.started == [[EXE, *ARGUMENTS]]
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 190)
    first, rest = outcome.stdout.split("\n")
    assert (json.loads(first), rest) == (list(ARGUMENTS), "input")
    assert outcome.stderr == "A system shutdown has already been scheduled.(1190)\n"


def test_an_armed_command_starts_when_it_is_released(windows: WindowsSshd, session: SshSession) -> None:
    armed = session.arm(COMMAND)
    assert not armed.calibrate(lambda: 0.0)
    assert windows.started == []
    assert armed.wait().exit == 0
    assert windows.started == [[EXE, *ARGUMENTS]]
    cancelled = session.arm(COMMAND)
    cancelled.cancel()
    assert cancelled.wait().delivery == Delivery.NOT_SENT
    assert len(windows.started) == 1


def test_what_cannot_be_quoted_is_not_sent(windows: WindowsSshd, session: SshSession) -> None:
    outcome = session.run(HostCommand(("shutdown.exe",)))
    assert outcome.delivery == Delivery.NOT_SENT
    assert "it is not a full path" in outcome.error
    with pytest.raises(Refused, match="it is not a full path"):
        session.arm(HostCommand(("shutdown.exe",)))
    assert windows.started == []


@pytest.mark.parametrize(
    ("host", "shell"),
    [
        ({}, None),
        ({"os": "windows"}, WindowsShell.CMD),
        ({"os": "windows", "shell": "powershell"}, WindowsShell.POWERSHELL),
    ],
)
def test_the_shell_of_a_host(host: dict[str, Any], shell: WindowsShell | None) -> None:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "i"}}
    document = head | {"cluster": {"kubeconfig": "k"}, "hosts": {"a": host}, "defaults": {"user": "ops"}}
    found = host_settings(Inventory.model_validate(document), "a", LocalUser("me", Path("/home/me")))
    assert found.windows_shell is shell
    assert found.sudo_prefix == (() if shell else ("sudo", "-n", "--"))


@pytest.fixture(params=list(WindowsShell))
def faulty_windows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WindowsSshd]:
    with serving_windows(tmp_path, request.param) as found:
        yield found
        found.hangs = False


@pytest.fixture
def proxy(faulty_windows: WindowsSshd) -> Iterator[Proxy]:
    found = Proxy(("127.0.0.1", faulty_windows.settings.port))
    yield found
    found.close()


def through(faulty_windows: WindowsSshd, port: int) -> HostSettings:
    """Settings that reach the server by another port, where it has the same key."""
    known_hosts = faulty_windows.settings.known_hosts
    key = known_hosts.read_text().partition(" ")[2]
    known_hosts.write_text(f"[127.0.0.1]:{port} {key}")
    return replace(faulty_windows.settings, port=port)


def test_a_connection_that_drops_while_a_program_runs(faulty_windows: WindowsSshd, proxy: Proxy) -> None:
    """The program may have done its work; it is not sent again, and the next command has a new connection."""
    session = SshSession(through(faulty_windows, proxy.port))
    faulty_windows.hangs, faulty_windows.on_start = True, proxy.cut
    outcome = session.run(RUN)
    assert (outcome.delivery, outcome.exit) == (LOST, None)
    label = re.escape(session.settings.label)  # by whether the host has confirmed the start before
    assert re.search(f"{label} was lost (before the command ended|while the command was sent)", outcome.error)
    faulty_windows.hangs, faulty_windows.on_start = False, lambda: None
    proxy.mend()
    assert session.run(RUN).exit == 0
    assert len(faulty_windows.started) == 2
    session.close()


def test_a_program_that_hangs(faulty_windows: WindowsSshd) -> None:
    session = SshSession(faulty_windows.settings)
    faulty_windows.hangs = True
    outcome = session.run(HostCommand(RUN.argv, timeout=1.0))
    assert (outcome.delivery, outcome.exit) == (LOST, None)
    assert "1 s" in outcome.error
    faulty_windows.hangs = False
    assert session.run(RUN).exit == 0
    session.close()


def refused(faulty_windows: WindowsSshd, _: Proxy) -> HostSettings:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return replace(faulty_windows.settings, port=free.getsockname()[1])


def cut(faulty_windows: WindowsSshd, proxy: Proxy) -> HostSettings:
    proxy.cut()
    return through(faulty_windows, proxy.port)


def unknown_key(faulty_windows: WindowsSshd, _: Proxy) -> HostSettings:
    faulty_windows.settings.known_hosts.write_text("")
    return faulty_windows.settings


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (refused, "Connection refused"),
        (cut, "cannot be reached|failed the SSH handshake"),  # by who notices the reset: the connecting or the greeting
        (unknown_key, "host key"),
    ],
)
def test_nothing_is_sent_without_a_connection(
    faulty_windows: WindowsSshd, proxy: Proxy, fault: Callable[[WindowsSshd, Proxy], HostSettings], message: str
) -> None:
    session = SshSession(fault(faulty_windows, proxy))
    outcome = session.run(RUN)
    session.close()
    assert (outcome.delivery, outcome.exit) == (NOT_SENT, None)
    assert re.search(message, outcome.error)
    assert faulty_windows.started == []


def test_a_server_that_never_greets(faulty_windows: WindowsSshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        session = SshSession(replace(faulty_windows.settings, port=deaf.getsockname()[1], connect_timeout=0.5))
        outcome = session.run(RUN)
        session.close()
    assert (outcome.delivery, outcome.exit) == (NOT_SENT, None)
    assert "failed the SSH handshake" in outcome.error


def test_a_host_with_another_key_gets_nothing(faulty_windows: WindowsSshd) -> None:
    """Also where known_hosts has the key: it is not the machine of the run."""
    pin = HostKeyPin()
    pin.expect("ssh-ed25519 SHA256:of-another-machine")
    session = SshSession(faulty_windows.settings, pin)
    outcome = session.run(RUN)
    session.close()
    assert (outcome.delivery, outcome.exit) == (NOT_SENT, None)
    assert "now leads to a different machine" in outcome.error
    assert faulty_windows.started == []
