"""Action ``sysctl``: set a kernel parameter of the node, and restore its former value.

The first action that was written from docs/plugins.md alone. Its fact ``sysctl`` is built in.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct
from pydantic import AfterValidator, Field

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
    Unsupported,
    failsafe_timer,
    holds_until,
)

NODEFALL_CONTRACT = 1


def _key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_:@-]+)+", text):
        raise ValueError(f"{text!r} is not a kernel parameter; write vm.swappiness")
    return text


def _value(text: str) -> str:
    if not text.split():
        raise ValueError("a kernel parameter cannot be set to nothing")
    return text


class Params(Model):
    """The keys of ``with`` in a step."""

    key: Annotated[str, AfterValidator(_key)] = Field(description="the kernel parameter, as vm.swappiness")
    value: Annotated[str, AfterValidator(_value)] = Field(description="its value during the step, as text: in quotes")


_WORD = r"(?:-?[0-9]+|[A-Za-z0-9_][A-Za-z0-9_.:/,+-]*)"


class State(Struct, frozen=True):
    """Saved in the journal before the parameter is set: all that undo needs, also after a crash."""

    key: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_:@-]+)+\Z")]
    value: str
    former: Annotated[str, Meta(pattern=rf"\A{_WORD}(?: {_WORD})*\Z")]
    tag: Tag
    seconds: float


def parameter_fact(key: str) -> str:
    """Reference of the fact that reads the parameter."""
    return str(FactRef("sysctl", {"key": key}))


def normalize(value: str) -> str:
    """``value`` as the fact ``sysctl`` returns it: several numbers are separated by one space."""
    return " ".join(value.split())


def check_set(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a reading on the host; disproven when the parameter changes again before the step was undone."""
    expected = normalize(str(step.params["value"]))
    fact = parameter_fact(step.params["key"])
    return holds_until(fact, lambda value: value == expected, "the kernel has the new value").check(timeline, step)


def write_argv(key: str, value: str) -> tuple[str, ...]:
    """Program and arguments that set a parameter."""
    return ("sysctl", "-w", f"{key}={value}")


def needs(params: Params) -> Needs:
    fact = (parameter_fact(params.key),)
    return Needs(facts=fact, proof_facts=fact)


def prepare(target: Target, params: Params) -> State:
    former = target.require_fact(parameter_fact(params.key), "only a kernel parameter that exists can be set")
    value = normalize(params.value)
    if former == value:
        raise Unsupported(f"{target.node}: {params.key} is {value} already", hint="choose another value")
    return State(params.key, value, former, target.tag, target.max_duration)


def program(state: State) -> Program:
    """Undo restores ``former``: a saved plan must not inject where that is no longer the value.

    A parameter of the network may have cost the node its connection to the API server.
    """
    former = FactCheck(parameter_fact(state.key), state.former)
    restore = write_argv(state.key, state.former)
    return Program(
        commands=(HostCommand(write_argv(state.key, state.value)),),
        undo=Undo((UndoStep(HostCommand(restore), unless=former),), proof=(former, NODE_READY)),
        preconditions=(former,),
        failsafe=failsafe_timer(state, *restore),
    )


ACTION = Action(
    name="sysctl",
    summary="set a kernel parameter",
    description="``sysctl -w``; a failsafe timer restores the former value if nodefall cannot.",
    example='{name: swap, action: sysctl, target: victim, with: {key: vm.swappiness, value: "10"}}',
    params=Params,
    state=State,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    may_disconnect=True,  # as net.ipv6.conf.all.disable_ipv6 does
    proofs=(Proof("parameter-set", check_set),),
    needs=needs,
    prepare=prepare,
    program=program,
)
