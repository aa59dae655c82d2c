"""An assertion of another distribution: found by its entry point, loaded and judged like the built-in ones."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

import chaos.verdicts.assertions
from chaos.core import registry
from chaos.core.assertion import View
from chaos.core.field_types import Model
from chaos.core.registry import Group, PluginRegistry, discover
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.verdict import Status
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import HELD, VIOLATED, Story, experiment, plugin_registry


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


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> PluginRegistry:
    module = ModuleType("outside_assertion")
    module.__dict__["ASSERTION"] = SwapOff()
    points = EntryPoints([EntryPoint("swap-off", "outside_assertion:ASSERTION", Group.ASSERTIONS)])
    monkeypatch.setitem(sys.modules, "outside_assertion", module)
    monkeypatch.setattr(registry, "entry_points", lambda group: points.select(group=group))
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
