"""Shipped experiments over the network, each with a process for its lab, by the pytest plug-in with the least rights.

All of them with NODEFALL_EXPERIMENTS=all (``.ci/nightly``); else a seeded part, besides the main ones of test_runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.experiment_runs import (
    BUNDLED,
    IS_WHOLE,
    NOTICED,
    OUTCOMES,
    is_noticed,
    part,
    run,
    run_as_test,
    verdict_of,
)

pytestmark = pytest.mark.lab


FIRST, *OTHERS = part(BUNDLED, None if IS_WHOLE else 3)


@pytest.mark.parametrize("name", [pytest.param(FIRST, marks=pytest.mark.smoke), *OTHERS])
def test_it_has_its_verdict(tmp_path: Path, name: str) -> None:
    wanted = BUNDLED[name].notes["verdict"]
    outcome, result = run_as_test(name, tmp_path)
    assert (outcome, verdict_of(result)) == (OUTCOMES[wanted], wanted), result["headline"]
    assert all(undo["proven"] for undo in result["undo"])
    assert result["foreign_faults"] == []
    assert result["left_behind"] == []


@pytest.mark.parametrize(("name", "breakage"), part(NOTICED, 10 if IS_WHOLE else 1), ids=str)
def test_a_breakage_is_noticed(tmp_path: Path, name: str, breakage: str) -> None:
    _, result = run(name, tmp_path, [breakage])
    assert is_noticed(name, result["status"]), result["headline"]
