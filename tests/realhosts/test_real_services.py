"""Services of real machines: stopped, frozen, restarted, and restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.errors import Refused
from tests.kit.drive import drive
from tests.kit.machines import RealHost
from tests.kit.suite import others_nightly

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
ACTIONS = [
    "kubelet-stop",
    "kubelet-restart",
    "kubelet-freeze",
    "runtime-stop",
    "dbus-restart",
    "logind-restart",
]
STATE = "systemctl is-active kubelet containerd; systemd-inhibit --list --no-legend | grep -c kubelet"


@pytest.mark.parametrize("action", others_nightly(ACTIONS, ("kubelet-stop", "kubelet-freeze", "logind-restart")))
def test_it_is_proven_undone_and_leaves_nothing(three: list[RealHost], tmp_path: Path, action: str) -> None:
    check_action(three[0], action, tmp_path)


@pytest.mark.nightly
def test_a_reboot_is_for_containers_that_start_again(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    with pytest.raises(Refused, match="would stay off: its restart policy is no"):
        drive(host, "hard-reboot", {}, tmp_path)
    host.docker("update", "--restart=on-failure:1", host.name)  # as kind creates its nodes
    try:
        check_action(host, "hard-reboot", tmp_path)
    finally:
        host.docker("update", "--restart=no", host.name)


def check_action(host: RealHost, action: str, tmp_path: Path) -> None:
    result = drive(host, action, {}, tmp_path)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert host.run(STATE).split() == ["active", "active", "1"]
    assert not host.run("systemctl list-units --all --no-legend 'nodefall-*'")
