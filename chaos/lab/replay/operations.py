"""What a recorded action is in the lab. One function an action; what the lab has no means for is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.drain import Drain
from chaos.lab.node.logind import Kind, LogindError
from chaos.lab.node.machine import Machine
from chaos.lab.node.network import FAMILIES
from chaos.lab.objects.accessors import name_of
from chaos.lab.replay.recording import Operation, Recording, ReplayError
from chaos.lab.replay.session import ReplaySession
from chaos.lab.replay.user_operations import USER_OPERATIONS
from chaos.lab.replay.verbs import API, supported_names
from chaos.lab.spec import parse_duration

_OperationFunc = Callable[[ReplaySession, Operation], object]
_POWER_ON_POLL = 0.2  # a machine that is to be switched on is looked at so often until it is off
_RESTART_WINDOW = 5.0  # a kubelet that was restarted is back within so many seconds
_MINUTES = re.compile(r"\+(\d+)\b")


def check_operations(recording: Recording) -> None:
    """Raises ReplayError for actions that cannot be replayed, all in one text."""
    known = {API, *_HOST, *_CLUSTER, *USER_OPERATIONS}
    unknown = sorted({deed.action for deed in recording.operations} - known)
    if unknown:
        text = f"the lab cannot do what was done here: {', '.join(unknown)}; it can do {', '.join(supported_names())}"
        raise ReplayError(text)
    nodes = {name_of(node) for node in recording.initial_objects("nodes")}
    for deed in recording.operations:
        if (deed.action in _HOST or deed.node) and deed.node not in nodes:
            raise ReplayError(f"action {deed.action} on {deed.node!r}: no such node in the first list")


def execute(stage: ReplaySession, deed: Operation) -> None:
    """Do it now, on the lab's clock. Raises ReplayError for what the lab refuses to simulate."""
    if deed.action == API:
        return  # module ``users`` reads from the objects what it changed
    try:
        (_HOST.get(deed.action) or _CLUSTER.get(deed.action) or USER_OPERATIONS[deed.action])(stage, deed)
    except InvalidError as error:
        raise ReplayError(f"action {deed.action}: {error}") from error


def _shut_down(machine: Machine, kind: Kind) -> None:
    """Without logind, systemctl asks PID 1 itself. logind refuses while a shutdown is under way."""
    if not machine.logind.is_running:
        machine.shut_down(kind)
        return
    try:
        (machine.logind.power_off if kind == "poweroff" else machine.logind.reboot)()
    except LogindError:
        return  # as it answered then; what followed is compared


def _prepare_for_shutdown(stage: ReplaySession, deed: Operation) -> None:
    active = deed.params.get("active", "true" in deed.command or not deed.command)
    stage.machine(deed).logind.emit_prepare_for_shutdown(bool(active))


def _schedule(stage: ReplaySession, deed: Operation) -> None:
    delay = deed.params.get("delay") or deed.params.get("in") or deed.params.get("after")
    minutes = _MINUTES.search(deed.command)
    if not isinstance(delay, str) and not minutes:
        raise ReplayError(f"action {deed.action}: its parameters {deed.params} do not say when")
    wait = parse_duration(delay) if isinstance(delay, str) else 60.0 * int(minutes[1] if minutes else 0)
    kind = "reboot" if " -r" in deed.command else "poweroff"
    stage.machine(deed).logind.schedule(deed.params.get("kind", kind), deed.t + wait)


def _partition(stage: ReplaySession, deed: Operation) -> None:
    if deed.params.get("from", "control-plane") not in ("control-plane", "everything-but-us"):
        raise ReplayError(f"action partition: the lab cannot cut a node off from {deed.params['from']}")
    stage.machine(deed).partition(deed.params.get("families") or FAMILIES)


def _hard_reboot(stage: ReplaySession, deed: Operation) -> None:
    stage.machine(deed).power_off()
    _schedule_power_on(stage, deed)


