"""What an experiment could have left behind on a Windows machine of the lab."""

from __future__ import annotations

from typing import Any

from chaos.lab.node.kubelet.metrics import STATE_FILE
from chaos.lab.windows.disk import PREFETCH, WindowsRegistry, full_path
from chaos.lab.windows.machine import WindowsMachine


def windows_snapshot(machine: WindowsMachine, shells: int = 0) -> dict[str, Any]:
    """``shells``: how many are open over WinRM."""
    firewall, scheduled = machine.firewall, machine.power.scheduled
    return {
        "power": machine.state,
        "services": {service.name: (service.state, service.start_type) for service in machine.services.all()},
        "rules": sorted(map(repr, firewall.rules)),
        "firewall": dict(firewall.state),
        "dropped": sorted(machine.network.drops()),
        "tasks": sorted((task.name, task.stop is not None) for task in machine.tasks.all()),
        "clock": round(machine.clock.offset, 3),
        "scheduled": scheduled and (scheduled.kind, scheduled.comment),
        "stopping": (machine.is_stopping, machine.power.is_in_progress),
        "files": {path: text for path, text in machine.files.items() if path != STATE_FILE},
        "registry": _values(machine.registry),
        "pressure": sorted(machine.pressure),
        "shells": shells,
    }


def _values(registry: WindowsRegistry) -> dict[str, dict[str, Any]]:
    """Data of all values, by key and name, without the number of the boot."""
    found = {path: {value.name: value.data for value in values.values()} for path, values in registry._keys.values()}
    del found[full_path(PREFETCH)]["BootId"]
    return found
