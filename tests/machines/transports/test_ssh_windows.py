"""Windows hosts over SSH: what programs read, whichever shell sshd passes commands to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.machines.transports.settings import LocalUser, host_settings
from chaos.machines.transports.ssh import SshSession, open_session
from chaos.machines.windows_command_line import WindowsShell
from tests.kit.windows_sshd import WindowsSshd, serving_windows

EXE = r"C:\Program Files\x (1)\shutdown.exe"
ARGUMENTS = ("/c", 'a "quoted" word', "%PATH%", "a & b | c > d ^ e", "", "trailing\\", "größe")
COMMAND = HostCommand((EXE, *ARGUMENTS))


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
    assert "it is no full path" in outcome.error
    with pytest.raises(Refused, match="it is no full path"):
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
