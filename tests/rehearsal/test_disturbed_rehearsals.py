"""Runs in process whose watches are late, doubled and in another order, or whose API server hardly answers.

No verdict differs from that of an undisturbed run, except that it is inconclusive; with late watches none is, if all
had come by its deadline. A part of the seeds here, all 500 of both with NODEFALL_DISTURBED=500 (``.ci/nightly``).
Figures are appended to the file NODEFALL_DISTURBED_FIGURES, run by run; what is in it already is skipped, so that 500
can be continued and divided. ``tools/disturbed_figures.py`` sums them up.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from chaos.core.verdict import Status
from tests.kit.disturbance import KINDS, LATE, NAMES, STARVED
from tests.kit.disturbed_rehearsals import disturbed, rehearse_disturbed, starved, undisturbed

COUNT = int(os.environ.get("NODEFALL_DISTURBED", "0"))
FIGURES = os.environ.get("NODEFALL_DISTURBED_FIGURES")
SEEDS = {LATE: range(COUNT or 6), STARVED: range(COUNT or 1)}  # the latter take four times as long
SLOW_STEP = (STARVED, 38)  # the taint is set 27 s after the begin of its step
RUNS = list(dict.fromkeys([*((kind, seed) for kind in KINDS for seed in SEEDS[kind]), SLOW_STEP]))


@pytest.mark.parametrize(("kind", "seed"), RUNS)
def test_no_verdict_is_reversed(seed: int, kind: str) -> None:
    if (kind, seed) in finished():
        pytest.skip(f"{FIGURES} has it")
    row = disturbed(kind, seed)
    if FIGURES:
        with Path(FIGURES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row.as_dict()) + "\n")
    assert not row.wrong, row
    assert not row.refused, row


def finished() -> set[tuple[str, int]]:
    """The kinds and seeds that the figures have."""
    if not FIGURES or not Path(FIGURES).exists():
        return set()
    rows = map(json.loads, Path(FIGURES).read_text(encoding="utf-8").splitlines())
    return {(row["kind"], row["seed"]) for row in rows}


@pytest.mark.parametrize("name", NAMES if COUNT else NAMES[1:2])
def test_undisturbed_all_hold(name: str) -> None:
    assert set(undisturbed(name).values()) == {Status.HELD}


def test_a_node_that_the_undo_removes_as_its_watch_notices_is_not_missed() -> None:
    assert set(undisturbed("hand-made-node").values()) == {Status.HELD}


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param("announced-again", 1, marks=pytest.mark.nightly),
        pytest.param("drain-example", 1, marks=pytest.mark.nightly),
        pytest.param("evictions-at-once", 4, marks=pytest.mark.nightly),
        ("no-execute-removed-in-time", 1),
        ("stale-disruption-target", 1),
        pytest.param("total-outage", 1, marks=pytest.mark.nightly),
    ],
)
def test_what_a_slow_server_delays_is_not_violated(name: str, seed: int) -> None:
    """A step that undoes the one before comes 40 s after it, and not 2 s as the experiment has it."""
    assert Status.VIOLATED not in starved(name, seed).values()


@pytest.mark.parametrize("kind", KINDS if COUNT else [LATE])
def test_the_same_seed_gives_the_same_run(kind: str) -> None:
    one, two = (msgspec.json.encode(rehearse_disturbed(kind, 1).entries) for _ in range(2))
    assert one == two
