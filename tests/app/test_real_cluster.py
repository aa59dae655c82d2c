"""Clusters that are not on loopback: only with the expected UID, and never as a lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import chaos.cluster.cluster_state
from chaos.api import Lab, plan
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.run.plan import summary
from chaos.core.action import Undo
from chaos.core.command import HostCommand
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan, PlannedStep, PlannedTarget

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
EXPERIMENT = Path(__file__).parents[2] / "experiments" / "cordon.yaml"


@pytest.fixture(scope="module")
def lab() -> Iterator[Inventory]:
    with Lab() as up:
        yield up.inventory


def with_cluster(inventory: Inventory, **cluster: object) -> Inventory:
    document = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["cluster"] |= cluster
    return Inventory.model_validate(document)


def test_a_remote_cluster_needs_an_expected_uid(lab: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect_cluster(lab) as connection:
        uid = connection.uid
    monkeypatch.setattr(chaos.cluster.cluster_state, "server_is_loopback", lambda _: False)
    with pytest.raises(Refused, match="the inventory has no expectUID") as refused:
        plan(EXPERIMENT, with_cluster(lab, simulated=False))
    assert f"expectUID: {uid}" in refused.value.hint
    with pytest.raises(Refused, match=f"wrong cluster: expected UID other, but the server reports {uid}"):
        plan(EXPERIMENT, with_cluster(lab, simulated=False, expectUID="other"))
    with pytest.raises(Refused, match=r"not a lab: .* is not on loopback"):
        plan(EXPERIMENT, with_cluster(lab, simulated=True, expectUID=uid))
    assert plan(EXPERIMENT, with_cluster(lab, simulated=False, expectUID=uid)).cluster_uid == uid


def test_an_expected_uid_is_checked_on_loopback_too(lab: Inventory) -> None:
    with pytest.raises(Refused, match="wrong cluster"):
        plan(EXPERIMENT, with_cluster(lab, expectUID="other"))


@pytest.mark.parametrize("many", [1, 100])
def test_the_summary_fits_on_a_screen(many: int) -> None:
    nodes = [f"n{number}" for number in range(many)]
    steps = [PlannedStep("s", "reboot", n, {}, {}, (HostCommand(("reboot",)),), Undo(), ()) for n in nodes]
    rows = summary(
        Plan(
            "r", "x", "h", "uid-1", 0.0, 7, tuple(PlannedTarget("t", n, "u", "b") for n in nodes), tuple(steps), "w",
            slack=1.5,
            overridden=tuple(f"check-{n}: no" for n in nodes), warnings=tuple(f"warned-{n}: hm" for n in nodes),
        ),
        "https://k", "staging",
    )  # fmt: skip
    assert len(rows) <= 23
    text = " ".join(f"{label} {text}" for label, text in rows)
    expected = [
        "staging (https://k, uid uid-1)",
        "x, seed 7, slack 1.5",
        "t: n0",
        "s on n0: reboot: reboot",
        "check-n0",
        "warned-n0",
        "namespace w",
    ]
    assert [part for part in expected if part not in text] == []
    assert ("and 97 more: nodefall plan prints them all" in text) == (many == 100)
