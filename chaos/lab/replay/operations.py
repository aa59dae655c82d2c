"""Recorded operations on the simulated machines and cluster, one function per action."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.drain import Drain
from chaos.lab.node.logind import Kind, LogindError
from chaos.lab.node.network import FAMILIES
from chaos.lab.objects.accessors import name_of
from chaos.lab.replay import locks
from chaos.lab.replay.recorded_choices import rejections_after
from chaos.lab.replay.recording import Operation, Recording, ReplayError
from chaos.lab.replay.session import ReplaySession
from chaos.lab.replay.user_operations import USER_OPERATIONS
from chaos.lab.replay.verbs import API, supported_names
from chaos.lab.spec import parse_duration

_OperationFunc = Callable[[ReplaySession, Operation], object]
_POWER_ON_POLL = 0.2  # seconds between checks whether a machine is off and can be switched on
_RESTART_WINDOW = 5.0  # seconds from a kubelet's restart to its return
_Pressure = Literal["memory", "disk", "pid"]
_PRESSURES: tuple[_Pressure, ...] = ("memory", "disk", "pid")
_MINUTES = re.compile(r"\+(\d+)\b")


def check_operations(recording: Recording) -> None:
    """Raise ReplayError, with all actions that the lab does not simulate, or for an unknown node."""
    known = {API, *_HOST, *_CLUSTER, *USER_OPERATIONS}
    unknown = sorted({item.action for item in recording.operations} - known)
    if unknown:
        supported = ", ".join(supported_names())
        raise ReplayError(f"action not simulated by the lab: {', '.join(unknown)}; supported: {supported}")
    nodes = {name_of(node) for node in recording.initial_objects("nodes")}
    for item in recording.operations:
        if (item.action in _HOST or item.node) and item.node not in nodes:
            raise ReplayError(f"action {item.action} on {item.node!r}: no such node in the first list")


def execute(session: ReplaySession, operation: Operation) -> None:
    """Execute an operation now, on the lab's clock. Raises ReplayError for an object that the lab rejects."""
    if operation.action == API:
        return  # module external_writes infers the changes from the objects
    function = _HOST.get(operation.action) or _CLUSTER.get(operation.action) or USER_OPERATIONS[operation.action]
    try:
        function(session, operation)
    except InvalidError as error:
        raise ReplayError(f"action {operation.action}: {error}") from error


def _shut_down(session: ReplaySession, operation: Operation, kind: Kind) -> None:
    """Shut down by logind, or by PID 1 where logind does not run. logind refuses during a shutdown."""
    machine = session.machine(operation)
    rejections = rejections_after(session.recording, operation)
    if rejections is not None:
        machine.kubelet.record_rejections(rejections)
    if not machine.logind.is_running:
        machine.shut_down(kind)
        return
    try:
        (machine.logind.power_off if kind == "poweroff" else machine.logind.reboot)()
    except LogindError:
        return  # the recorded logind refused too; its consequences are compared


def _prepare_for_shutdown(session: ReplaySession, operation: Operation) -> None:
    active = operation.params.get("active", "true" in operation.command or not operation.command)
    machine = session.machine(operation)
    lost = locks.is_lost_after(session.recording, operation)
    if lost is not None:
        machine.kubelet.record_lock_loss(lost)
    machine.logind.emit_prepare_for_shutdown(bool(active))


def _schedule(session: ReplaySession, operation: Operation) -> None:
    delay = operation.params.get("delay") or operation.params.get("in") or operation.params.get("after")
    minutes = _MINUTES.search(operation.command)
    if not isinstance(delay, str) and not minutes:
        raise ReplayError(f"action {operation.action}: no delay in its parameters {operation.params}")
    wait = parse_duration(delay) if isinstance(delay, str) else 60.0 * int(minutes[1] if minutes else 0)
    kind = "reboot" if " -r" in operation.command else "poweroff"
    session.machine(operation).logind.schedule(operation.params.get("kind", kind), operation.t + wait)


def _partition(session: ReplaySession, operation: Operation) -> None:
    if operation.params.get("from", "control-plane") not in ("control-plane", "everything-but-us"):
        raise ReplayError(f"action partition: the lab does not simulate a partition from {operation.params['from']}")
    session.machine(operation).partition(operation.params.get("families") or FAMILIES)


def _hard_reboot(session: ReplaySession, operation: Operation) -> None:
    session.machine(operation).power_off()
    _schedule_power_on(session, operation)


