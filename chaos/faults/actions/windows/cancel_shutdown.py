"""A scheduled shutdown cancelled in its countdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from chaos.core.action import Action, FactCheck, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command
from chaos.core.duration import format_duration, parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import boot_seen, fact_is, machine_off, readings_after
from chaos.core.fact import FactRef
from chaos.core.node_mark import RunName
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import NoParams
from chaos.faults.actions.windows._shutdown import CANCEL
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED

_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown")
_NONE_PENDING = fact_is("scheduled-shutdown", lambda v: v == NO_SHUTDOWN_SCHEDULED, "Windows has none pending")


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Disproven by a machine that is off or has booted; proven by the record of the abort."""
    if machine_off(timeline, step).status is ProofStatus.PROVEN:
        off = next(r for r in readings_after(timeline, step, PseudoFact.MACHINE) if r.value == "off")
        return ProofResult(ProofStatus.DISPROVEN, f"{step.node} still powered off", (off.seq,))
    return boot_seen(timeline, step, "it still went down") or _NONE_PENDING.check(timeline, step)


class CancelState(Struct, frozen=True):
    """``run``: only its own shutdown is cancelled."""

    run: RunName


class CancelShutdown(Action[NoParams, CancelState]):
    """``shutdown.exe /a``. In the countdown only: once Windows notifies its services, nothing cancels a shutdown."""

    name = "cancel-shutdown"
    summary = "cancel the shutdown that a step of the run has scheduled"
    example = "{name: cancel, action: cancel-shutdown, target: victim, after: schedule + 20s}"
    params = NoParams
    state = CancelState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proofs = (Proof("not-shutting-down", _check_cancelled),)
    proof_facts = ("scheduled-shutdown", PseudoFact.MACHINE, "boot-id")

    def prepare(self, target: Target, params: NoParams) -> CancelState:  # noqa: ARG002 - no parameters
        return CancelState(target.run)

    def check_order(self, action: str, params: Mapping[str, Any], seconds: float) -> None:
        countdown = parse_duration(params["in"]) if action == "schedule-shutdown" else 0.0
        if action in _SHUTDOWNS and seconds >= countdown:
            raise Unsupported(
                f"it would come {format_duration(seconds)} after a shutdown ({action}) with a countdown of "
                f"{format_duration(countdown)}, and Windows cancels none whose countdown is over: its services have "
                "been notified by then",
                hint="use schedule-shutdown, with more time (in) than this step leaves it (after)",
            )

    def inject(self, state: CancelState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (CANCEL,)

    def preconditions(self, state: CancelState) -> tuple[FactCheck, ...]:
        return (FactCheck(str(FactRef("nodefall-shutdown", {"run": state.run})), True),)

    def undo(self, state: CancelState) -> Undo:  # noqa: ARG002 - the kubelet has not heard of the shutdown
        """The cancelled shutdown is not scheduled again."""
        return Undo(proof=(FactCheck(PseudoFact.NODE_READY, True),))


ACTION = CancelShutdown()
