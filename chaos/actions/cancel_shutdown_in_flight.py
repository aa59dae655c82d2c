"""A shutdown cancelled after it has begun, while delay locks hold it up: systemd 257 and later can, the kubelet can't.

systemd then says no PrepareForShutdown false, so a kubelet that heard "true" stays "node is shutting down" until it is
restarted (facts 18, recording 27). Before 257 ``shutdown -c`` answers 0 and the machine goes down all the same.
"""

from __future__ import annotations

from typing import Any

from chaos.actions._service import restore_kubelet_after_cancel
from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import Action, FactCheck, Proof, ProofResult, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, HostCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import boot_seen, fact_is
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline

_MIN_SYSTEMD = 257  # the first systemd that cancels a delayed shutdown


_NO_SHUTDOWN_IN_PROGRESS = fact_is(
    "preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down any more"
)


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """What logind says of itself, in the same boot."""
    return boot_seen(timeline, step, "it went down all the same") or _NO_SHUTDOWN_IN_PROGRESS.check(timeline, step)


class Params(Model):
    """None."""


class CancelShutdownInFlight(Action):
    """``shutdown -c`` while logind waits for locks. Undo restarts a kubelet that was never told."""

    name = "cancel-shutdown-in-flight"
    summary = "cancel a shutdown that has begun and waits for locks (systemd 257 and later)"
    example = "{name: cancel, action: cancel-shutdown-in-flight, target: victim, after: power-off + 4s}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("not-shutting-down", _check_cancelled),)
    proof_facts = ("preparing-for-shutdown", "machine", "inhibitors", "kubelet-inhibitor", "pid1-start")
    facts = ("systemd-version",)

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        version = target.require_fact("systemd-version", "only some systemds can cancel a shutdown that has begun")
        if version < _MIN_SYSTEMD:
            why = f"{target.node} has systemd {version}, which answers 0 and goes down all the same"
            raise Unsupported(why, hint=f"it takes systemd {_MIN_SYSTEMD}; cancel-shutdown shows what {version} does")
        unit = target.require_fact("kubelet-unit", "the kubelet must be restarted afterwards")
        return {"unit": unit, "lock": bool(target.facts.get("kubelet-inhibitor"))}

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("preparing-for-shutdown", "b true"),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("shutdown", "-c")),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_kubelet_after_cancel(memory)


ACTION = CancelShutdownInFlight()
