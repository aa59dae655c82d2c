"""What experiments may bring down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.app.registry import load_registry
from chaos.core.experiment import TargetSpec
from chaos.documents.experiment import load_experiment
from chaos.gameday.estimates import BlastRadius, blast_radius, worst

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def radius(name: str, **target: Any) -> BlastRadius:
    """Of a bundled experiment, with keys of its target ``victim`` replaced."""
    experiment = load_experiment(EXPERIMENTS / f"{name}.yaml", load_registry())
    spec = TargetSpec.model_validate({"role": "worker", **target}) if target else experiment.spec.targets["victim"]
    changed = experiment.spec.model_copy(update={"targets": {**experiment.spec.targets, "victim": spec}})
    return blast_radius(experiment.model_copy(update={"spec": changed}), load_registry())


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
    assert radius("power-cut").targets == ("victim: 1 of workers that run the workload",)
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
