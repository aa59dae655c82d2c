"""What dbus-restart and logind-restart share: the locks before and after, and whose unit gets its lock back."""

from __future__ import annotations

from typing import Any

from chaos.model.action import FactCheck, ProofResult, ProofStatus, StepRun, Target, Undo, UndoState, UndoStep
from chaos.model.command import HostCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import last_reading_before, no_proof, readings_after, same_boot
from chaos.model.timeline import Timeline

FACTS = ("bus-processes", "lock-holders", "lock-units")
PROBES = ("bus-processes", "lock-holders", "inhibitors", "kubelet-inhibitor")
_GRACE_SECONDS = 15.0  # seconds in which holders take their locks again by themselves; the kubelet tries every second


def capture_bus_state(target: Target) -> UndoState:
    """The units to restart should their locks be lost. Raises Unsupported where a holder could not be restarted."""
    processes = target.require_fact("bus-processes", "D-Bus and logind are what is restarted")
    holders = target.require_fact("lock-holders", "locks may be lost, and must come back")
    units = target.require_fact("lock-units", "locks may be lost, and must come back")
    if strangers := [who for who in holders if not units.get(who)]:
        raise Unsupported(
            f"{target.node}: {', '.join(strangers)} holds a lock and is no service that could be restarted",
            hint="see systemd-inhibit --list on the host",
        )
    return {"bus": processes["bus-unit"], "holders": holders, "units": sorted({units[who] for who in holders})}


def restart(unit: str) -> HostCommand:
    return HostCommand(("systemctl", "restart", unit))


def restore_inhibitor(memory: UndoState) -> Undo:
    """Whoever lost its lock is restarted, and holds it again."""
    held = FactCheck("lock-holders", memory["holders"])
    steps = tuple(UndoStep(restart(unit), unless=held, grace_seconds=_GRACE_SECONDS) for unit in memory["units"])
    return Undo(steps, (held, FactCheck("node-ready", True)))


def process_replaced(which: str, timeline: Timeline, step: StepRun) -> ProofResult:
    """``which`` is bus or logind: its process differs from the one before the step; lost locks are told."""
    before = last_reading_before(timeline, step, "bus-processes")
    for reading in readings_after(timeline, step, "bus-processes"):
        old, new = _pid(before.value if before else None, which), _pid(reading.value, which)
        if before and old and new and old != new and same_boot(timeline, step, reading):
            because = (
                f"{which} of {step.node} is another process ({old}, then {new}){_describe_lost_locks(timeline, step)}"
            )
            return ProofResult(ProofStatus.PROVEN, because, (before.seq, reading.seq))
    return no_proof(f"no new process of {which} was seen on {step.node}")


def _pid(value: Any, which: str) -> int | None:
    return value.get(which) if isinstance(value, dict) else None


def _describe_lost_locks(timeline: Timeline, step: StepRun) -> str:
    before = last_reading_before(timeline, step, "lock-holders")
    after = readings_after(timeline, step, "lock-holders")
    if before is None or not after or not isinstance(before.value, list) or not isinstance(after[0].value, list):
        return ""
    lost = [who for who in before.value if who not in after[0].value]
    return f"; locks lost: {', '.join(lost)}" if lost else "; no lock was lost"
