"""Operations of a recording whose outcome was chance in the recorded cluster, such that it is repeated."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.lab.objects import name_of, namespace_of
from chaos.lab.recorded.build import Session
from chaos.lab.recorded.operations import (
    OPERATIONS,
    PRESSURES,
    RESTART_WINDOW,
    OperationFunc,
    Pressure,
    drain,
    start_if_on,
)
from chaos.lab.recorded.recording import Operation
from chaos.lab.spec import parse_duration
from tools.replay.recorded_choices import condition_time, eviction_times, first_round, last_short, rejections_after
from tools.replay.settings import is_lost_after


def _shut_down(session: Session, operation: Operation) -> None:
    """Shut down; as many pods are rejected meanwhile as were."""
    rejections = rejections_after(session.recording, operation)
    if rejections is not None:
        session.machine(operation).kubelet.choose_rejections(rejections)
    OPERATIONS[operation.action](session, operation)


def _prepare_for_shutdown(session: Session, operation: Operation) -> None:
    """Signal; the kubelet loses its lock if it did."""
    lost = is_lost_after(session.recording, operation)
    if lost is not None:
        session.machine(operation).kubelet.choose_lock_loss(lost)
    OPERATIONS[operation.action](session, operation)


def _kubelet_restart(session: Session, operation: Operation) -> None:
    """Restart the kubelet. During a shutdown, where the new process may be too late, only if it reported Ready."""
    machine, recording = session.machine(operation), session.recording
    if not machine.logind.preparing_for_shutdown:
        machine.kubelet.restart()
        return
    machine.kubelet.stop()
    end = operation.t + RESTART_WINDOW
    starts = [at for at in recording.kubelet_starts(operation.node) if operation.t < at <= end]
    if starts and any(starts[0] <= at <= end for at in recording.kubelet_events(operation.node, "NodeReady")):
        session.cluster.sim.at(starts[0], start_if_on, session, operation)


def _begin_pressure(kind: Pressure) -> OperationFunc:
    """Make a resource short such that the kubelet notices it, reports it and stops noticing it as recorded."""

    def apply(session: Session, operation: Operation) -> None:
        machine, recording, sim = session.machine(operation), session.recording, session.cluster.sim
        noticed, reported = (when(recording, operation, kind) for when in (first_round, condition_time))
        if noticed is None or reported is None:
            machine.pressure.add(kind)
            return
        sim.at(noticed, machine.pressure.add, kind)
        sim.at(noticed, machine.kubelet.observe_pressure)
        sim.at(reported, machine.kubelet.report_node)
        end = last_short(recording, operation, kind)
        if end is None and isinstance(operation.params.get("duration"), str):
            end = operation.t + parse_duration(operation.params["duration"])
        if end is not None:
            sim.at(max(end, noticed), machine.pressure.discard, kind)

    return apply


def _drain(session: Session, operation: Operation) -> None:
    """Drain in the recorded order."""
    evicted = eviction_times(session.recording, operation.t)
    drain(session, operation).order = lambda pod: evicted.get((namespace_of(pod), name_of(pod)), float("inf"))


REPEATED: Mapping[str, OperationFunc] = {
    "poweroff": _shut_down,
    "reboot": _shut_down,
    "prepare-for-shutdown": _prepare_for_shutdown,
    "kubelet-restart": _kubelet_restart,
    **{f"{kind}-pressure": _begin_pressure(kind) for kind in PRESSURES},
    "drain": _drain,
}
