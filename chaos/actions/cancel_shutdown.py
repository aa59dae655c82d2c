"""Cancel a scheduled shutdown before its time; afterwards nothing has happened."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import kubelet_told
from chaos.facts.login1 import NOT_PREPARING, NOTHING_SCHEDULED
from chaos.model.action import Action, Finding, Memory, Proof, Shown, StepRun, Target, Undo, UndoKind
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import booted, fact_is, machine_off, readings_after
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline

_NOT_PREPARING = fact_is("preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down")
_NOTHING_SCHEDULED = fact_is("scheduled-shutdown", lambda v: v == NOTHING_SCHEDULED, "logind has nothing scheduled")


class Params(Model):
    """None."""


def _cancelled(timeline: Timeline, step: StepRun) -> Finding:
    """Disproven by a machine that is off; proven by what logind says of itself."""
    if machine_off(timeline, step).shown is Shown.PROVEN:
        off = next(r for r in readings_after(timeline, step, "machine") if r.value == "off")
        return Finding(Shown.DISPROVEN, f"{step.node} went off all the same", (off.seq,))
    if gone := booted(timeline, step, "it went down all the same"):
        return gone
    preparing = _NOT_PREPARING.check(timeline, step)
    if preparing.shown is not Shown.NOT_SHOWN:
        return preparing
    return _NOTHING_SCHEDULED.check(timeline, step)


class CancelShutdown(Action):
    """``shutdown -c``. Inside the inhibitor window systemd before 257 answers 0 and goes down all the same."""

    name = "cancel-shutdown"
    summary = "cancel a scheduled shutdown"
    example = "{name: cancel, action: cancel-shutdown, target: victim, after: schedule + 20s}"
    params = Params
    undo_kind = UndoKind.RESTORES
    gentle = True
    asks_logind = True
    proofs = (Proof("not-shutting-down", _cancelled),)
    probes = ("preparing-for-shutdown", "scheduled-shutdown", "machine", "inhibitors", "kubelet-inhibitor")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        unit = target.facts.get("kubelet-unit") or "kubelet.service"
        return {"unit": unit, "lock": bool(target.facts.get("kubelet-inhibitor"))}

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("shutdown", "-c")),)

    def undo(self, memory: Memory) -> Undo:
        """What was cancelled is not scheduled again. Inside the window systemd 257 does not tell the kubelet."""
        return kubelet_told(memory)


ACTION = CancelShutdown()
