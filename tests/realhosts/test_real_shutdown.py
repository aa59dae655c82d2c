"""Shutdowns on real machines: systemd's own logind, locks and power."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.drive import drive
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


def test_a_power_off_waits_for_the_delay_lock_and_is_taken_back(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    result = drive(host, "poweroff", {}, tmp_path)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert [(undo.proven, undo.because) for undo in result.undo if undo.step == "do"] != []
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert host.running


@pytest.mark.parametrize("then", ["2s", pytest.param("65s", marks=pytest.mark.nightly)])
def test_a_shutdown_that_is_cancelled_leaves_the_host_up(three: list[RealHost], tmp_path: Path, then: str) -> None:
    """The longer one waits until its time is over."""
    host = three[0]
    started = host.run("ps -o lstart= -p 1")
    cancel = {"name": "cancel", "action": "cancel-shutdown", "target": "victim", "after": "do + 4s"}
    result = drive(host, "schedule-shutdown", {"in": "60s"}, tmp_path, then=then, more=[cancel])
    assert [(step.action, step.proof_status) for step in result.steps] == [
        ("schedule-shutdown", "proven"),
        ("cancel-shutdown", "proven"),
    ], [step.because for step in result.steps]
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert host.running
    assert host.run("ps -o lstart= -p 1") == started
    assert "kubelet" in host.run("systemd-inhibit --list --no-legend")
    assert not host.run("ls /run/systemd/shutdown", check=False)
