"""The contract of actions: every built-in action keeps it, and each breach is found."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import count
from typing import Any

import pytest
from msgspec import Struct

from chaos.core.action import Action, AnyAction, FactCheck, FailsafeTimer, Needs, Program, Proof, Target, Undo, UndoStep
from chaos.core.command import HostCommand
from chaos.testing import check_action
from tests.api.outside.nodefall_sysctl import ACTION, Params, State, check_set, parameter_fact, program
from tests.kit.actionkit import WITHOUT_PRECONDITIONS
from tools.action_pages import ACTIONS, example_target

FACT = parameter_fact("vm.swappiness")
PARAMS = Params(key="vm.swappiness", value="10")
COUNTER = count()


def never_equal(target: Target, params: Params) -> State:
    return State(params.key, str(next(COUNTER)), "60", target.tag, target.max_duration)


def change_target(target: Target, params: Params) -> State:
    target.facts[FACT] = "20"  # type: ignore[index]
    return State(params.key, params.value, "60", target.tag, target.max_duration)


class MutableState(Struct):
    key: str
    value: str
    former: str
    tag: str
    seconds: float


def mutable_state(target: Target, params: Params) -> MutableState:
    return MutableState(params.key, params.value, "60", target.tag, target.max_duration)


class FreeState(Struct, frozen=True):
    """Anybody who can write the ConfigMap of a pending undo chooses the key."""

    key: str


def free_state(_: Target, params: Params) -> FreeState:
    return FreeState(params.key)


def free_program(state: FreeState) -> Program:
    restore = UndoStep(HostCommand(("sysctl", "-w", f"{state.key}=60")), unless=FactCheck(FACT, "60"))
    check = (FactCheck(FACT, "60"),)
    return Program((RESTORE,), Undo((restore,), check), preconditions=check)


class Words(Struct, frozen=True):
    """JSON makes a list of a tuple, and no type says that it is to become one again."""

    words: Any


RESTORE = HostCommand(("sysctl", "-w", "vm.swappiness=60"))


def changed(**parts: Any) -> dict[str, Any]:
    """The declaration of a program of which some parts are others."""
    return {"program": lambda state: replace(program(state), **parts)}


def timer(unit: str, seconds: float) -> FailsafeTimer:
    return FailsafeTimer(unit, seconds, ("true",))


BREACHES: list[tuple[dict[str, Any], str]] = [
    ({"prepare": never_equal}, "prepare is not pure: it returned another state"),
    ({"prepare": change_target}, "prepare is not pure: it changed the target"),
    ({"prepare": mutable_state, "state": MutableState}, "the state is not frozen"),
    (
        {"prepare": lambda *_: Words(("a",)), "state": Words, "program": lambda _: Program((RESTORE,))},
        "the state does not survive JSON",
    ),
    ({"program": lambda _: Program((HostCommand((str(next(COUNTER)),)),))}, "the program differs after the state"),
    (
        changed(undo=Undo((UndoStep(RESTORE),), (FactCheck(FACT, "60"),))),
        "undo sends `sysctl -w vm.swappiness=60` also",
    ),
    (changed(undo=Undo((UndoStep(RESTORE, unless=FactCheck(FACT, "60")),))), "nothing proves the undo"),
    (changed(failsafe=timer("nodefall-other", 60.0)), "the failsafe timer is nodefall-other, not nodefall-run-swap"),
    (changed(failsafe=timer("nodefall-run-swap", 600.0)), "the failsafe timer fires after 600 s, later than"),
    ({"proofs": (Proof("sent", check_set, weak=True),)}, "the first proof is weak"),
    (changed(preconditions=()), f"undo restores the value that {FACT} had when the step was planned"),
    ({"undo_kind": None}, "undo_kind is not a value of UndoKind"),
    ({"example": "{action: sysctl, with: {kee: vm.swappiness}}"}, "the example has other parameters: "),
    ({"example": "{action: [}"}, "the example is not YAML"),
    (
        {"state": FreeState, "prepare": free_state, "program": free_program},
        "undo runs with any text as the state's key",
    ),
    ({"proofs": ()}, "the first proof is weak, or there is none"),
    ({"summary": ""}, "there is no summary"),
    ({"example": "{action: other}"}, "the example is no step of this action"),
    (changed(commands=()), "the program has no command"),
    ({"needs": Needs(("sysctl?key",))}, "'sysctl?key' is no reference of a fact"),
]


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_every_action_keeps_the_contract(name: str) -> None:
    reason = WITHOUT_PRECONDITIONS.get(name, "")
    check_action(ACTIONS[name], *example_target(ACTIONS[name]), without_preconditions=reason)


@pytest.mark.parametrize(("overrides", "breach"), BREACHES)
def test_a_breach_is_found(overrides: dict[str, Any], breach: str) -> None:
    action: AnyAction = replace(ACTION, **overrides)
    target = Target("n1", facts={FACT: "60"}, tag="run-swap", max_duration=300.0)
    with pytest.raises(AssertionError) as found:
        check_action(action, target, PARAMS)
    assert breach in str(found.value)
    assert str(found.value).startswith("action sysctl: ")


def test_a_misspelt_hook_is_found() -> None:
    class Misspelt(Action[Params, State]):
        def chek_order(self) -> None: ...

    action = Misspelt(**{field.name: getattr(ACTION, field.name) for field in fields(Action)})
    target = Target("n1", facts={FACT: "60"}, tag="run-swap", max_duration=300.0)
    with pytest.raises(AssertionError, match="an action has no chek_order: write check_order"):
        check_action(action, target, PARAMS)
