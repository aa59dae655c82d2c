"""Runs whose watches are late, doubled and in another order, or whose API server hardly answers.

No verdict differs from that of an undisturbed run, except that it is inconclusive; with late watches none is, if all
had come by its deadline. One seed of late watches here, all of both with NODEFALL_DISTURBED=500 (``.ci/nightly``), some
with NODEFALL_SEEDS=5,11. Figures are appended to the file NODEFALL_DISTURBED_FIGURES, run by run; what is in it already
is skipped, so that 500 can be continued and divided. ``tools/disturbed_figures.py`` sums them up.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.kit.disturbed_runs import KINDS, LATE, disturbed

pytestmark = pytest.mark.lab
COUNT = int(os.environ.get("NODEFALL_DISTURBED", "0"))
CHOSEN = os.environ.get("NODEFALL_SEEDS", "1")  # 1: the quickest experiment, whose bound is the tightest
SEEDS = list(range(COUNT)) or [int(seed) for seed in CHOSEN.split(",")]
FIGURES = os.environ.get("NODEFALL_DISTURBED_FIGURES")


@pytest.mark.parametrize("kind", KINDS if COUNT or "NODEFALL_SEEDS" in os.environ else [LATE])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_verdict_is_reversed(tmp_path: Path, seed: int, kind: str) -> None:
    if (kind, seed) in finished():
        pytest.skip(f"{FIGURES} has it")
    row = disturbed(kind, seed, tmp_path)
    if FIGURES:
        with Path(FIGURES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row.as_dict()) + "\n")
    assert not row.wrong, row
    if row.refused:
        pytest.skip(f"refused before the fault: {row.refused}")


def finished() -> set[tuple[str, int]]:
    """The kinds and seeds that the figures have."""
    if not FIGURES or not Path(FIGURES).exists():
        return set()
    rows = map(json.loads, Path(FIGURES).read_text(encoding="utf-8").splitlines())
    return {(row["kind"], row["seed"]) for row in rows}
