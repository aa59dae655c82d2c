"""What is violated after a step that was not in time. A taint at 10 is removed at some moment, to be 15 s later."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.verdict import Status
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.node_versions import node
from tests.kit.story import HELD, INCONCLUSIVE, PENDING, T0, VIOLATED, Story, experiment, plugin_registry

METHOD = """[
  {name: fault, action: taint, target: victim, with: {key: k, effect: NoExecute}},
  {name: mend, action: untaint, target: victim, with: {key: k}, after: fault + 15s}]"""
UNTIMED = METHOD.replace(", after: fault + 15s", "")
READY = "[{assert: node-condition, with: {node: victim, type: Ready, status: 'False'}, never: {for: 40s}}]"


def story(mended: float, lost: float = 90, tainted: float = 10.1, answered: float | None = None) -> Story:
    """The node is not Ready from ``lost`` on. ``answered``: the request of the fault, which is sent at 10."""
    made = node(Story(), 0, "n1", type_="LIST").node(0, "n2").current(1, "nodes")
    made.act(10, "taint", step="fault", params={"key": "k", "effect": "NoExecute"})
    fault: dict[str, Any] = {"delivery": "answered", "evidence": {"fired": T0 + 10}}
    made.act(10.2 if answered is None else answered, "taint", "returned", step="fault", **fault)
    made.act(mended, "untaint", step="mend", params={"key": "k"})
    made.act(mended + 0.2, "untaint", "returned", step="mend", delivery="answered")
    made.current(tainted - 0.1, "nodes")
    node(made, tainted, "n1", taints="k:NoExecute")
    made.current(mended - 0.1, "nodes")
    node(made, mended + 0.1, "n1", ready="False" if lost < mended else "True")
    made.current(lost - 0.1, "nodes")
    node(made, lost, "n1", ready="False", taints="k:NoExecute" if tainted < lost < mended else "")
    return made.current(99, "nodes")


def judged(made: Story, end: float = 100, live: bool = False, method: str = METHOD) -> tuple[Status, str]:
    made.lines = [line for line in made.lines if line.t <= T0 + end]
    options = Options(bind={"victim": ("n1",)})
    result = judge(experiment(READY, method), made.timeline(end), plugin_registry(), options, live)
    (verdict,) = result.hypothesis
    return verdict.status, verdict.because


@pytest.mark.parametrize(
    ("what", "made", "status", "because"),
    [
        ("in time", story(25, 30), VIOLATED, ""),
        ("as usual on a real cluster", story(26.3, 30), VIOLATED, ""),
        ("too late", story(32, 30), INCONCLUSIVE, "step mend may have started 7."),
        ("too late, and it holds nevertheless", story(40), HELD, ""),
        ("decided before it was due", story(40, 20), VIOLATED, ""),
        ("too early, as the fault was late", story(25, 30, 20, answered=24), INCONCLUSIVE, "10.0 s too early"),
    ],
)
def test_verdicts(what: str, made: Story, status: Status, because: str) -> None:
    found, why = judged(made)
    assert found is status, f"{what}: {why}"
    assert because in why


@pytest.mark.parametrize(("mended", "status"), [(19.0, VIOLATED), (22.0, INCONCLUSIVE)])
def test_a_step_without_a_time_may_take_ten_seconds_to_be_armed(mended: float, status: Status) -> None:
    """It is due at 10.2, when the step before it has returned."""
    assert judged(story(mended, 40), method=UNTIMED)[0] is status


def test_live_it_is_open_for_as_long_as_an_answer_may_come() -> None:
    assert [judged(story(40, 30), end, live=True)[0] for end in (31, 50, 99)] == [PENDING, PENDING, INCONCLUSIVE]
    assert judged(story(25, 30), 31, live=True)[0] is VIOLATED
