"""Runs over a network whose watches are late, doubled and in another order, or whose API server hardly answers.

The same in process is ``tests/rehearsal/test_disturbed_rehearsals.py``, of which this is a sample: it shows that the
transport makes no difference. Nightly: one seed of late watches takes more than a minute. More with
NODEFALL_DISTURBED=6 or NODEFALL_SEEDS=5,11.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kit.disturbance import KINDS, LATE
from tests.kit.disturbed_runs import disturbed

IS_CHOSEN = bool({"NODEFALL_DISTURBED", "NODEFALL_SEEDS"} & os.environ.keys())
pytestmark = [pytest.mark.lab] if IS_CHOSEN else [pytest.mark.lab, pytest.mark.nightly]
COUNT = int(os.environ.get("NODEFALL_DISTURBED", "0"))
CHOSEN = os.environ.get("NODEFALL_SEEDS", "1")  # 1: the quickest experiment, whose bound is the tightest
SEEDS = list(range(COUNT)) or [int(seed) for seed in CHOSEN.split(",")]


@pytest.mark.parametrize("kind", KINDS if COUNT or "NODEFALL_SEEDS" in os.environ else [LATE])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_verdict_is_reversed(tmp_path: Path, seed: int, kind: str) -> None:
    row = disturbed(kind, seed, tmp_path)
    assert not row.wrong, row
    if row.refused:
        pytest.skip(f"refused before the fault: {row.refused}")
