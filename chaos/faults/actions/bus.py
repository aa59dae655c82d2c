"""A restart of D-Bus or of logind, with which holders of inhibitor locks may lose them; and how they are restored."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import last_reading_before, no_proof, readings_after, same_boot
from chaos.core.node_mark import UnitName
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import NoParams
from chaos.faults.readings.logind import LOGIND

_NEEDS = Needs(
    ("bus-processes", "inhibitor-holders", "inhibitor-units"),
    ("bus-processes", "inhibitor-holders", "inhibitor-locks", "inhibitor-kubelet"),
    logind=True,
)
_GRACE_SECONDS = 15.0  # for holders to take their locks again without a restart; the kubelet retries every second


class BusState(Struct, frozen=True):
    """The unit of D-Bus, the holders of inhibitor locks, and their units."""

    bus_unit: UnitName
    holders: list[str]
    units: list[UnitName]


def _prepare(target: Target, _: NoParams) -> BusState:
    """Capture the units to restart if their locks are lost. Raises Unsupported if a holder cannot be restarted."""
    processes = target.require_fact("bus-processes", "the step restarts D-Bus or logind")
    holders = target.require_fact("inhibitor-holders", "locks may be lost and must be restored")
    units = target.require_fact("inhibitor-units", "locks may be lost and must be restored")
    if strangers := [holder for holder in holders if not units.get(holder)]:
        raise Unsupported(
            f"{target.node}: {', '.join(strangers)} holds a lock and is not a service that can be restarted",
            hint="see systemd-inhibit --list on the host",
        )
    return BusState(processes["bus-unit"], list(holders), sorted({units[holder] for holder in holders}))


def _restart(unit: str, state: BusState) -> Program:
    """The undo restarts the units whose locks are lost, until all former holders hold a lock again."""
    held = FactCheck("inhibitor-holders", state.holders)
    steps = (UndoStep(_systemctl(unit), unless=held, grace_seconds=_GRACE_SECONDS) for unit in state.units)
    return Program((_systemctl(unit),), Undo(tuple(steps), (held, NODE_READY)))


def _systemctl(unit: str) -> HostCommand:
    return HostCommand(("systemctl", "restart", unit))


def _check_replaced(process: str, timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a new process ID of ``process`` (bus or logind); the reason lists the locks that were lost."""
    before = last_reading_before(timeline, step, "bus-processes")
    for reading in readings_after(timeline, step, "bus-processes"):
        old, new = _pid(before.value if before else None, process), _pid(reading.value, process)
        if before and old and new and old != new and same_boot(timeline, step, reading):
            locks = _describe_lost_locks(timeline, step)
            because = f"{process} of {step.node} is another process ({old}, then {new}){locks}"
            return ProofResult(ProofStatus.PROVEN, because, (before.seq, reading.seq))
    return no_proof(f"no new process of {process} was seen on {step.node}")


def _pid(value: Any, process: str) -> int | None:
    return value.get(process) if isinstance(value, dict) else None


def _describe_lost_locks(timeline: Timeline, step: StepRun) -> str:
    before = last_reading_before(timeline, step, "inhibitor-holders")
    after = readings_after(timeline, step, "inhibitor-holders")
    if before is None or not after or not isinstance(before.value, list) or not isinstance(after[0].value, list):
        return ""
    lost = [holder for holder in before.value if holder not in after[0].value]
    return f"; locks lost: {', '.join(lost)}" if lost else "; no lock was lost"


DBUS_RESTART = Action(
    name="dbus-restart",
    summary="restart D-Bus, to find out which programs lose their shutdown lock",
    description="""
    The kubelet reconnects every second and takes a new lock. Signals that are sent in the meantime are lost (facts
    1.1).
    """,
    example="{name: restart, action: dbus-restart, target: victim}",
    params=NoParams,
    state=BusState,
    no_windows_reason="Windows has no D-Bus",
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("another-process", partial(_check_replaced, "bus")),),
    needs=_NEEDS,
    prepare=_prepare,
    program=lambda state: _restart(state.bus_unit, state),
)
LOGIND_RESTART = Action(
    name="logind-restart",
    summary="restart logind, to find out which programs lose their shutdown lock",
    description="Logind keeps its locks across a restart. A shutdown that it was delaying is dropped.",
    example="{name: restart, action: logind-restart, target: victim}",
    params=NoParams,
    state=BusState,
    no_windows_reason="Windows has no logind",
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("another-process", partial(_check_replaced, "logind")),),
    needs=_NEEDS,
    prepare=_prepare,
    program=lambda state: _restart(LOGIND, state),
)
