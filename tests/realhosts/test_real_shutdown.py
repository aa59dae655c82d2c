"""Shutdowns on real machines: systemd's own logind, locks and power."""

from __future__ import annotations

from pathlib import Path

import pytest
from drive import drive
from machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


def test_a_power_off_waits_for_the_delay_lock_and_is_taken_back(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    result = drive(host, "poweroff", {}, tmp_path)
    (step,) = result.steps
    assert (step.shown, step.weak) == ("proven", False), step.because
    assert [(undo.proven, undo.because) for undo in result.undo if undo.step == "do"] != []
    assert all(undo.proven for undo in result.undo), result.left_behind
    assert host.running
