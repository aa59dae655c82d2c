"""Whatever a run dies of, and wherever: after ``undo`` the cluster is restored, and a second ``undo`` does nothing.

Every action, at every position of its journal (see ``tripwire``), hit by every death (see ``deaths``), its Windows form
over WinRM and SSH (``action@winrm``, ``action@ssh``), and some actions over transport pod (``action@pod``): all with
NODEFALL_SWEEP=all (``.ci/nightly``), of NODEFALL_SWEEP_ACTIONS="action ..." only where that is set. Figures are
appended to the file NODEFALL_SWEEP_FIGURES, action by action; those that are in it already are skipped, so that a
sweep can be continued. NODEFALL_SWEEP_SHARE=0.25 tries a quarter of the positions for each death, drawn by
NODEFALL_SWEEP_SEED. Without NODEFALL_SWEEP, the cases of NODEFALL_SWEEP_POSITIONS="action:position:death ..." are
tried where that is set, else a few chosen by NODEFALL_SWEEP_SEED. NODEFALL_SWEEP_STOP: see ``strikes``.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.action_rows import REFUSED_BY_LAB, WITH_ETCD
from tests.kit.contracts import ACTIONS, WINDOWS_FORMS, WINDOWS_VICTIMS
from tests.kit.deaths import DEATHS
from tests.kit.sweepkit import Case, Sweep

pytestmark = pytest.mark.lab
COMMON = ("before-intend", "intend", "begin", "returned", "before-strike", "strike", "undone")  # every action has them
REPLICATED = ("begin", "returned", "before-strike", "strike")  # those at which the cluster has a copy of the journal
IN_UNDO = [f"returned+{place}" for place in ("undo-sent", "before-strike", "strike", "before-unmirror")]  # of a SIGKILL
SWEPT = sorted(name for name in ACTIONS if name not in REFUSED_BY_LAB or name in WITH_ETCD)
WINDOWS = [f"{name}@{transport}" for transport in WINDOWS_VICTIMS for name in WINDOWS_FORMS]
# Over transport pod: what goes down with the pod, what cuts its way off, and what only slows it.
BY_PODS = [f"{name}@pod" for name in ("poweroff", "power-button", "reboot", "partition", "latency", "memory-pressure")]
ALL = os.environ.get("NODEFALL_SWEEP") == "all"
CHOSEN = os.environ.get("NODEFALL_SWEEP_ACTIONS", "").split() or [*SWEPT, *WINDOWS, *BY_PODS]
FIGURES = os.environ.get("NODEFALL_SWEEP_FIGURES")
SHARE = float(os.environ.get("NODEFALL_SWEEP_SHARE", "1"))
SEED = int(os.environ.get("NODEFALL_SWEEP_SEED", "7"))


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
    dice = random.Random(SEED)  # noqa: S311 - the same every time
    few = []
    for action, death in zip(dice.sample(SWEPT, len(DEATHS)), DEATHS, strict=True):
        few.append(f"{action}:{dice.choice(REPLICATED if DEATHS[death].needs_replica else COMMON)}:{death}")
    few.append(f"kubelet-stop:{dice.choice(IN_UNDO)}:SIGKILL")
    windows = [f"{dice.choice(WINDOWS)}:{dice.choice(COMMON)}:SIGKILL"]
    by_pod = f"{dice.choice(BY_PODS)}:{dice.choice(COMMON)}:SIGKILL"
    return [*few, *windows, by_pod, f"partition@winrm:{dice.choice(IN_UNDO)}:SIGKILL"]


@pytest.mark.timeout(900)
@pytest.mark.skipif(ALL, reason="all are tried")
def test_some_positions(sweep: Sweep) -> None:
    cases = [sweep.case(*name.split(":")) for name in chosen()]
    check(cases)
    assert sum(case.hit for case in cases) * 2 > len(cases), [case.name for case in cases if not case.hit]


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not ALL, reason="takes hours: NODEFALL_SWEEP=all")
@pytest.mark.parametrize("action", CHOSEN)
def test_every_position(sweep: Sweep, action: str) -> None:
    if action in {row["action"] for row in read_figures()}:
        pytest.skip(f"{FIGURES} has it")
    whole = sweep.case(action)
    assert not whole.wrong, "\n".join(whole.wrong)
    assert whole.places
    cases = {
        name: [sweep.case(action, place, name) for place in places] for name, places in drawn(action, whole).items()
    }
    if "unmirror" in whole.places:
        cases["SIGKILL twice"] = [sweep.case(action, place, "SIGKILL") for place in IN_UNDO]
    tried = [case for some in cases.values() for case in some]
    if FIGURES:
        row = {
            "action": action,
            "positions": whole.places,
            "deaths": {name: figures_of(some) for name, some in cases.items()},
            "left": [case.name for case in tried if case.wrong],
        }
        with Path(FIGURES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    check(tried)


def drawn(action: str, whole: Case) -> dict[str, list[str]]:
    """The positions to try for each death: all of the run, or a share of them."""
    dice = random.Random(f"{SEED} {action}")  # noqa: S311 - the same every time
    every = {name: whole.replicated if death.needs_replica else whole.places for name, death in DEATHS.items()}
    return {name: dice.sample(places, math.ceil(len(places) * SHARE)) for name, places in every.items()}


def figures_of(cases: list[Case]) -> dict[str, float]:
    """How many, and CPU seconds of all."""
    return {"tried": len(cases), "hit": sum(c.hit for c in cases), "cpu": round(sum(c.cpu for c in cases), 1)}


def read_figures() -> list[dict[str, Any]]:
    """Those of a sweep that has begun."""
    if not FIGURES or not Path(FIGURES).exists():
        return []
    return [json.loads(line) for line in Path(FIGURES).read_text(encoding="utf-8").splitlines()]


def check(cases: list[Case]) -> None:
    """Print the figures; fail for what was left behind."""
    left = [case for case in cases if case.wrong]
    missed = [case.name for case in cases if not case.hit]
    cpu = sum(case.cpu for case in cases) / len(cases)
    print(  # noqa: T201
        f"positions tried: {len(cases)}, left behind: {len(left)}, not come to: {', '.join(missed) or 'none'}, "
        f"CPU seconds a case: {cpu:.2f}"
    )
    assert not left, "\n\n".join("\n".join([case.name, *case.wrong]) for case in left)
