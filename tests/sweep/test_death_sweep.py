"""Whatever a run dies of, and wherever: after ``undo`` the cluster is restored, and a second ``undo`` does nothing.

Every action, at every position of its journal (see ``tripwire``), hit by every death: all with NODEFALL_SWEEP=all
(``.ci/nightly``; figures go to the file NODEFALL_SWEEP_FIGURES), those of
NODEFALL_SWEEP_POSITIONS="action:position:death ..." where that is set, else a few chosen by NODEFALL_SWEEP_SEED.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.contracts import ACTIONS, REFUSED
from tests.kit.sweepkit import Case, Sweep
from tests.kit.tripwire import DEATHS

pytestmark = pytest.mark.lab
COMMON = ("before-intend", "intend", "begin", "returned", "before-strike", "strike", "undone")  # every action has them
FEW = 12
IN_UNDO = [f"returned+{place}" for place in ("undo-sent", "before-strike", "strike", "before-unmirror")]  # of a SIGKILL
SWEPT = sorted(name for name in ACTIONS if name not in REFUSED)
ALL = os.environ.get("NODEFALL_SWEEP") == "all"


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    swept = Sweep(tmp_path, speed=60 if ALL else 20)
    try:
        yield swept
    finally:
        swept.close()


def chosen() -> list[str]:
    """The cases to try, by name."""
    if named := os.environ.get("NODEFALL_SWEEP_POSITIONS"):
        return named.split()
    dice = random.Random(int(os.environ.get("NODEFALL_SWEEP_SEED", "7")))  # noqa: S311 - the same every time
    actions = dice.sample(SWEPT, FEW)
    deaths = dice.sample(DEATHS * (FEW // len(DEATHS)), FEW)
    few = [f"{action}:{dice.choice(COMMON)}:{death}" for action, death in zip(actions, deaths, strict=True)]
    return [*few, f"kubelet-stop:{dice.choice(IN_UNDO)}:SIGKILL"]


@pytest.mark.timeout(900)
@pytest.mark.skipif(ALL, reason="all are tried")
def test_some_positions(sweep: Sweep) -> None:
    cases = [sweep.case(*name.split(":")) for name in chosen()]
    write_figures(cases)
    assert sum(case.hit for case in cases) * 2 > len(cases), [case.name for case in cases if not case.hit]


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not ALL, reason="takes hours: NODEFALL_SWEEP=all")
@pytest.mark.parametrize("action", SWEPT)
def test_every_position(sweep: Sweep, action: str) -> None:
    whole = sweep.case(action)
    assert not whole.wrong, "\n".join(whole.wrong)
    assert whole.places
    cases = [sweep.case(action, place, death) for place in whole.places for death in DEATHS]
    cases += [sweep.case(action, place, "SIGKILL") for place in IN_UNDO if "unmirror" in whole.places]
    if figures := os.environ.get("NODEFALL_SWEEP_FIGURES"):
        row = {
            "action": action,
            "positions": whole.places,
            "all": len(cases),
            "tried": len(cases),
            "hit": sum(case.hit for case in cases),
            "left": [case.name for case in cases if case.wrong],
        }
        with Path(figures).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    write_figures(cases)


def write_figures(cases: list[Case]) -> None:
    """Print the figures; fail for what was left behind."""
    left = [case for case in cases if case.wrong]
    missed = [case.name for case in cases if not case.hit]
    print(f"positions tried: {len(cases)}, left behind: {len(left)}, not come to: {', '.join(missed) or 'none'}")  # noqa: T201
    assert not left, "\n\n".join("\n".join([case.name, *case.wrong]) for case in left)
