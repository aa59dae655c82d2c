"""The outline of a game day: calendar, durations, the worst entry, warnings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chaos.documents.experiment import load_experiment
from chaos.engine.registry import load_registry
from chaos.gameday.document import GameDay
from chaos.gameday.outline import Outline, OutlineRequest, PlannedMoment, make_outline

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
NOW = datetime(2026, 11, 23, tzinfo=UTC)
OFFICE = {"zone": "Europe/Berlin", "open": [{"days": ["Mon", "Tue"], "from": "09:00", "to": "16:00"}]}


def outline(entries: list[dict[str, Any]], count: int = 3, clusters: int = 0, **keys: Any) -> Outline:
    """Of entries whose experiments are bundled, without pauses unless they are given."""
    listed = [{"name": f"c{number}", "inventory": "x.yaml"} for number in range(1, clusters + 1)]
    spec = {"title": "t", "owner": "o", "entries": entries, "clusters": listed, "pause": {"recovery": None}, **keys}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "GameDay", "metadata": {"name": "day"}}
    registry = load_registry()
    names = [str(entry["experiment"]) for entry in entries]
    experiments = [(name, load_experiment(EXPERIMENTS / f"{name}.yaml", registry)) for name in names]
    day = GameDay.model_validate(head | {"spec": spec})
    return make_outline(day, experiments, OutlineRequest(NOW, count, 7, "hash"))


CORDON, POWER_CUT = {"experiment": "cordon"}, {"experiment": "power-cut"}  # 59 s, 385 s


def test_openings_are_in_the_zone_and_in_utc() -> None:
    found = outline([CORDON], window=OFFICE).openings
    assert len(found) == 3
    assert found[0].begin == PlannedMoment("2026-11-23T09:00:00+01:00", "2026-11-23T08:00:00Z")
    assert found[0].end == PlannedMoment("2026-11-23T16:00:00+01:00", "2026-11-23T15:00:00Z")


def test_starts_have_what_is_passed_over_between_them() -> None:
    found = outline([CORDON], 2, window=OFFICE, schedule={"cron": "0 10 * * MON,SAT"}).starts
    assert [(start.at.local[:10], bool(start.closed_because)) for start in found] == [
        ("2026-11-23", False),
        ("2026-11-28", True),
        ("2026-11-30", False),
    ]
    assert found[1].closed_because == "outside the hours Mon, Tue 09:00-16:00"


@pytest.mark.parametrize(("minute", "fits"), [(53, True), (54, False)])
def test_a_start_fits_if_the_day_ends_before_the_window(minute: int, fits: bool) -> None:
    """Its 6 min 25 s end before 16:00."""
    found = outline([POWER_CUT], 1, window=OFFICE, schedule={"cron": f"{minute} 15 * * MON"}).starts
    assert found[0].fits == fits


DURATIONS: list[tuple[str, list[dict[str, Any]], dict[str, Any], float, float]] = [
    ("one", [CORDON], {}, 59, 1200),
    ("two", [CORDON, POWER_CUT], {}, 59 + 385, 2400),
    ("repeated", [CORDON | {"repeat": 3}], {}, 3 * 59, 3600),
    ("a pause between, none at the end", [CORDON, CORDON | {"name": "b"}], {"pause": {"atLeast": "10s"}}, 128, 2410),
    ("a pause until recovery", [CORDON, CORDON], {"pause": {"recovery": "5m"}}, 118, 2700),
    ("an entry's pause", [CORDON | {"pause": {"atLeast": "60s", "recovery": None}}, CORDON], {}, 178, 2460),
    ("clusters one by one", [CORDON], {"clusters": 3}, 3 * 59, 3600),
    ("clusters at once", [CORDON], {"clusters": 3, "parallel": 3}, 59, 1200),
    ("two at once", [CORDON], {"clusters": 3, "parallel": 2}, 2 * 59, 2400),
    ("not on all", [CORDON, POWER_CUT | {"clusters": ["c2"]}], {"clusters": 2, "parallel": 2}, 59 + 385, 2400),
]


@pytest.mark.parametrize(
    ("entries", "keys", "expected", "at_most"), [case[1:] for case in DURATIONS], ids=[case[0] for case in DURATIONS]
)
def test_durations(entries: list[dict[str, Any]], keys: dict[str, Any], expected: float, at_most: float) -> None:
    pause = {"recovery": None} | keys.get("pause", {})
    found = outline(entries, **{**keys, "pause": pause})
    assert (found.expected, found.at_most) == (expected, at_most)


def test_the_worst_entry() -> None:
    found = outline([CORDON, POWER_CUT, {"experiment": "drain-allowed"}])
    assert (found.worst_entry, found.worst.takes_down) == ("power-cut", True)


def test_seeds_are_those_of_the_day() -> None:
    repeated = CORDON | {"repeat": 2}
    assert outline([repeated]).entries[0].seeds == outline([repeated]).entries[0].seeds
    assert len(set(outline([repeated]).entries[0].seeds)) == 2
    assert outline([repeated | {"seed": 2**32 - 1}]).entries[0].seeds == (2**32 - 1, 0)


def test_what_fits_into_no_opening_is_a_warning() -> None:
    short = {"zone": "UTC", "open": [{"from": "09:00", "to": "09:05"}]}
    assert outline([CORDON, POWER_CUT], window=short).warnings == (
        "power-cut is expected to take 6m25s, the longest of these openings is 5m",
    )
    longer = {"zone": "UTC", "open": [{"from": "09:00", "to": "09:07"}]}
    assert outline([CORDON, POWER_CUT], window=longer).warnings == (
        "the day is expected to take 7m24s; it continues when the window opens after 7m",
    )
    assert outline([CORDON, POWER_CUT], window=OFFICE).warnings == ()
    assert outline([CORDON, POWER_CUT]).warnings == ()


def test_policies_of_an_entry_and_of_the_day() -> None:
    found = outline([CORDON | {"onViolated": "continue", "pause": {"atLeast": "90s"}}, POWER_CUT]).entries
    assert [entry.on_violated for entry in found] == ["continue", "stop"]
    assert [entry.pause for entry in found] == ["at least 1m30s, until the cluster has recovered, at most 10m", "none"]
