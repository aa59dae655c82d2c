"""Cancel a scheduled shutdown before its time; afterwards nothing has happened."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import restore_kubelet_after_cancel
from chaos.facts.login1 import NO_SHUTDOWN_SCHEDULED, NOT_PREPARING
from chaos.model.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import boot_seen, fact_is, machine_off, readings_after
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline

_NO_SHUTDOWN_IN_PROGRESS = fact_is(
    "preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down"
)
_NO_SHUTDOWN_SCHEDULED = fact_is(
    "scheduled-shutdown", lambda v: v == NO_SHUTDOWN_SCHEDULED, "logind has nothing scheduled"
)


class Params(Model):
    """None."""


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Disproven by a machine that is off; proven by what logind says of itself."""
    if machine_off(timeline, step).status is ProofStatus.PROVEN:
        off = next(r for r in readings_after(timeline, step, "machine") if r.value == "off")
        return ProofResult(ProofStatus.DISPROVEN, f"{step.node} went off all the same", (off.seq,))
    if gone := boot_seen(timeline, step, "it went down all the same"):
        return gone
    preparing = _NO_SHUTDOWN_IN_PROGRESS.check(timeline, step)
    if preparing.status is not ProofStatus.UNPROVEN:
        return preparing
    return _NO_SHUTDOWN_SCHEDULED.check(timeline, step)


class CancelShutdown(Action):
    """``shutdown -c``. Inside the inhibitor window systemd before 257 answers 0 and goes down all the same."""

    name = "cancel-shutdown"
    summary = "cancel a scheduled shutdown"
    example = "{name: cancel, action: cancel-shutdown, target: victim, after: schedule + 20s}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("not-shutting-down", _check_cancelled),)
    proof_facts = ("preparing-for-shutdown", "scheduled-shutdown", "machine", "inhibitors", "kubelet-inhibitor")

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        unit = target.facts.get("kubelet-unit") or "kubelet.service"
        return {"unit": unit, "lock": bool(target.facts.get("kubelet-inhibitor"))}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("shutdown", "-c")),)

    def undo(self, memory: UndoState) -> Undo:
        """What was cancelled is not scheduled again. Inside the window systemd 257 does not tell the kubelet."""
        return restore_kubelet_after_cancel(memory)


ACTION = CancelShutdown()
