"""Action ``stop-unit``: stop a systemd unit of the node, and start it again."""

from __future__ import annotations

from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Proof,
    ProofResult,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_unit,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.field_types import Model
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until
from chaos.core.fact import FactRef
from chaos.core.timeline import Timeline


class Params(Model):
    """The keys of ``with`` in a step."""

    unit: str = Field(pattern=r"^[\w@.:-]+\.service$", description="the unit to stop")


class State(Struct, frozen=True):
    """Saved in the journal before the unit is stopped: all that undo needs, also after a crash."""

    unit: str
    tag: str
    seconds: float


def unit_state(unit: str) -> str:
    """Reference of the fact that reads the unit's state."""
    return str(FactRef("unit-state", {"unit": unit}))


def check_stopped(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a reading on the host; disproven when the unit runs again before the step was undone."""
    fact = unit_state(step.params["unit"])
    stopped = holds_until(fact, lambda state: state in ("inactive", "failed"), "systemd does not run the unit")
    return stopped.check(timeline, step)


class StopUnit(Action[Params, State]):
    """``systemctl stop``; a failsafe timer starts the unit again if nodefall cannot."""

    name = "stop-unit"
    summary = "stop a systemd unit"
    example = "{name: stop, action: stop-unit, target: victim, with: {unit: cron.service}}"
    params = Params
    state = State
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proofs = (Proof("unit-stopped", check_stopped),)

    def facts_for(self, params: Params) -> tuple[str, ...]:
        return (unit_state(params.unit),)

    def proof_facts_for(self, params: Params) -> tuple[str, ...]:
        return (unit_state(params.unit),)

    def prepare(self, target: Target, params: Params) -> State:
        if target.require_fact(unit_state(params.unit), "only a unit that runs can be stopped") != "active":
            raise Unsupported(f"{target.node}: {params.unit} is not active")
        return State(params.unit, target.tag, target.max_duration)

    def inject(self, state: State) -> tuple[Command, ...]:
        return (HostCommand(("systemctl", "stop", state.unit)),)

    def preconditions(self, state: State) -> tuple[FactCheck, ...]:
        """What prepare relied on; a saved plan may be old, and undo must not start a unit that was stopped since."""
        return (FactCheck(unit_state(state.unit), "active"),)

    def failsafe_timer(self, state: State) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, ("systemctl", "start", state.unit))

    def undo(self, state: State) -> Undo:
        active = FactCheck(unit_state(state.unit), "active")
        start = UndoStep(HostCommand(("systemctl", "start", state.unit)), unless=active)
        # The unit may be one that the kubelet depends on: the node is restored when it is Ready, too.
        proof = (active, FactCheck(PseudoFact.NODE_READY, True))
        return Undo((start,), proof, disarm=failsafe_unit(state.tag))


ACTION = StopUnit()
