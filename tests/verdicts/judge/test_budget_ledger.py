"""A ledger that was updated with each entry says what one that has read everything at once says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from chaos.core.signal import Signal
from chaos.core.timeline import Entry, Timeline
from chaos.verdicts.judge.budgets import BudgetLedger, NewVersions
from tests.kit.story import Story

KEY = ("demo", "web")
EVICTED: dict[str, Any] = {"disruption": "EvictionByEvictionAPI", "deleting": True}
CHANGES: list[dict[str, Any]] = [
    {},
    {"ready": False},
    EVICTED,
    {"deleting": True},
    {"labels": {"app": "other"}},
    {**EVICTED, "type_": "DELETED"},
    {"type_": "DELETED", "note": "missing at relist"},
]


def story(seed: int) -> Story:
    choose = random.Random(seed)  # noqa: S311
    result = Story().node(0, "n1").budget(0, 2)
    for t in range(1, 90):
        what = choose.random()
        if what < 0.08:
            result.budget(t, choose.choice([0, 2, 3, None]))
        elif what < 0.12:
            result.blind(t, t + 0.5, "pods")
        else:
            result.pod(t, choose.choice("abcdef"), **{"labels": {"app": "web"}, **choose.choice(CHANGES)})
    return result


def signal_of(ledger: BudgetLedger, timeline: Timeline, new: NewVersions | None = None) -> Signal:
    groups = timeline.pods.label_groups(KEY[0])
    versions = new.take(timeline, KEY[0]) if new else {}
    windows = timeline.uncertain_windows("pods")
    ledger.update(timeline, timeline.poddisruptionbudgets[KEY], groups, versions, windows)
    return ledger.signal()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("few", [0, 1000])
def test_new_versions_are_enough(seed: int, few: int) -> None:
    entries: list[Entry] = list(story(seed).timeline().entries)
    timeline, choose = Timeline(pause=3.0, few=few), random.Random(seed)  # noqa: S311
    ledger, new, compared = BudgetLedger(["eviction", "deletion"], 20.0), NewVersions(), 0
    for entry in entries:
        timeline.add(entry)
        if KEY in timeline.poddisruptionbudgets and choose.random() < 0.3:
            found = signal_of(ledger, timeline, new)
            assert found == signal_of(BudgetLedger(["eviction", "deletion"], 20.0), timeline)
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("seed", range(40))
def test_no_value_is_lost_and_what_is_said_of_the_anchor_is_of_then(seed: int) -> None:
    timeline = story(seed).timeline()
    whole = signal_of(BudgetLedger(["eviction"], 1e12), timeline)
    ledger = BudgetLedger(["eviction"], timeline.start + 40.0)
    short = signal_of(ledger, timeline)
    moments = [sample.t for sample in whole.samples]
    assert len(short.samples) <= len(moments)
    assert [short.at(t).value for t in moments] == [whole.at(t).value for t in moments]
    assert short.samples[-1] == whole.samples[-1]
    anchor = timeline.start + 40.0
    every = [change for change in whole.samples if change.t <= anchor]
    assert short.at(anchor).value is every[-1].value
