"""Swap in /etc/fstab is on after each boot: a kubelet with failSwapOn does not start, others report it."""

from __future__ import annotations

import pytest

from chaos.faults.readings.machine import swap
from chaos.lab.objects import Object
from tests.kit.lab_host import Host

GIB = 1 << 30


def _swap(host: Host) -> int:
    code, out, _ = host.run("cat /proc/swaps")
    size: int = swap.parse(out, code)
    return size


def _info(host: Host) -> Object:
    node = host.cluster.store.get("nodes", "", "w1")
    assert node is not None
    info: Object = node["status"]["nodeInfo"]
    return info


def _reboot(host: Host) -> None:
    host.machine.reset()
    host.cluster.sim.run_until(host.cluster.sim.now + 60.0)


def test_swap_that_is_reported_is_the_same_after_a_reboot() -> None:
    host = Host(swap="2Gi", fail_swap_on=False)
    before, boot = _info(host), host.machine.boot_id
    _reboot(host)
    assert (host.machine.boot_id == boot, host.machine.kubelet.is_running) == (False, True)
    assert before["swap"] == _info(host)["swap"] == {"capacity": 2 * GIB}
    assert _swap(host) == 2 * GIB
    assert f"SwapTotal: {2 * GIB // 1024:>13} kB\n" in host.run("cat /proc/meminfo")[1]


@pytest.mark.parametrize("fails", [True, False])
def test_swap_turned_off_by_hand_is_on_after_a_reboot(fails: bool) -> None:
    host = Host(swap="2Gi", swapped_off=True, fail_swap_on=fails)
    assert (_swap(host), host.machine.kubelet.is_running) == (0, True)
    assert "swap" not in _info(host)
    assert host.machine.kubelet.configz()["kubeletconfig"]["failSwapOn"] is fails
    _reboot(host)
    assert (_swap(host), host.machine.kubelet.is_running) == (2 * GIB, not fails)
    assert ("swap" in _info(host)) is not fails


def test_without_swap_no_swap_is_reported() -> None:
    host = Host()
    _reboot(host)
    assert (_swap(host), host.machine.kubelet.is_running) == (0, True)
    assert "swap" not in _info(host)
