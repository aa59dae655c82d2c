"""A lab that does wrong: the experiments that say so notice it, and the others say what they say without it.

The whole table with NODEFALL_EXPERIMENTS=all (``.ci/nightly``); a seeded part of it otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.lab.breakages import BREAKAGES
from tests.kit.experiment_runs import BUNDLED, part, run, verdict_of

pytestmark = pytest.mark.lab
COUNT = None if os.environ.get("NODEFALL_EXPERIMENTS") == "all" else 2
_GROUPS = 4  # neighbours, as X-late and X-early, are in different ones: they would undo each other
_APART = (  # these do together what none of them does alone
    ("taint-eviction-reordered", "delete-removes-running-pod"),
    ("taint-eviction-reordered", "pod-removal-early"),
    ("taint-eviction-reordered", "statefulset-replaced-before-removal"),
    ("unknown-early", "replicaset-replaces-unready"),
)
# No node stays Ready, and the abort condition ends whatever lasts a minute; and pods that a node rejects are made and
# bound again and again, as fast as the lab can.
_ALONE = ("heartbeats-ignored", "no-schedule-taint-missing", "no-schedule-taint-late", "replacement-late")
NOTICED = [(name, breakage) for name, item in BUNDLED.items() for breakage in item.breakages]
UNDECIDED = [(name, breakage) for name, item in BUNDLED.items() for breakage in item.undecided_by]


def _groups() -> list[list[str]]:
    groups = [list(BREAKAGES)[group::_GROUPS] for group in range(_GROUPS)]
    for number, group in enumerate(groups):
        for one, other in _APART:
            if one in group and other in group:
                group.remove(other)
                groups[number - 1].append(other)
    return groups


def _unnoticed() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each experiment with all other breakages, a quarter of them at once."""
    for name, item in BUNDLED.items():
        left = {*item.breakages, *item.undecided_by, *_ALONE}
        for group in _groups():
            yield name, tuple(b for b in group if b not in left)


@pytest.mark.parametrize(("name", "breakage"), part(NOTICED, COUNT), ids=str)
def test_it_is_noticed(tmp_path: Path, name: str, breakage: str) -> None:
    _, result = run(name, tmp_path, [breakage])
    wanted = BUNDLED[name].notes["verdict"]
    assert result["status"] != wanted, result["headline"]
    assert wanted != "held" or result["status"] == "violated", result["headline"]


@pytest.mark.parametrize(("name", "breakage"), part(UNDECIDED, COUNT), ids=str)
def test_it_cannot_be_decided(tmp_path: Path, name: str, breakage: str) -> None:
    _, result = run(name, tmp_path, [breakage])
    assert result["status"] == "inconclusive", result["headline"]


@pytest.mark.parametrize(("name", "group"), part(_unnoticed(), COUNT), ids=lambda value: str(value)[:40])
def test_it_is_not_noticed(tmp_path: Path, name: str, group: tuple[str, ...]) -> None:
    wanted = BUNDLED[name].notes["verdict"]
    _, result = run(name, tmp_path, group)
    assert verdict_of(result) == wanted, f"{group}: {result['headline']}"
