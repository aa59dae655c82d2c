"""The sweep's look at a Windows machine sees whatever a fault could leave there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.lab.windows.disk import CRASH_CONTROL
from chaos.lab.windows.firewall import FirewallRule
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.windows.power import ShutdownRequest
from chaos.lab.windows.tasks import TaskDefinition
from tests.kit.win_host import WindowsHost
from tests.kit.windows_snapshot import windows_snapshot

LEFT: dict[str, Callable[[WindowsMachine], object]] = {
    "services": lambda m: m.services.stop(m.services.get("kubelet")),
    "rules": lambda m: m.firewall.add(FirewallRule("nodefall-x", "out", ("192.0.2.1",))),
    "dropped": lambda m: m.firewall.add(FirewallRule("nodefall-x", "out")),
    "firewall": lambda m: m.firewall.turn(on=False, profiles=("Domain",)),
    "tasks": lambda m: m.tasks.register("nodefall-x", TaskDefinition("x.exe", "", "SYSTEM", (), True, True, 0.0, "")),
    "clock": lambda m: m.clock.adjust(60.0),
    "scheduled": lambda m: m.power.request(ShutdownRequest("reboot", 600.0, comment="nodefall-x")),
    "stopping": lambda m: m.power.request(ShutdownRequest("reboot", 0.0)),
    "registry": lambda m: m.registry.set(CRASH_CONTROL, "AutoReboot", "REG_DWORD", 0),
    "power": lambda m: m.power_off(),
    "files": lambda m: m.files.update({"/nodefall-x": ""}),
}


@pytest.mark.parametrize("part", LEFT)
def test_what_is_left_on_a_machine_is_seen(part: str) -> None:
    host = WindowsHost()
    host.wait(30.0)
    before = windows_snapshot(host.machine)
    host.wait(5.0)
    assert windows_snapshot(host.machine) == before
    LEFT[part](host.machine)
    assert windows_snapshot(host.machine)[part] != before[part]


def test_a_boot_leaves_nothing() -> None:
    host = WindowsHost()
    host.wait(30.0)
    before = windows_snapshot(host.machine)
    boot = host.machine.boot_id
    host.machine.reset()
    host.wait(120.0)
    assert host.machine.boot_id != boot
    assert windows_snapshot(host.machine) == before
