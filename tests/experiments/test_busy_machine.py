"""A lab in lockstep does not depend on how busy the machine is: the same verdicts, and byte for byte the same history,
up to the last wait of the run, for proofs that it has seen everything.

In the nightly run alone: eight busy loops disturb the tests beside them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.experiment_runs import BUNDLED
from tests.kit.histories import busy_loops, logged_run

LOOPS = 8
_LAST_PROOFS = 3.0  # seconds: a dozen attempts to prove that a run has seen everything; chance decides which succeeds
pytestmark = [pytest.mark.lab, pytest.mark.nightly, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", list(BUNDLED))
def test_a_busy_machine_changes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "idle").mkdir()
    (tmp_path / "busy").mkdir()
    idle = logged_run(name, tmp_path / "idle", speed=60.0)
    with busy_loops(LOOPS):
        busy = logged_run(name, tmp_path / "busy")
    assert busy.verdicts == idle.verdicts, busy.headline
    end = min(idle.end, busy.end)
    assert busy.until(end) == idle.until(end)
    assert abs(busy.end - idle.end) < _LAST_PROOFS
    assert len(idle.until(end)) > 100
