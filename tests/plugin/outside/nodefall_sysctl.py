"""Action ``sysctl``: set a kernel parameter of the node, and restore its former value.

The first action that was written from docs/plugins.md alone. Its fact ``sysctl`` is built in.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Struct
from pydantic import AfterValidator, Field

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
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until
from chaos.core.fact import FactRef
from chaos.core.field_types import Model
from chaos.core.timeline import Timeline


def _key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_:@-]+)+", text):
        raise ValueError(f"{text!r} is no kernel parameter; write vm.swappiness")
    return text


def _value(text: str) -> str:
    if not text.split():
        raise ValueError("a kernel parameter cannot be set to nothing")
    return text


class Params(Model):
    """The keys of ``with`` in a step."""

    key: Annotated[str, AfterValidator(_key)] = Field(description="the kernel parameter, as vm.swappiness")
    value: Annotated[str, AfterValidator(_value)] = Field(description="its value during the step, as text: in quotes")


class State(Struct, frozen=True):
    """Saved in the journal before the parameter is set: all that undo needs, also after a crash."""

    key: str
    value: str
    former: str
    tag: str
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


class Sysctl(Action[Params, State]):
    """``sysctl -w``; a failsafe timer restores the former value if nodefall cannot."""

    name = "sysctl"
    summary = "set a kernel parameter"
    example = '{name: swap, action: sysctl, target: victim, with: {key: vm.swappiness, value: "10"}}'
    params = Params
    state = State
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    may_disconnect = True  # as net.ipv6.conf.all.disable_ipv6 does
    proofs = (Proof("parameter-set", check_set),)

    def facts_for(self, params: Params) -> tuple[str, ...]:
        return (parameter_fact(params.key),)

    def proof_facts_for(self, params: Params) -> tuple[str, ...]:
        return (parameter_fact(params.key),)

    def prepare(self, target: Target, params: Params) -> State:
        former = target.require_fact(parameter_fact(params.key), "only a kernel parameter that exists can be set")
        value = normalize(params.value)
        if former == value:
            raise Unsupported(f"{target.node}: {params.key} is {value} already", hint="choose another value")
        return State(params.key, value, former, target.tag, target.max_duration)

    def inject(self, state: State) -> tuple[Command, ...]:
        return (HostCommand(write_argv(state.key, state.value)),)

    def preconditions(self, state: State) -> tuple[FactCheck, ...]:
        """Undo restores ``former``: a saved plan must not inject where that is no longer the value."""
        return (FactCheck(parameter_fact(state.key), state.former),)

    def failsafe_timer(self, state: State) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, write_argv(state.key, state.former))

    def undo(self, state: State) -> Undo:
        restored = FactCheck(parameter_fact(state.key), state.former)
        step = UndoStep(HostCommand(write_argv(state.key, state.former)), unless=restored)
        # A parameter of the network may have cost the node its connection to the API server.
        return Undo((step,), (restored, FactCheck(PseudoFact.NODE_READY, True)), disarm=failsafe_unit(state.tag))


ACTION = Sysctl()
