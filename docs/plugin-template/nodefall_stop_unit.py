"""Action ``stop-unit``: stop a systemd unit of the node, and start it again."""

from __future__ import annotations

from msgspec import Struct
from pydantic import Field

from chaos.extend.action import (
    NODE_READY,
    Action,
    FactCheck,
    FactRef,
    HostCommand,
    Model,
    Needs,
    Program,
    Proof,
    ProofResult,
    StepRun,
    Tag,
    Target,
    Timeline,
    Undo,
    UndoKind,
    UndoStep,
    UnitName,
    Unsupported,
    failsafe_timer,
    holds_until,
)

NODEFALL_CONTRACT = 1  # the version of the plug-in contract that this was written for


class Params(Model):
    """The keys of ``with`` in a step."""

    unit: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:-]*\.service$", description="the unit to stop")


class State(Struct, frozen=True):
    """Saved in the journal before the unit is stopped: all that undo needs, also after a crash.

    Undo from another machine reads it from a ConfigMap: texts that become arguments are constrained.
    """

    unit: UnitName
    tag: Tag
    seconds: float


def unit_state(unit: str) -> str:
    """Reference of the fact that reads the unit's state."""
    return str(FactRef("unit-state", {"unit": unit}))


def check_stopped(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a reading on the host; disproven when the unit runs again before the step was undone."""
    fact = unit_state(step.params["unit"])
    stopped = holds_until(fact, lambda state: state in ("inactive", "failed"), "systemd does not run the unit")
    return stopped.check(timeline, step)


def needs(params: Params) -> Needs:
    """What prepare and the proof read: the state of the unit."""
    fact = (unit_state(params.unit),)
    return Needs(facts=fact, proof_facts=fact)


def prepare(target: Target, params: Params) -> State:
    """What undo needs, from what was read of the host. Refuses a unit that is not active."""
    if target.require_fact(unit_state(params.unit), "only a unit that runs can be stopped") != "active":
        raise Unsupported(f"{target.node}: {params.unit} is not active")
    return State(params.unit, target.tag, target.max_duration)


def program(state: State) -> Program:
    """What is sent and what takes it back.

    A saved plan may be old: the unit must still be active, as undo must not start a unit that was stopped since. The
    unit may be one that the kubelet depends on: the node is restored when it is Ready, too.
    """
    active = FactCheck(unit_state(state.unit), "active")
    start = ("systemctl", "start", state.unit)
    return Program(
        commands=(HostCommand(("systemctl", "stop", state.unit)),),
        undo=Undo((UndoStep(HostCommand(start), unless=active),), proof=(active, NODE_READY)),
        preconditions=(active,),
        failsafe=failsafe_timer(state, *start),
    )


ACTION = Action(
    name="stop-unit",
    summary="stop a systemd unit",
    description="``systemctl stop``; a failsafe timer starts the unit again if nodefall cannot.",
    example="{name: stop, action: stop-unit, target: victim, with: {unit: cron.service}}",
    params=Params,
    state=State,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("unit-stopped", check_stopped),),
    needs=needs,
    prepare=prepare,
    program=program,
)
