"""An assertion of another distribution: found by its entry point, loaded and judged like the built-in ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest
from pydantic import BaseModel

import chaos.verdicts.assertions
from chaos.core import outside
from chaos.core.assertion import Assertion, View
from chaos.core.field_types import Model
from chaos.core.registry import Group, PluginRegistry, discover
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, Story, experiment, plugin_registry


class Params(Model):
    """Nodes, and the expected swap."""

    node: str
    on: bool = False


class SwapOff:
    """The host fact ``swap`` has the expected value."""

    name = "swap-off"
    summary = "swap is off, or on, on a node"
    example = "{assert: swap-off, with: {node: victim}, within: 5s}"
    needs = "readings of the host fact swap"
    host_facts = ("swap",)
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        subjects = []
        for node in view.nodes(params.node):
            readings = view.timeline.readings(node, "swap")
            samples = (Sample(r.t, (r.value == "on") is params.on, r.seq, f"swap is {r.value}") for r in readings)
            subjects.append(Subject(node, Signal(tuple(samples))))
        return SubjectSet("swap is as expected", tuple(subjects))


TAINTS = ("ok:NoSchedule",)


class Tainted:
    """Each node has a taint: three lines that know nothing of time and of what was not observed."""

    name = "tainted"
    summary = "nodes have a taint"
    example = "{assert: tainted, with: {node: victim}, within: 5s}"
    needs = "Node objects"
    params: type[BaseModel] = Params
    node_fields: tuple[str, ...] = ("node",)
    moment_fields: tuple[str, ...] = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        return SubjectSet(
            "it has a taint",
            tuple(
                Subject(
                    node,
                    Signal(
                        tuple(
                            Sample(v.t, bool(v.object.spec and v.object.spec.taints), v.seq, "taints")
                            for v in view.timeline.nodes.get(node) or ()
                        )
                    ),
                )
                for node in view.nodes(params.node)
            ),
        )


class TaintedNodes(Tainted):
    """The same, which says what it needs."""

    sources = ("nodes",)


class TaintedPods(Tainted):
    """It says that it needs pods, of which nothing was observed."""

    sources = ("pods",)


class TaintedAnyway(Tainted):
    """It says that it masks by itself, and does not."""

    masks_itself = True


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> PluginRegistry:
    module = ModuleType("outside_assertion")
    module.__dict__["ASSERTION"] = SwapOff()
    points = EntryPoints([EntryPoint("swap-off", "outside_assertion:ASSERTION", Group.ASSERTIONS)])
    monkeypatch.setitem(sys.modules, "outside_assertion", module)
    monkeypatch.setattr(outside, "entry_points", lambda group: points.select(group=group))
    return PluginRegistry(plugin_registry().actions, discover(chaos.verdicts.assertions, "ASSERTION", Group.ASSERTIONS))


@pytest.mark.parametrize(("swap", "status"), [("off", HELD), ("on", VIOLATED)])
def test_outside_assertion_is_judged(plugins: PluginRegistry, swap: str, status: Status) -> None:
    story = (
        Story()
        .node(0, "n1")
        .done(10, "poweroff", step="stop")
        .host(5, "swap", swap)
        .host(11, "swap", swap)
        .host(15, "machine", "off")
    )
    hypothesis = "[{assert: swap-off, with: {node: victim}, within: 5s}]"
    result = judge(experiment(hypothesis), story.timeline(60), plugins, Options())
    assert (result.status, result.hypothesis[0].assertion) == (status, "swap-off"), result.headline


def _judge_tainted(assertion: Assertion, story: Story, operator: str) -> Verdict:
    registry = plugin_registry()
    registry = replace(registry, assertions={**registry.assertions, "tainted": assertion})
    hypothesis = f"[{{assert: tainted, with: {{node: victim}}, {operator}}}]"
    return judge(experiment(hypothesis), story.timeline(60), registry, Options()).hypothesis[0]


def _stopped(taints: Sequence[str]) -> Story:
    return Story().node(0, "n1", taints=taints).done(10, "poweroff", step="stop").host(15, "machine", "off")


@pytest.mark.parametrize(
    ("assertion", "status", "why"),
    [
        (Tainted(), INCONCLUSIVE, "could not be observed for 4.0 s"),
        (TaintedNodes(), INCONCLUSIVE, "nodes could not be observed for 4.0 s"),
        (TaintedPods(), INCONCLUSIVE, "no pods were observed"),
        (TaintedAnyway(), HELD, ""),
    ],
)
def test_what_was_not_observed_is_unknown(assertion: Assertion, status: Status, why: str) -> None:
    story = _stopped(TAINTS).blind(20, 24, "nodes")
    verdict = _judge_tainted(assertion, story, "always: {for: 40s}")
    assert (verdict.status, why in verdict.because) == (status, True), verdict.because


@pytest.mark.parametrize(("assertion", "status"), [(TaintedNodes(), HELD), (Tainted(), INCONCLUSIVE)])
def test_of_what_it_does_not_need_nothing_is_masked(assertion: Assertion, status: Status) -> None:
    story = _stopped(TAINTS).blind(20, 24, "pods")
    assert _judge_tainted(assertion, story, "always: {for: 40s}").status is status


@pytest.mark.parametrize("operator", ["never: {for: 40s}", "always: {for: 40s}"])
def test_what_came_before_a_blind_window_stays_decided(operator: str) -> None:
    taints = TAINTS if operator.startswith("never") else ()
    story = _stopped(taints).blind(20, 24, "nodes")
    assert _judge_tainted(TaintedNodes(), story, operator).status is VIOLATED


def test_a_late_watch_leaves_it_open_when_it_was() -> None:
    """The taint was removed at some moment between the last proof and the receipt, half a minute later."""
    story = _stopped(TAINTS).current(12, "nodes").node(41, "n1", taints=()).current(45, "nodes")
    assert _judge_tainted(TaintedNodes(), story, "always: {for: 15s}").status is INCONCLUSIVE
