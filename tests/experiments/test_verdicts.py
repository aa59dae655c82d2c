"""Every shipped experiment on its lab has the verdict that it says, by the pytest plug-in.

All of them with NODEFALL_EXPERIMENTS=all (``.ci/nightly``); else a seeded part, besides the main ones of test_runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kit.experiment_runs import BUNDLED, OUTCOMES, part, run_as_test, verdict_of

pytestmark = pytest.mark.lab
COUNT = None if os.environ.get("NODEFALL_EXPERIMENTS") == "all" else 3


@pytest.mark.parametrize("name", part(BUNDLED, COUNT))
def test_it_has_its_verdict(tmp_path: Path, name: str) -> None:
    wanted = BUNDLED[name].notes["verdict"]
    outcome, result = run_as_test(name, tmp_path)
    assert (outcome, verdict_of(result)) == (OUTCOMES[wanted], wanted), result["headline"]
    assert all(undo["proven"] for undo in result["undo"])
    assert result["foreign_faults"] == []
    assert result["left_behind"] == []
