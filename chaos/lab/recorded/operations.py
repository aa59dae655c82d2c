"""Recorded operations on the simulated machines and cluster, one function per action."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.node.logind import Kind, LogindError
from chaos.lab.node.network import FAMILIES
from chaos.lab.objects import name_of
from chaos.lab.recorded.build import Session
from chaos.lab.recorded.external_writes import API
from chaos.lab.recorded.recording import NotReplayedError, Operation, Recording
from chaos.lab.recorded.user_operations import USER_OPERATIONS, Drain
from chaos.lab.spec import SpecError, parse_duration

OperationFunc = Callable[[Session, Operation], object]
_POWER_ON_POLL = 0.2  # seconds between checks whether a machine is off and can be switched on
_START_WINDOW = 120.0  # seconds in which a kubelet starts
RESTART_WINDOW = 5.0  # seconds from a kubelet's restart to its return
Pressure = Literal["memory", "disk", "pid"]
PRESSURES: tuple[Pressure, ...] = ("memory", "disk", "pid")
_FORCE = re.compile(r"--force\b|(?<=[ -])f(?=f?\b)")
_MINUTES = re.compile(r"\+(\d+)\b")


def drop_unsupported(recording: Recording) -> None:
    """Drop operations that the lab does not simulate, and those on unknown nodes; each is a finding."""
    known = {API, *OPERATIONS}
    nodes = {name_of(node) for node in recording.initial_objects("nodes")}
    supported = []
    for item in recording.operations:
        if item.action not in known:
            recording.add_finding(f"action {item.action} is not replayed: the lab does not simulate it")
        elif item.action in _HOST and item.node not in nodes:
            recording.add_finding(f"action {item.action} on {item.node!r} is not replayed: no such node at the start")
        else:
            supported.append(item)
    recording.operations = supported
    if not supported:
        recording.add_finding("nothing was done to the cluster: the recording has no actions that are replayed")


def execute(
    session: Session, operation: Operation, functions: Mapping[str, OperationFunc] = MappingProxyType({})
) -> None:
    """Execute an operation now, on the lab's clock, by its function in OPERATIONS; a finding if the lab cannot.

    ``functions`` are used in place of those.
    """
    if operation.action == API:
        return  # module external_writes infers the changes from the objects
    function = functions.get(operation.action) or OPERATIONS[operation.action]
    try:
        function(session, operation)
    except (InvalidError, SpecError, NotReplayedError) as error:
        session.recording.add_finding(f"action {operation.action} is not replayed: {error}")


def _shut_down(session: Session, operation: Operation, kind: Kind) -> None:
    """Shut down by logind, or by PID 1 where logind does not run. logind refuses during a shutdown."""
    machine = session.machine(operation)
    force = 2 if operation.params.get("force") else len(_FORCE.findall(operation.command))
    if force > 1:
        machine.power_off()  # systemctl(1): neither units nor file systems
        return
    if force or not machine.logind.is_running:
        machine.shut_down(kind)
        return
    try:
        (machine.logind.power_off if kind == "poweroff" else machine.logind.reboot)()
    except LogindError:
        return  # the recorded logind refused too; its consequences are compared


def _prepare_for_shutdown(session: Session, operation: Operation) -> None:
    active = operation.params.get("active", "true" in operation.command or not operation.command)
    session.machine(operation).logind.emit_prepare_for_shutdown(bool(active))


def _schedule(session: Session, operation: Operation) -> None:
    delay = operation.params.get("delay") or operation.params.get("in") or operation.params.get("after")
    minutes = _MINUTES.search(operation.command)
    if not isinstance(delay, str) and not minutes:
        raise NotReplayedError(f"no delay in its parameters {operation.params}")
    wait = parse_duration(delay) if isinstance(delay, str) else 60.0 * int(minutes[1] if minutes else 0)
    kind = "reboot" if " -r" in operation.command else "poweroff"
    session.machine(operation).logind.schedule(operation.params.get("kind", kind), operation.t + wait)


def _partition(session: Session, operation: Operation) -> None:
    if operation.params.get("from", "control-plane") not in ("control-plane", "everything-but-us"):
        raise NotReplayedError(f"the lab does not simulate a partition from {operation.params['from']}")
    session.machine(operation).partition(operation.params.get("families") or FAMILIES)


def _hard_reboot(session: Session, operation: Operation) -> None:
    session.machine(operation).power_off()
    _schedule_power_on(session, operation)


def _reboot(session: Session, operation: Operation) -> None:
    """Reboot such that the kubelet starts at the recorded time: the duration of a boot is not a mechanism."""
    if any(at > operation.t for at in session.recording.kubelet_starts(operation.node)):
        _shut_down(session, operation, "poweroff")
        _schedule_power_on(session, operation)
    else:
        _shut_down(session, operation, "reboot")


def _power_on(session: Session, operation: Operation) -> None:
    """Power on such that the kubelet starts at the recorded time; a machine that is still running ignores it."""
    if any(at > operation.t for at in session.recording.kubelet_starts(operation.node)):
        _schedule_power_on(session, operation)
    else:
        session.machine(operation).power_on()


def _schedule_power_on(session: Session, operation: Operation) -> None:
    sim, machine = session.cluster.sim, session.machine(operation)
    boot = machine.spec.boot_seconds
    starts = session.recording.kubelet_starts(operation.node)
    kubelet_start = next((at for at in starts if at > operation.t), operation.t + boot)

    def press_power_button() -> None:
        if machine.state == "on" and sim.now < kubelet_start:
            sim.after(_POWER_ON_POLL, press_power_button)
        else:
            machine.power_on()

    sim.at(max(sim.now, kubelet_start - boot), press_power_button)


def _kubelet_start(session: Session, operation: Operation) -> None:
    """Start the kubelet at the recorded time: a busy machine takes long, and that is no mechanism."""
    starts = session.recording.kubelet_starts(operation.node)
    ends = [item.t for item in session.recording.operations if item.node == operation.node and item.t > operation.t]
    end = min(ends, default=operation.t + _START_WINDOW)
    at = next((at for at in starts if operation.t + RESTART_WINDOW < at <= end), None)
    if at is not None:
        session.cluster.sim.at(at, start_if_on, session, operation)
    else:
        start_if_on(session, operation)


def start_if_on(session: Session, operation: Operation) -> None:
    """Start the kubelet if the machine is on."""
    if session.machine(operation).state == "on":
        session.machine(operation).kubelet.start()


def _runtime_restart(session: Session, operation: Operation) -> None:
    session.machine(operation).runtime.stop_service()
    session.machine(operation).runtime.start_service()


def _thaw(session: Session, operation: Operation) -> None:
    machine = session.machine(operation)
    if machine.kubelet.is_frozen:
        machine.kubelet.thaw()


def _end_pressure(kind: Pressure) -> OperationFunc:
    return lambda session, operation: session.machine(operation).pressure.discard(kind)


def _begin_pressure(kind: Pressure) -> OperationFunc:
    return lambda session, operation: session.machine(operation).pressure.add(kind)


def drain(session: Session, operation: Operation) -> Drain:
    """Begin to drain the node."""
    timeout = parse_duration(str(operation.params.get("timeout", "0")))
    return Drain(session.cluster, operation.node, timeout, force=True)


def _exit(session: Session, operation: Operation) -> None:
    for uid in _uids(session, operation):
        session.machine(operation).runtime.end(uid, operation.params["code"])


def _set_readiness(session: Session, operation: Operation) -> None:
    """Let the probes of a pod that runs fail, or succeed again."""
    machine = session.machine(operation)
    for uid in _uids(session, operation):
        for container in machine.runtime.containers(uid):
            container.ready_at = session.cluster.sim.now if operation.params["ready"] else float("inf")
        machine.kubelet.report_pod(uid)


def _uids(session: Session, operation: Operation) -> list[str]:
    """UIDs of the pod's containers in the runtime; a static pod's UID differs from its mirror's."""
    names = session.machine(operation).runtime.names
    return [uid for uid, pod in names.items() if pod == operation.params["pod"]]


