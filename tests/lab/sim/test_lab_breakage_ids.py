"""Breakages: ids, texts, one for every rule of facts 16; and the rules whose values they replace."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import chaos.lab
from chaos.lab.breakages import BREAKAGES, broken
from chaos.lab.rules import Rules
from tests.kit.simkit import spec

_LAB = Path(chaos.lab.__file__).parent
_KNOW_BREAKAGES = {"breakages.py", "facade.py", "spec.py"}
_CODE = {path: path.read_text(encoding="utf-8") for path in _LAB.rglob("*.py") if path.parent.name != "rules"}


def test_components_know_no_breakage() -> None:
    assert {path.name for path, text in _CODE.items() if "breakage" in text.lower()} == _KNOW_BREAKAGES


@pytest.mark.parametrize("component", [item.name for item in fields(Rules)])
def test_every_value_of_the_rules_is_read(component: str) -> None:
    code = "".join(text for path, text in _CODE.items() if path.name != "breakages.py")
    unread = [item.name for item in fields(getattr(Rules(), component)) if not re.search(rf"\.{item.name}\b", code)]
    assert not unread


def test_every_breakage_replaces_something() -> None:
    without_effect = [item for item in BREAKAGES if broken(Rules(), [item]) == Rules()]
    assert not without_effect


def test_late_and_early_add_up() -> None:
    early = [item for item in BREAKAGES if item.endswith("-early") and BREAKAGES[item].seconds]
    assert len(early) > 4
    for item in early:
        late = item.removesuffix("-early") + "-late"
        if BREAKAGES[late].seconds == -BREAKAGES[item].seconds:
            assert broken(Rules(), [item, late]) == Rules()
    both = broken(Rules(), ["no-schedule-ignored", "prefer-no-schedule-ignored"])
    assert both.scheduler.ignored_effects == {"NoSchedule", "PreferNoSchedule"}


def test_rules_of_a_spec() -> None:
    lifecycle = spec(breakages=["unknown-late"]).rules().node_lifecycle
    assert (lifecycle.node_monitor_grace_period, lifecycle.node_startup_grace_period) == (80.0, 90.0)
    older = spec(kubernetes="v1.31")
    assert older.rules().node_lifecycle.node_monitor_grace_period == 40.0
    assert not older.rules().node_shutdown.waits_for_volumes
    assert older.rules().node_status.status_offset == 0.0


def test_every_rule_can_be_broken() -> None:
    assert {item.rule for item in BREAKAGES.values()} == set(range(1, 13))


def test_ids_and_texts() -> None:
    for key, item in BREAKAGES.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)+", key)
        assert not item.seconds or key.endswith("-late" if item.seconds > 0 else "-early")
        assert item.text[0].islower() or item.text[:3] in {"Rea", "NoE", "NoS", "DEL"}
        assert not item.text.endswith(".")
