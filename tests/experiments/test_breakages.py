"""A lab that does wrong: the experiments that say so notice it, and the others say what they say without it.

The whole table with NODEFALL_EXPERIMENTS=all (``.ci/nightly``); a seeded part of it otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from shelf import SHELF, part, run

from chaos.lab.breakages import BREAKAGES

pytestmark = pytest.mark.lab
COUNT = None if os.environ.get("NODEFALL_EXPERIMENTS") == "all" else 3
_GROUPS = 4  # neighbours, as X-late and X-early, are in different ones: they would undo each other
# No node stays Ready, and the abort condition ends whatever lasts a minute; and pods that a node rejects are made and
# bound again and again, as fast as the lab can.
_ALONE = ("heartbeats-ignored", "no-schedule-taint-missing", "no-schedule-taint-late", "replacement-late")
NOTICED = [(name, breakage) for name, item in SHELF.items() for breakage in item.breakages]


def _unnoticed() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each experiment with all other breakages, a quarter of them at once."""
    for name, item in SHELF.items():
        for group in range(_GROUPS):
            left = {*item.breakages, *_ALONE}
            yield name, tuple(b for b in list(BREAKAGES)[group::_GROUPS] if b not in left)


@pytest.mark.parametrize(("name", "breakage"), part(NOTICED, COUNT), ids=str)
def test_it_is_noticed(tmp_path: Path, name: str, breakage: str) -> None:
    _, result = run(name, tmp_path, [breakage])
    wanted = SHELF[name].notes["verdict"]
    assert result["status"] != wanted, result["headline"]
    assert wanted != "held" or result["status"] == "violated", result["headline"]


@pytest.mark.parametrize(("name", "group"), part(_unnoticed(), COUNT), ids=lambda value: str(value)[:40])
def test_it_is_not_noticed(tmp_path: Path, name: str, group: tuple[str, ...]) -> None:
    wanted = SHELF[name].notes["verdict"]
    _, result = run(name, tmp_path, group)
    assert result["headline"].split(":")[0] == wanted, f"{group}: {result['headline']}"
