"""The scripts of clock-skew on a Windows machine of the lab, with a boot in between."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.command import Command, HostCommand
from chaos.engine.registry import load_windows_facts
from chaos.machines.windows_command_line import quote_argument
from tests.kit.actionkit import action_for, prepare
from tests.kit.win_host import WindowsHost

SERVICES = {f"service-state?service={name}": "active" for name in ("vmictimesync", "w32time")}
TARGET = Target("win1", "windows", facts={"failsafe-timers": [], "clock-skew": 0, **SERVICES}, tag="run-skew")


class ClockHost(WindowsHost):
    """Runs commands as the transports do."""

    def send(self, command: Command) -> tuple[int, str, str]:
        assert isinstance(command, HostCommand)
        return self.run(" ".join(map(quote_argument, command.argv)), command.stdin, cmd=False)

    def read(self, fact: str) -> Any:
        found = load_windows_facts()[fact]
        code, stdout, _ = self.send(found.command)
        return found.parse(stdout, code)


@pytest.mark.parametrize("direction", ["ahead", "behind"])
@pytest.mark.parametrize("boots", [False, True], ids=["same boot", "after a boot"])
def test_the_clock_is_set_and_set_right_again(direction: str, boots: bool) -> None:
    host, action = ClockHost(), action_for("clock-skew", TARGET)
    skew = 60 if direction == "ahead" else -60
    state = prepare("clock-skew", {"direction": direction}, TARGET)
    for command in action.program(state).commands:
        assert host.send(command)[0] == 0
    host.wait(300.0)
    assert host.read("clock-skew") == skew, "nothing has corrected the clock"
    assert abs(host.machine.clock.offset - skew) < 0.5
    if boots:
        host.run("shutdown.exe /r /f /t 0")
        host.wait(120.0)
        assert host.read("clock-skew") == skew, "undone only when the synchronisation has answered"
    for step in action.program(state).undo.steps:
        code, _, stderr = host.send(step.command)
        assert (code, stderr) == (0, "")
    host.wait(5.0)
    assert host.read("clock-skew") == 0
    assert abs(host.machine.clock.offset) < 0.5
    assert all(host.machine.services.get(name).is_running for name in state.services)