def _reboot(session: ReplaySession, operation: Operation) -> None:
    """Reboot such that the kubelet starts at the recorded time: the duration of a boot is not a mechanism."""
    if any(at > operation.t for at in session.recording.kubelet_starts(operation.node)):
        _shut_down(session, operation, "poweroff")
        _schedule_power_on(session, operation)
    else:
        _shut_down(session, operation, "reboot")


def _schedule_power_on(session: ReplaySession, operation: Operation) -> None:
    sim, machine = session.cluster.sim, session.machine(operation)
    boot = machine.spec.boot_seconds
    starts = session.recording.kubelet_starts(operation.node)
    kubelet_start = next((at for at in starts if at > operation.t), operation.t + boot)

    def press_power_button() -> None:
        if machine.state == "on":
            sim.after(_POWER_ON_POLL, press_power_button)
        else:
            machine.power_on()

    sim.at(kubelet_start - boot, press_power_button)


def _kubelet_restart(session: ReplaySession, operation: Operation) -> None:
    """Restart the kubelet. During a shutdown, where the new process may be too late, only if it reported Ready."""
    machine, recording = session.machine(operation), session.recording
    if not machine.logind.preparing_for_shutdown:
        machine.kubelet.restart()
        return
    machine.kubelet.stop()
    end = operation.t + _RESTART_WINDOW
    starts = [at for at in recording.kubelet_starts(operation.node) if operation.t < at <= end]
    if starts and any(starts[0] <= at <= end for at in recording.kubelet_events(operation.node, "NodeReady")):
        session.cluster.sim.at(starts[0], _kubelet_start, session, operation)


def _kubelet_start(session: ReplaySession, operation: Operation) -> None:
    if session.machine(operation).state == "on":
        session.machine(operation).kubelet.start()


def _runtime_restart(session: ReplaySession, operation: Operation) -> None:
    session.machine(operation).runtime.stop_service()
    session.machine(operation).runtime.start_service()


def _thaw(session: ReplaySession, operation: Operation) -> None:
    machine = session.machine(operation)
    if machine.kubelet.is_frozen:
        machine.kubelet.thaw()


def _set_pressure(kind: _Pressure, *, short: bool) -> _OperationFunc:
    def apply(session: ReplaySession, operation: Operation) -> None:
        pressure = session.machine(operation).pressure
        if short:
            pressure.add(kind)
        else:
            pressure.discard(kind)

    return apply


def _drain(session: ReplaySession, operation: Operation) -> None:
    Drain(session.cluster, operation.node, parse_duration(str(operation.params.get("timeout", "0"))), force=True)


_HOST: dict[str, _OperationFunc] = {
    "poweroff": lambda session, operation: _shut_down(session, operation, "poweroff"),
    "reboot": _reboot,
    "hard-reboot": _hard_reboot,
    "power-cut": lambda session, operation: session.machine(operation).power_off(),
    "power-on": lambda session, operation: session.machine(operation).power_on(),
    "prepare-for-shutdown": _prepare_for_shutdown,
    "schedule-shutdown": _schedule,
    "cancel-shutdown": lambda session, operation: session.machine(operation).logind.cancel_scheduled(),
    "kubelet-stop": lambda session, operation: session.machine(operation).kubelet.stop(),
    "kubelet-start": _kubelet_start,
    "kubelet-restart": _kubelet_restart,
    "kubelet-kill": lambda session, operation: session.machine(operation).kubelet.kill(),
    "kubelet-freeze": lambda session, operation: session.machine(operation).kubelet.freeze(),
    "kubelet-thaw": _thaw,
    "runtime-stop": lambda session, operation: session.machine(operation).runtime.stop_service(),
    "runtime-start": lambda session, operation: session.machine(operation).runtime.start_service(),
    "runtime-restart": _runtime_restart,
    "dbus-restart": lambda session, operation: session.machine(operation).logind.restart_bus(),
    "logind-restart": lambda session, operation: session.machine(operation).logind.restart(),
    **{f"{kind}-pressure": _set_pressure(kind, short=True) for kind in _PRESSURES},
    **{f"{kind}-available": _set_pressure(kind, short=False) for kind in _PRESSURES},
    "network-unavailable": lambda session, operation: session.machine(operation).report_network(False),
    "network-available": lambda session, operation: session.machine(operation).report_network(True),
    "clock-skew": lambda _session, _operation: None,  # no controller reads a node's clock (facts 5.2)
    "partition": _partition,
    "heal": lambda session, operation: session.machine(operation).heal(),
}
_CLUSTER: dict[str, _OperationFunc] = {
    "drain": _drain,
    "controller-manager-restart": lambda session, _operation: session.cluster.controllers.restart(),
}
