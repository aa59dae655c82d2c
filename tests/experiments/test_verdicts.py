"""Every shipped experiment has the verdict that it says, in the process of its lab, with the least rights.

With ten seeds if NODEFALL_EXPERIMENTS=all (``.ci/nightly``). Over the network: ``test_connected.py``.
On a lab that does wrong, the experiments that say so notice it, and the others say what they say without it: a seeded
part of the table of breakages, the whole one if NODEFALL_EXPERIMENTS=all.
"""

from __future__ import annotations

import pytest

from tests.kit.experiment_runs import BUNDLED, IS_WHOLE, NOTICED, UNDECIDED, is_noticed, part, unnoticed
from tests.kit.rehearsals import outcome, rehearse

SEEDS = range(1, 11 if IS_WHOLE else 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BUNDLED)
def test_it_has_its_verdict(name: str, seed: int) -> None:
    run = rehearse(name, seed)
    assert outcome(run) == BUNDLED[name].notes["verdict"], run.result.headline
    assert all(undo.proven for undo in run.result.undo)
    assert run.result.foreign_faults == ()
    assert run.result.leftovers == ()


COUNT = None if IS_WHOLE else 10


@pytest.mark.parametrize(("name", "breakage"), part(NOTICED, COUNT), ids=str)
def test_it_is_noticed(name: str, breakage: str) -> None:
    run = rehearse(name, breakages=[breakage])
    assert is_noticed(name, str(run.result.status)), run.result.headline


@pytest.mark.parametrize(("name", "breakage"), part(UNDECIDED, COUNT), ids=str)
def test_it_cannot_be_decided(name: str, breakage: str) -> None:
    run = rehearse(name, breakages=[breakage])
    assert str(run.result.status) == "inconclusive", run.result.headline


@pytest.mark.parametrize(("name", "group"), part(unnoticed(), COUNT), ids=lambda value: str(value)[:40])
def test_it_is_not_noticed(name: str, group: tuple[str, ...]) -> None:
    run = rehearse(name, breakages=group)
    assert outcome(run) == BUNDLED[name].notes["verdict"], f"{group}: {run.result.headline}"
