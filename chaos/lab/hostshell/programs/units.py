"""Services of a simulated host: their states, and how they start and stop."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.hostshell.process import HostSystem
from chaos.lab.hostshell.programs.transient_units import stop_filler
from chaos.lab.node.machine import Machine

_Operation = Callable[[Machine], object]


def _restart_runtime(machine: Machine) -> None:
    machine.runtime.stop_service()
    machine.runtime.start_service()


_OPERATIONS: dict[str, dict[str, _Operation]] = {
    "kubelet.service": {
        "start": lambda machine: machine.kubelet.start(),
        "stop": lambda machine: machine.kubelet.stop(),
        "restart": lambda machine: machine.kubelet.restart(),
    },
    "containerd.service": {
        "start": lambda machine: machine.runtime.start_service(),
        "stop": lambda machine: machine.runtime.stop_service(),
        "restart": _restart_runtime,
    },
    "dbus.service": {"start": lambda _: None, "restart": lambda machine: machine.logind.restart_bus()},
    "systemd-logind.service": {"start": lambda _: None, "restart": lambda machine: machine.logind.restart()},
}
# Services without effect on the cluster, active after a boot.
ORDINARY = ("cron.service",)
SIGNALS = {"STOP": "19", "CONT": "18", "KILL": "9", "TERM": "15"}


def is_active(host: HostSystem, unit: str) -> bool | None:
    """Whether a unit is active; None if the host does not have it."""
    machine = host.machine
    if unit.removesuffix(".service") in host.services:
        return True
    if unit in ORDINARY:
        return unit not in host.stopped
    if unit not in _OPERATIONS or (unit == "systemd-logind.service" and not machine.spec.logind):
        return None
    running = {"kubelet.service": machine.kubelet.is_running, "containerd.service": machine.runtime.is_available}
    return running.get(unit, True)


def main_pid(host: HostSystem, unit: str) -> int | None:
    """Main PID of a unit; 0 without a process, None if the lab does not simulate one."""
    logind = host.machine.logind
    pids = {"systemd-logind.service": logind.pid, "dbus.service": logind.bus_pid}
    return host.machine.kubelet.pid if unit == "kubelet.service" else pids.get(unit)


def control(host: HostSystem, verb: str, unit: str) -> bool:
    """Start, stop or restart a unit; False if that is not simulated."""
    if verb == "stop" and unit.removesuffix(".service") in host.services:
        stop_filler(host, unit.removesuffix(".service"))
        return True
    if unit in ORDINARY:
        (host.stopped.add if verb == "stop" else host.stopped.discard)(unit)
        return True
    operation = _OPERATIONS.get(unit, {}).get(verb)
    if operation is None:
        return False
    operation(host.machine)
    return True


def signal_kubelet(host: HostSystem, name: str) -> bool:
    """Send the kubelet a signal, by name, with ``SIG`` or by number; False for one that is not simulated."""
    short = name.removeprefix("SIG")
    signal = next((key for key, number in SIGNALS.items() if short in (key, number)), "")
    kubelet = host.machine.kubelet
    operations = {"STOP": kubelet.freeze, "CONT": kubelet.thaw, "KILL": kubelet.kill, "TERM": kubelet.kill}
    if signal not in operations:
        return False
    operations[signal]()
    return True
