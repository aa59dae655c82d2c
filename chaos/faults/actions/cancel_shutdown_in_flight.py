"""A shutdown cancelled after its start, while delay locks hold it up; supported by systemd 257 and later.

systemd then sends no PrepareForShutdown false, so a kubelet that received "true" stays "node is shutting down" until it
is restarted (facts 18, recording 27). Before 257 ``shutdown -c`` answers 0 and the machine still goes down.
"""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, Proof, ProofResult, StepRun, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import boot_seen, fact_is
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import KubeletState, capture_kubelet_state, restore_kubelet_after_cancel
from chaos.faults.readings.logind import NOT_PREPARING

_MIN_SYSTEMD = 257  # the first systemd that cancels a delayed shutdown


_NO_SHUTDOWN_IN_PROGRESS = fact_is(
    "preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down any more"
)


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by logind's own state in the same boot."""
    booted = boot_seen(timeline, step, "it still went down")
    return booted or _NO_SHUTDOWN_IN_PROGRESS.check(timeline, step)


class CancelShutdownInFlight(Action[NoParams, KubeletState]):
    """``shutdown -c`` while logind waits for locks. Undo restarts a kubelet that missed the cancellation."""

    name = "cancel-shutdown-in-flight"
    summary = "cancel a shutdown that has begun and waits for locks (systemd 257 and later)"
    example = "{name: cancel, action: cancel-shutdown-in-flight, target: victim, after: power-off + 4s}"
    params = NoParams
    state = KubeletState
    no_windows_reason = "Windows cannot cancel a shutdown that has begun"
    undo_kind = UndoKind.RESTORES
    stops_exec = True
    keeps_pods_running = True
    requires_logind = True
    proofs = (Proof("not-shutting-down", _check_cancelled),)
    proof_facts = ("preparing-for-shutdown", PseudoFact.MACHINE, "inhibitor-locks", "inhibitor-kubelet", "pid1-start")
    facts = ("systemd-version",)

    def prepare(self, target: Target, params: NoParams) -> KubeletState:  # noqa: ARG002 - no parameters
        version = target.require_fact("systemd-version", "only some systemds can cancel a shutdown that has begun")
        if version < _MIN_SYSTEMD:
            why = f"{target.node} has systemd {version}, which answers 0 and still goes down"
            raise Unsupported(
                why, hint=f"use systemd {_MIN_SYSTEMD} or later; cancel-shutdown shows what {version} does"
            )
        return capture_kubelet_state(target, "the kubelet must be restarted afterwards")

    def preconditions(self, state: KubeletState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("preparing-for-shutdown", "b true"),)

    def inject(self, state: KubeletState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("shutdown", "-c")),)

    def undo(self, state: KubeletState) -> Undo:
        return restore_kubelet_after_cancel(state)


ACTION = CancelShutdownInFlight()
