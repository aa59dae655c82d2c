"""Services of real machines: stopped, frozen, restarted, and back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.drive import drive
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
ACTIONS = [
    "kubelet-stop",
    "kubelet-restart",
    "kubelet-freeze",
    "runtime-stop",
    "dbus-restart",
    "logind-restart",
    "hard-reboot",
]
STATE = "systemctl is-active kubelet containerd; systemd-inhibit --list --no-legend | grep -c kubelet"


@pytest.mark.parametrize("action", ACTIONS)
def test_it_is_proven_undone_and_leaves_nothing(three: list[RealHost], tmp_path: Path, action: str) -> None:
    host = three[0]
    result = drive(host, action, {}, tmp_path)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert host.run(STATE).split() == ["active", "active", "1"]
    assert not host.run("systemctl list-units --all --no-legend 'nodefall-*'")
