"""Effect of foreign faults on verdicts: what was decided before stands, what they touch is inconclusive."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.result import RunResult
from chaos.core.verdict import Status
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.node_versions import node
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, experiment, plugin_registry

KUBECTL = "foreign fault: n2 was cordoned by kubectl (field manager) at +20.0 s"
SOON = '{name: soon, assert: node-condition, with: {node: victim, status: "False"}, within: 5s}'
LATE = '{name: late, assert: node-condition, with: {node: victim, status: "False"}, within: 60s, for: 30s}'
OTHER = "{name: other, assert: nodes-ready, with: {nodes: n2}, always: {for: 60s}}"
MOST = "{name: most, assert: nodes-ready, with: {not-ready-at-most: 1}, always: {for: 60s}}"
EARLY = "{name: early, assert: nodes-ready, with: {not-ready-at-most: 1}, always: {for: 15s}}"
NEVER = "{name: never, assert: nodes-ready, with: {not-ready-at-most: 0}, always: {for: 60s}}"
WRONG = '{name: wrong, assert: node-condition, with: {node: victim, status: "False"}, within: 500ms}'


def story(at: float = 30.0, name: str = "n2", by: str = "kubectl") -> Story:
    """A power-off at 10 that is announced at 11; someone cordons ``name`` at ``at``."""
    made = Story(nodefall="0.2.0")
    for each in ("n1", "n2"):
        node(made, 0, each, type_="LIST")
    made.done(10, "poweroff", step="stop")
    node(made, 11, "n1", ready="False", message="node is shutting down").host(15, "machine", "off")
    ready: dict[str, Any] = {"ready": "False", "message": "node is shutting down"} if name == "n1" else {}
    return node(made, at, name, cordoned=True, owners={"unschedulable": by}, **ready)


def run(made: Story, *hypotheses: str, end: float = 100, live: bool = False, **spec: Any) -> RunResult:
    document = experiment(f"[{', '.join(hypotheses)}]", **spec)
    return judge(document, made.timeline(end), plugin_registry(), Options(bind={"victim": ("n1",)}), live)


@pytest.mark.parametrize(
    ("hypothesis", "alone", "by_other", "on_target"),
    [
        (SOON, HELD, HELD, HELD),  # held at +1 s
        (WRONG, VIOLATED, VIOLATED, VIOLATED),
        (EARLY, HELD, HELD, HELD),  # over at +15 s
        (NEVER, VIOLATED, VIOLATED, VIOLATED),  # violated at +1 s
        (LATE, HELD, HELD, INCONCLUSIVE),  # held at +31 s; asks about n1 only
        (OTHER, HELD, INCONCLUSIVE, HELD),
        (MOST, HELD, INCONCLUSIVE, INCONCLUSIVE),
    ],
)
def test_what_a_foreign_fault_touches(hypothesis: str, alone: Status, by_other: Status, on_target: Status) -> None:
    assert run(story(by="nodefall"), hypothesis).hypothesis[0].status is alone
    assert run(story(by="nodefall"), hypothesis).foreign_faults == ()
    for made, expected in (
        (story(), by_other),
        (story(name="n1"), on_target),
        (story(at=90), alone),  # after every deadline
        (story(at=5), INCONCLUSIVE if hypothesis in (OTHER, MOST, EARLY, NEVER) else alone),
    ):
        result = run(made, hypothesis)
        (verdict,) = result.hypothesis
        assert (verdict.status, result.status) == (expected, expected), verdict.because
        assert len(result.foreign_faults) == len(result.notes) == 1


def test_the_verdict_names_who_did_it() -> None:
    result = run(story(), SOON, MOST)
    assert [v.status for v in result.hypothesis] == [HELD, INCONCLUSIVE]
    touched = result.hypothesis[1]
    assert (
        touched.because == f"{KUBECTL}; to decide this, nodefall needs a run during which no one else changes the nodes"
    )
    assert touched.at == T0 + 30
    assert result.headline == "1 of 2 inconclusive: During the run, n2 was cordoned by kubectl (field manager)"
    assert (result.exit_code, result.notes[0]) == (2, KUBECTL)
    (fault,) = result.foreign_faults
    assert (fault.node, fault.kind, fault.by) == ("n2", "cordon", "kubectl (field manager)")
    assert set(fault.evidence) <= set(touched.evidence)


def test_a_violation_before_the_fault_beats_the_rest() -> None:
    result = run(story(), WRONG, MOST)
    assert (result.status, result.exit_code) == (VIOLATED, 1)
    assert result.notes[0] == KUBECTL


def test_a_fault_that_touches_nothing_is_a_note_only() -> None:
    result = run(story(), SOON)
    assert (result.status, result.headline) == (HELD, "1 of 1 held: Node n1 had Ready=False within 5 s")
    assert result.notes == (KUBECTL,)


def test_an_unproven_step_and_a_foreign_fault() -> None:
    made = Story(nodefall="0.2.0")
    node(made, 0, "n1", type_="LIST").done(10, "cordon", step="stop")
    node(made, 12, "n1", type_="DELETED")
    result = run(made, MOST, method="[{name: stop, action: cordon, target: victim}]")
    assert result.sentence == "During the run, n1 was deleted (who did it is unknown)"
    assert result.status is INCONCLUSIVE


@pytest.mark.parametrize(
    ("at", "status"),
    [(30.0, INCONCLUSIVE), (60.0, INCONCLUSIVE), (72.0, HELD)],  # the recovery's deadline is at 70.2
)
def test_recovery(at: float, status: Status) -> None:
    made = story(at).done(40, "power-on", step="start").host(44, "machine", "on")
    node(made, 45, "n1")
    both = "[{name: stop, action: poweroff, target: victim}, {name: start, action: power-on, target: victim}]"
    result = run(made, SOON, method=both, recovery={"within": "30s"})
    assert [v.status for v in result.recovery] == [status], result.recovery
    assert result.status is status


def test_a_live_run_decides_at_once() -> None:
    waiting = run(story(by="nodefall"), MOST, SOON, end=35, live=True)
    assert [v.status for v in waiting.hypothesis] == [Status.PENDING, HELD]
    touched = run(story(), MOST, SOON, end=35, live=True)
    assert [v.status for v in touched.hypothesis] == [INCONCLUSIVE, HELD]
    assert touched.status is INCONCLUSIVE


def test_an_inconclusive_verdict_of_before_keeps_its_reason() -> None:
    hypothesis = '{assert: node-condition, with: {node: n2, status: "False"}, within: 5s}'
    result = run(story().blind(8, 16, "nodes", "the API server was away"), hypothesis)
    assert result.hypothesis[0].status is INCONCLUSIVE
    assert "the API server was away" in result.hypothesis[0].because
