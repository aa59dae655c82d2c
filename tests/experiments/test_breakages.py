"""A lab that does wrong: the experiments that say so notice it, and the others say what they say without it.

In the process of the lab. The whole table with NODEFALL_EXPERIMENTS=all (``.ci/nightly``); a seeded part otherwise.
"""

from __future__ import annotations

import pytest

from tests.kit.experiment_runs import BUNDLED, IS_WHOLE, NOTICED, UNDECIDED, is_noticed, part, unnoticed
from tests.kit.rehearsals import outcome, rehearse

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
