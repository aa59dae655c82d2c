"""What experiments may bring down.

How long experiments take by their bounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.core.duration import FACTS, POD_FACTS
from chaos.core.experiment import Experiment
from chaos.core.target_spec import TargetSpec
from chaos.documents.experiment import load_experiment
from chaos.engine.registry import load_registry
from chaos.gameday.estimates import ASSUMED, BlastRadius, blast_radius, experiment_duration, worst

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
STEADY = [{"assert": "nodes-ready"}]


def radius(name: str, **target: Any) -> BlastRadius:
    """Of a bundled experiment, with keys of its target ``victim`` replaced."""
    experiment = load_experiment(EXPERIMENTS / f"{name}.yaml", load_registry())
    spec = TargetSpec.model_validate({"role": "worker", **target}) if target else experiment.spec.targets["victim"]
    changed = experiment.spec.model_copy(update={"targets": {**experiment.spec.targets, "victim": spec}})
    return blast_radius(experiment.model_copy(update={"spec": changed}))


@pytest.mark.parametrize(
    ("name", "target", "text"),
    [
        ("power-cut", {}, "1 node, machines go down"),
        ("cordon", {}, "1 node, API objects only"),
        ("lease-stops", {}, "1 node, machines stay up"),
        ("power-cut", {"count": 3}, "3 nodes, machines go down"),
        ("power-cut", {"count": "25%", "zone": "a"}, "25% of workers of zone a, machines go down"),
    ],
)
def test_in_words(name: str, target: dict[str, Any], text: str) -> None:
    assert str(radius(name, **target)) == text


def test_targets_in_words() -> None:
    assert radius("power-cut").targets == ("victim: 1 of workers that run pods of the workload",)
    assert radius("power-cut", nodes=["a", "b"], count=2).targets == ("victim: 2 of a, b",)
    found = radius("power-cut", os="windows", matchLabels={"pool": "x"}).targets
    assert found == ("victim: 1 of Windows workers with pool=x",)


def test_what_cannot_be_undone_is_named() -> None:
    assert radius("volume-forced-detach").irreversible == ("force",)
    assert "force cannot be undone" in str(radius("volume-forced-detach"))


def test_the_worst() -> None:
    """A machine that goes down is worse than many objects; of two, the larger share, then the larger number."""
    order = [
        radius("cordon"),
        radius("cordon", count=5),
        radius("cordon", count="50%"),
        radius("power-cut"),
        radius("power-cut", count=2),
        radius("power-cut", count="10%"),
        radius("power-cut", count="90%"),
    ]
    for number in range(1, len(order) + 1):
        assert worst(order[:number]) == order[number - 1]
        assert worst(order[number - 1 :: -1]) == order[number - 1]


def experiment(method: list[dict[str, Any]], hypothesis: list[dict[str, Any]], **keys: Any) -> Experiment:
    steps = [{"action": "poweroff", "target": "victim", **step} for step in method]
    expectations = [{"assert": "nodes-ready", **expectation} for expectation in hypothesis]
    spec = {"title": "t", "steadyState": STEADY, "method": steps, "hypothesis": expectations, **keys}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "e"}}
    return Experiment.model_validate(head | {"spec": spec})


CUT, ON = {"name": "cut"}, {"name": "power-on", "after": "cut + 90s"}


CASES: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]], float]] = [
    ("a deadline", [CUT], [{"after": "cut", "within": "30s"}], 30),
    ("the later one", [CUT], [{"after": "cut", "within": "30s"}, {"after": "cut + 20s", "within": "15s"}], 35),
    ("and how long it must stay true", [CUT], [{"after": "cut", "within": "30s", "for": "10s"}], 40),
    ("the last step", [CUT, ON], [{"after": "cut", "within": "30s"}], 90),
    ("after the end of a step", [CUT, ON], [{"after": "end(power-on) + 5s", "within": "30s"}], 125),
    ("a step after the one before", [CUT, ON, {"name": "again"}], [{"after": "again", "within": "10s"}], 100),
    ("a step some time later", [CUT, ON, {"name": "x", "after": "20s"}], [{"after": "x", "within": "1s"}], 111),
    ("never, for a time", [CUT], [{"after": "cut", "never": {"for": "2m"}}], 120),
    ("always, until a step", [CUT, ON], [{"after": "cut", "always": {"until": "power-on"}}], 90),
    (
        "facts",
        [CUT],
        [{"after": "cut", "within": "controller.nodeMonitorGracePeriod + 25s + toleration(unreachable)"}],
        375,
    ),
]


@pytest.mark.parametrize(("method", "hypothesis", "seconds"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_expected(method: list[dict[str, Any]], hypothesis: list[dict[str, Any]], seconds: float) -> None:
    assert experiment_duration(experiment(method, hypothesis)).expected == seconds


def test_at_most_is_the_maximum_and_the_recovery() -> None:
    hypothesis = [{"after": "cut", "within": "30s"}]
    duration = experiment_duration(experiment([CUT], hypothesis, maxDuration="10m", recovery={"within": "5m"}))
    assert (duration.expected, duration.at_most) == (30, 900)


def test_expected_is_not_longer_than_the_maximum() -> None:
    duration = experiment_duration(experiment([CUT], [{"after": "cut", "within": "30m"}], maxDuration="10m"))
    assert (duration.expected, duration.at_most) == (600, 600)


def test_assumed_facts_are_named_and_may_be_known() -> None:
    hypothesis = [{"after": "cut", "within": "kubelet.shutdownGracePeriod + 10s"}]
    assert dict(experiment_duration(experiment([CUT], hypothesis)).assumed) == {"kubelet.shutdownGracePeriod": 30.0}
    known = experiment_duration(experiment([CUT], hypothesis), {"kubelet.shutdownGracePeriod": 120.0})
    assert known.expected == 130


def test_every_fact_is_assumed() -> None:
    assert ASSUMED.keys() == {*FACTS, *POD_FACTS}