_HOST: dict[str, OperationFunc] = {
    "poweroff": lambda session, operation: _shut_down(session, operation, "poweroff"),
    "reboot": _reboot,
    "hard-reboot": _hard_reboot,
    "container-exit": _exit,
    "container-readiness": _set_readiness,
    "power-cut": lambda session, operation: session.machine(operation).power_off(),
    "power-on": _power_on,
    "prepare-for-shutdown": _prepare_for_shutdown,
    "schedule-shutdown": _schedule,
    "cancel-shutdown": lambda session, operation: session.machine(operation).logind.cancel_scheduled(),
    "kubelet-stop": lambda session, operation: session.machine(operation).kubelet.stop(),
    "kubelet-start": _kubelet_start,
    "kubelet-restart": lambda session, operation: session.machine(operation).kubelet.restart(),
    "kubelet-kill": lambda session, operation: session.machine(operation).kubelet.kill(),
    "kubelet-freeze": lambda session, operation: session.machine(operation).kubelet.freeze(),
    "kubelet-thaw": _thaw,
    "runtime-stop": lambda session, operation: session.machine(operation).runtime.stop_service(),
    "runtime-start": lambda session, operation: session.machine(operation).runtime.start_service(),
    "runtime-restart": _runtime_restart,
    "dbus-restart": lambda session, operation: session.machine(operation).logind.restart_bus(),
    "logind-restart": lambda session, operation: session.machine(operation).logind.restart(),
    **{f"{kind}-pressure": _begin_pressure(kind) for kind in PRESSURES},
    **{f"{kind}-available": _end_pressure(kind) for kind in PRESSURES},
    "network-unavailable": lambda session, operation: session.machine(operation).report_network(False),
    "network-available": lambda session, operation: session.machine(operation).report_network(True),
    "clock-skew": lambda _session, _operation: None,  # no controller reads a node's clock (facts 5.2)
    "partition": _partition,
    "heal": lambda session, operation: session.machine(operation).heal(),
}
OPERATIONS: Mapping[str, OperationFunc] = {
    **_HOST,
    **USER_OPERATIONS,
    "drain": drain,
    "controller-manager-restart": lambda session, _operation: session.cluster.controllers.restart(),
}
