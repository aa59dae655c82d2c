"""Programs given by the experiment: commands, references of the proof, refusals, undo and proofs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.action import ProofStatus, Target
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.result import StepResult
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.actionkit import ACTIONS, ActionDescription, describe
from tests.kit.story import Story, experiment, plugin_registry

INJECT, UNDO = ["systemctl", "stop", "cron.service"], ["systemctl", "start", "cron.service"]
PROOF = ["systemctl", "is-active", "--quiet", "cron.service"]
FACT = "command-exit?argv=systemctl+is-active+--quiet+cron.service"
FAILSAFE = "nodefall-run-do after 600s: systemctl start cron.service"


def target(**facts: Any) -> Target:
    return Target("n1", facts=facts, tag="run-do", max_duration=600.0)


def test_a_proof_makes_precondition_and_undo_checks() -> None:
    given = {"inject": INJECT, "undo": UNDO, "proof": PROOF, "proof-exit": 3}
    assert describe("command", given, target(**{FACT: 0})) == ActionDescription(
        inject=["systemctl stop cron.service"],
        preconditions=[f"{FACT} is 0"],
        failsafe=FAILSAFE,
        undo=[f"systemctl start cron.service unless {FACT} is 0"],
        proof=[f"{FACT} is 0", "the node is Ready"],
        disarm="nodefall-run-do",
    )


def test_without_a_proof_the_undo_must_succeed_once() -> None:
    described = describe("command", {"inject": INJECT, "undo": UNDO}, target())
    assert described.undo == ["systemctl start cron.service unless None"]
    assert (described.preconditions, described.proof) == ([], ["the node is Ready"])
    assert described.failsafe == FAILSAFE


def test_without_undo_nothing_is_sent_afterwards() -> None:
    assert describe("command", {"inject": INJECT}, target()) == ActionDescription(
        inject=["systemctl stop cron.service"], preconditions=[], failsafe="", undo=[], proof=[], disarm=""
    )


def test_facts_depend_on_the_parameters() -> None:
    action = ACTIONS["command"]
    with_proof = action.params.model_validate({"inject": INJECT, "proof": PROOF})
    without = action.params.model_validate({"inject": INJECT})
    assert action.needs_with(with_proof).facts == action.needs_with(with_proof).proof_facts == (FACT,)
    assert action.needs_with(without).facts == action.needs_with(without).proof_facts == ()


def test_words_are_arguments_and_never_a_shell_line() -> None:
    action = ACTIONS["command"]
    params = action.params.model_validate({"inject": ["touch", "a b; rm -rf /"], "timeout": "5s"})
    (command,) = action.program(action.prepare(target(), params)).commands
    assert command == HostCommand(("touch", "a b; rm -rf /"), timeout=5.0)


@pytest.mark.parametrize(
    ("facts", "why"),
    [({FACT: 3}, "the proof exits with 3 before the fault"), ({}, r"the fact command-exit\?argv=.* is not known")],
)
def test_refusals(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        describe("command", {"inject": INJECT, "proof": PROOF, "proof-exit": 3}, target(**facts))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"inject": "systemctl stop cron"},
        {"inject": []},
        {"inject": [""]},
        {"inject": INJECT, "undo": []},
        {"inject": INJECT, "undo": ["echo", "${HOME}"]},
        {"inject": INJECT, "undo": ["echo", "$HOME"]},
        {"inject": INJECT, "proof": PROOF, "proof-exit": 256},
        {"inject": INJECT, "timeout": 30},
    ],
)
def test_invalid_parameters(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS["command"].params.model_validate(given)


GIVEN = {"inject": INJECT, "undo": UNDO, "proof": PROOF, "proof-exit": 3}


def step_result(params: dict[str, Any], *exits: tuple[float, int], exit_code: int = 0) -> StepResult:
    story = Story().node(0, "n1").act(10, "command", "begin", step="do", params=params)
    story.act(11, "command", "returned", step="do", params=params, delivery="answered", exit=exit_code)
    for t, code in exits:
        story.host(t, FACT, code)
    given = json.dumps(params)
    loaded = experiment(
        method=f"[{{name: do, action: command, target: victim, with: {given}}}]", allow=["custom", "irreversible"]
    )
    (result,) = judge(loaded, story.timeline(300), plugin_registry(), Options()).steps
    return result


@pytest.mark.parametrize(
    ("exits", "expected"),
    [
        (((5.0, 0), (12.0, 3), (40.0, 3)), ProofStatus.PROVEN),
        (((5.0, 0), (12.0, 0)), ProofStatus.DISPROVEN),
        (((5.0, 0), (12.0, 3), (40.0, 0)), ProofStatus.DISPROVEN),
    ],
)
def test_the_exit_code_of_the_proof_decides(exits: tuple[tuple[float, int], ...], expected: ProofStatus) -> None:
    result = step_result(GIVEN, *exits)
    assert result.proof_status is expected, result.because
    assert not result.weak


@pytest.mark.parametrize(("exit_code", "expected"), [(0, ProofStatus.PROVEN), (1, ProofStatus.UNPROVEN)])
def test_without_a_proof_exit_code_0_is_a_weak_proof(exit_code: int, expected: ProofStatus) -> None:
    result = step_result({"inject": INJECT, "undo": UNDO}, exit_code=exit_code)
    assert (result.proof_status, result.weak) == (expected, expected is ProofStatus.PROVEN)