def _reboot(stage: ReplaySession, deed: Operation) -> None:
    """With the power-on pressed so that the kubelet starts when it did: how long a boot takes is no mechanism."""
    if any(at > deed.t for at in stage.recording.kubelet_starts(deed.node)):
        _shut_down(stage.machine(deed), "poweroff")
        _schedule_power_on(stage, deed)
    else:
        _shut_down(stage.machine(deed), "reboot")


def _schedule_power_on(stage: ReplaySession, deed: Operation) -> None:
    sim, machine = stage.cluster.sim, stage.machine(deed)
    boot = machine.spec.boot_seconds
    back = next((at for at in stage.recording.kubelet_starts(deed.node) if at > deed.t), deed.t + boot)

    def press() -> None:
        if machine.state == "on":
            sim.after(_POWER_ON_POLL, press)
        else:
            machine.power_on()

    sim.at(back - boot, press)


def _kubelet_restart(stage: ReplaySession, deed: Operation) -> None:
    """Inside a shutdown the new process races with the machine's end: it counts if it came to report Ready."""
    machine, recording = stage.machine(deed), stage.recording
    if not machine.logind.preparing_for_shutdown:
        machine.kubelet.restart()
        return
    machine.kubelet.stop()
    back = [at for at in recording.kubelet_starts(deed.node) if deed.t < at <= deed.t + _RESTART_WINDOW]
    if back and any(
        back[0] <= at <= deed.t + _RESTART_WINDOW for at in recording.kubelet_events(deed.node, "NodeReady")
    ):
        stage.cluster.sim.at(back[0], _kubelet_start, stage, deed)


def _kubelet_start(stage: ReplaySession, deed: Operation) -> None:
    if stage.machine(deed).state == "on":
        stage.machine(deed).kubelet.start()


def _runtime_restart(stage: ReplaySession, deed: Operation) -> None:
    stage.machine(deed).runtime.stop_service()
    stage.machine(deed).runtime.start_service()


def _thaw(stage: ReplaySession, deed: Operation) -> None:
    machine = stage.machine(deed)
    if machine.kubelet.is_frozen:
        machine.kubelet.thaw()


def _drain(stage: ReplaySession, deed: Operation) -> None:
    Drain(stage.cluster, deed.node, parse_duration(str(deed.params.get("timeout", "0"))), force=True)


_HOST: dict[str, _OperationFunc] = {
    "poweroff": lambda stage, deed: _shut_down(stage.machine(deed), "poweroff"),
    "reboot": _reboot,
    "hard-reboot": _hard_reboot,
    "power-cut": lambda stage, deed: stage.machine(deed).power_off(),
    "power-on": lambda stage, deed: stage.machine(deed).power_on(),
    "prepare-for-shutdown": _prepare_for_shutdown,
    "schedule-shutdown": _schedule,
    "cancel-shutdown": lambda stage, deed: stage.machine(deed).logind.cancel_scheduled(),
    "kubelet-stop": lambda stage, deed: stage.machine(deed).kubelet.stop(),
    "kubelet-start": _kubelet_start,
    "kubelet-restart": _kubelet_restart,
    "kubelet-kill": lambda stage, deed: stage.machine(deed).kubelet.kill(),
    "kubelet-freeze": lambda stage, deed: stage.machine(deed).kubelet.freeze(),
    "kubelet-thaw": _thaw,
    "runtime-stop": lambda stage, deed: stage.machine(deed).runtime.stop_service(),
    "runtime-start": lambda stage, deed: stage.machine(deed).runtime.start_service(),
    "runtime-restart": _runtime_restart,
    "dbus-restart": lambda stage, deed: stage.machine(deed).logind.restart_bus(),
    "logind-restart": lambda stage, deed: stage.machine(deed).logind.restart(),
    "partition": _partition,
    "heal": lambda stage, deed: stage.machine(deed).heal(),
}
_CLUSTER: dict[str, _OperationFunc] = {
    "drain": _drain,
    "controller-manager-restart": lambda stage, _deed: stage.cluster.controllers.restart(),
}
