"""Commands, refusals and undo of each action, and the contract of all actions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from chaos.core.action import Target, Undo
from chaos.core.errors import Unsupported
from chaos.core.fact import find_fact
from tests.kit.action_rows import INVALID, PARSED, REFUSED, SENT, UNDONE
from tests.kit.actionkit import ACTIONS, BARE, NODE, describe, prepare
from tools.action_pages import OWN_FACTS, prepare_example


@pytest.mark.parametrize(("name", "given", "node", "commands"), SENT)
def test_commands(name: str, given: dict[str, Any], node: Target, commands: list[str]) -> None:
    assert [str(c) for c in ACTIONS[name].program(prepare(name, given, node)).commands] == commands


@pytest.mark.parametrize(("name", "given", "node", "why"), REFUSED)
def test_refusals(name: str, given: dict[str, Any], node: Target, why: str) -> None:
    with pytest.raises(Unsupported) as refused:
        prepare(name, given, node)
    assert why in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(("reference", "output", "value"), PARSED)
def test_facts_of_actions(reference: str, output: str, value: Any) -> None:
    fact = find_fact(OWN_FACTS, reference)
    if value is ValueError:
        with pytest.raises(ValueError, match="cannot parse"):
            fact.parse(output, 0)
    else:
        assert fact.parse(output, 0) == value


@pytest.mark.parametrize(("name", "given"), INVALID)
def test_invalid_parameters(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS[name].params.model_validate(given)


@pytest.mark.parametrize(("name", "given", "node", "steps", "proof"), UNDONE)
def test_undo(name: str, given: dict[str, Any], node: Target, steps: list[str], proof: list[str]) -> None:
    undo = ACTIONS[name].program(prepare(name, given, node)).undo
    assert [f"{s.command} unless {s.unless}" for s in undo.steps] == steps
    assert [str(c) for c in undo.proof] == proof


def test_a_failsafe_timer_cancels_a_scheduled_shutdown_unless_it_may_fire() -> None:
    cancelled = describe("schedule-shutdown", {"in": "2m"}, BARE)
    assert (cancelled.failsafe, cancelled.disarm) == ("nodefall-run-step after 115s: shutdown -c", "nodefall-run-step")
    fires = describe("schedule-shutdown", {"fires": True}, NODE)
    assert (fires.failsafe, fires.disarm) == ("", "")


@pytest.mark.parametrize(("name", "given", "node"), [row[:3] for row in SENT])
def test_state_and_undo_survive_json(name: str, given: dict[str, Any], node: Target) -> None:
    """Undo after a crash has only what was written down."""
    action = ACTIONS[name]
    state = prepare(name, given, node)
    decoded = action.decode_state(msgspec.json.decode(msgspec.json.encode(action.encode_state(state))))
    assert decoded == state
    undo = action.program(state).undo
    assert action.program(decoded).undo == undo
    assert msgspec.json.decode(msgspec.json.encode(undo), type=Undo) == undo


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_every_action_is_described(name: str) -> None:
    action = ACTIONS[name]
    assert action.summary
    assert f"action: {name}" in action.example
    assert action.proofs, "an action without proof could count as done without having happened"
    assert not all(proof.weak for proof in action.proofs)


@pytest.mark.parametrize(("name", "given", "node"), [row[:3] for row in SENT])
def test_every_undo_step_is_harmless_twice(name: str, given: dict[str, Any], node: Target) -> None:
    """Each step has a check that makes it unnecessary, so that a second undo sends nothing."""
    assert all(step.unless is not None for step in ACTIONS[name].program(prepare(name, given, node)).undo.steps)


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_the_state_of_every_example_is_a_frozen_record_that_survives_json(name: str) -> None:
    action = ACTIONS[name]
    state = prepare_example(action)
    assert isinstance(state, action.state)
    assert action.state.__struct_config__.frozen
    decoded = action.decode_state(msgspec.json.decode(msgspec.json.encode(action.encode_state(state))))
    assert decoded == state
    assert action.program(decoded).undo == action.program(state).undo
    assert action.program(decoded).commands == action.program(state).commands
