"""The contract of actions: every built-in action keeps it, and each breach is found."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from msgspec import Struct

from chaos.core.action import FactCheck, FailsafeTimer, Proof, Target, Undo, UndoStep
from chaos.core.command import HostCommand
from chaos.plugin.contract import check_action
from tests.plugin.outside.nodefall_sysctl import Params, State, Sysctl, check_set, parameter_fact
from tools.action_pages import ACTIONS, example_target

FACT = parameter_fact("vm.swappiness")
PARAMS = Params(key="vm.swappiness", value="10")
COUNTER = count()


def never_equal(self: Sysctl, target: Target, params: Params) -> State:
    return State(params.key, str(next(COUNTER)), "60", target.tag, target.max_duration)


def change_target(self: Sysctl, target: Target, params: Params) -> State:
    target.facts[FACT] = "20"  # type: ignore[index]
    return State(params.key, params.value, "60", target.tag, target.max_duration)


def unconditional_undo(self: Sysctl, state: State) -> Undo:
    step = UndoStep(HostCommand(("sysctl", "-w", "vm.swappiness=60")))
    return Undo((step,), (FactCheck(FACT, "60"),), disarm=f"nodefall-{state.tag}")


def unproven_undo(self: Sysctl, state: State) -> Undo:
    step = UndoStep(HostCommand(("sysctl", "-w", "vm.swappiness=60")), unless=FactCheck(FACT, "60"))
    return Undo((step,), disarm=f"nodefall-{state.tag}")


class MutableState(Struct):
    key: str
    value: str
    former: str
    tag: str
    seconds: float


def mutable_state(self: Sysctl, target: Target, params: Params) -> MutableState:
    return MutableState(params.key, params.value, "60", target.tag, target.max_duration)


def incomplete_json(self: Sysctl, state: State) -> dict[str, Any]:
    return {"key": state.key, "value": "", "former": state.former, "tag": state.tag, "seconds": state.seconds}


def timer(unit: str, seconds: float) -> Any:
    return lambda self, state: FailsafeTimer(unit, seconds, ("true",))


BREACHES: list[tuple[dict[str, Any], str]] = [
    ({"prepare": never_equal}, "prepare is not pure: it returned another state"),
    ({"prepare": change_target}, "prepare is not pure: it changed the target"),
    ({"prepare": mutable_state, "state": MutableState}, "the state is not frozen"),
    ({"encode_state": incomplete_json}, "the state does not survive JSON"),
    ({"undo": unconditional_undo}, "undo sends `sysctl -w vm.swappiness=60` also without inject"),
    ({"undo": unproven_undo}, "nothing proves the undo"),
    ({"failsafe_timer": timer("nodefall-other", 60.0)}, "undo disarms 'nodefall-run-swap', but the failsafe timer is"),
    ({"failsafe_timer": timer("nodefall-run-swap", 600.0)}, "the failsafe timer fires after 600 s, later than"),
    ({"failsafe_timer": lambda self, state: None}, "but the failsafe timer is ''"),
    ({"proofs": (Proof("sent", check_set, weak=True),)}, "the first proof is weak"),
    ({"proofs": ()}, "the first proof is weak, or there is none"),
    ({"summary": ""}, "there is no summary"),
    ({"example": "{action: other}"}, "the example is no step of this action"),
    ({"inject": lambda self, state: ()}, "inject returns no command"),
    ({"facts_for": lambda self, params: ("sysctl?key",)}, "'sysctl?key' is no reference of a fact"),
]


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_every_action_keeps_the_contract(name: str) -> None:
    check_action(ACTIONS[name], *example_target(ACTIONS[name]))


@pytest.mark.parametrize(("overrides", "breach"), BREACHES)
def test_a_breach_is_found(overrides: dict[str, Any], breach: str) -> None:
    action = type("Broken", (Sysctl,), overrides)()
    target = Target("n1", facts={FACT: "60"}, tag="run-swap", max_duration=300.0)
    with pytest.raises(AssertionError) as found:
        check_action(action, target, PARAMS)
    assert breach in str(found.value)
    assert str(found.value).startswith("action sysctl: ")
