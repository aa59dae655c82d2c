"""Clusters that are not on loopback: only by the uid that the inventory expects, and never as a lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import chaos.kube.client
from chaos.api import Lab, plan
from chaos.app.connect import connect_cluster
from chaos.cli.run.confirm import summary
from chaos.model.action import Undo
from chaos.model.command import HostCommand
from chaos.model.errors import Refused
from chaos.model.inventory import Inventory
from chaos.model.plan import Plan, PlannedStep, PlannedTarget

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
EXPERIMENT = Path(__file__).parents[2] / "experiments" / "cordon.yaml"


@pytest.fixture(scope="module")
def lab() -> Iterator[Inventory]:
    with Lab() as up:
        yield up.inventory


def changed(inventory: Inventory, **cluster: object) -> Inventory:
    document = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["cluster"] |= cluster
    return Inventory.model_validate(document)


def test_elsewhere_the_uid_must_be_expected(lab: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect_cluster(lab) as opened:
        uid = opened.uid
    monkeypatch.setattr(chaos.kube.client, "server_is_loopback", lambda _: False)
    with pytest.raises(Refused, match="does not say which cluster it is") as refused:
        plan(EXPERIMENT, changed(lab, simulated=False))
    assert f"expectUID: {uid}" in refused.value.hint
    with pytest.raises(Refused, match=f"this is another cluster: expectUID is other, its own is {uid}"):
        plan(EXPERIMENT, changed(lab, simulated=False, expectUID="other"))
    with pytest.raises(Refused, match="is not on loopback, so it is no lab"):
        plan(EXPERIMENT, changed(lab, simulated=True, expectUID=uid))
    assert plan(EXPERIMENT, changed(lab, simulated=False, expectUID=uid)).cluster_uid == uid


def test_on_loopback_an_uid_that_is_given_is_checked_too(lab: Inventory) -> None:
    with pytest.raises(Refused, match="this is another cluster"):
        plan(EXPERIMENT, changed(lab, expectUID="other"))


@pytest.mark.parametrize("many", [1, 100])
def test_what_is_about_to_be_done_fits_on_a_screen(many: int) -> None:
    nodes = [f"n{number}" for number in range(many)]
    steps = [PlannedStep("s", "reboot", n, {}, {}, (HostCommand(("reboot",)),), Undo(), ()) for n in nodes]
    told = summary(
        Plan(
            "r", "x", "h", "uid-1", 0.0, 7, tuple(PlannedTarget("t", n, "u", "b") for n in nodes), tuple(steps), "w",
            overridden=tuple(f"check-{n}: no" for n in nodes), warnings=tuple(f"warned-{n}: hm" for n in nodes),
        ),
        "https://k", "staging",
    )  # fmt: skip
    assert len(told) <= 23
    words = " ".join(f"{label} {text}" for label, text in told)
    expected = [
        "staging (https://k, uid uid-1)",
        "t: n0",
        "s on n0: reboot: reboot",
        "check-n0",
        "warned-n0",
        "namespace w",
    ]
    assert [text for text in expected if text not in words] == []
    assert ("and 97 more: nodefall plan prints them all" in words) == (many == 100)
