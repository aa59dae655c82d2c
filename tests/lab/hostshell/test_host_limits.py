"""CPU quota of the kubelet's unit on a simulated host, as systemd 252 shows it.

Limits of the pods' disk on a simulated host: what they do, and how they end.
Mounts of a simulated host, read by the fact ``mount``.
Swap in /etc/fstab is on after each boot: a kubelet with failSwapOn does not start, others report it.
"""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.command import HostCommand
from chaos.core.fact import FactRef, HostFact, find_fact
from chaos.core.registry import discover
from chaos.faults.actions.disk_slow import _RESTORE_SCRIPT
from chaos.faults.readings.disks import limit_files, mount
from chaos.faults.readings.machine import swap
from chaos.lab.node.kubelet.runtime import DiskLimit, Runtime
from chaos.lab.objects import Object
from chaos.lab.sim import SimClock
from tests.kit.lab_host import Host

SHOW = "systemctl show --property=CPUQuotaPerSecUSec,DropInPaths,NeedDaemonReload kubelet.service"
FILE = "/run/systemd/system.control/kubelet.service.d/50-CPUQuota.conf"
SET = "systemctl set-property --runtime kubelet.service CPUQuota=0.5%"


def shown(host: Host) -> dict[str, str]:
    return dict(line.split("=", 1) for line in host.run(SHOW)[1].splitlines())


def test_a_quota_ends_when_its_file_is_gone_and_systemd_has_reloaded() -> None:
    host = Host()
    free = {"CPUQuotaPerSecUSec": "infinity", "DropInPaths": "", "NeedDaemonReload": "no"}
    assert shown(host) == free
    assert host.run(SET, root=False)[0] == 1
    assert shown(host) == free
    assert host.run(SET) == (0, "", "")
    limited = {"CPUQuotaPerSecUSec": "5ms", "DropInPaths": FILE, "NeedDaemonReload": "no"}
    assert shown(host) == limited
    assert host.run(f"rm --force {FILE}", root=False)[0] == 1
    assert shown(host) == limited
    for _ in range(2):
        assert host.run(f"rm --force {FILE}") == (0, "", "")
        assert shown(host) in (limited | {"NeedDaemonReload": "yes"}, free)
        assert host.run("systemctl daemon-reload") == (0, "", "")
        assert shown(host) == free


def test_the_kernel_counts_what_the_quota_makes_the_kubelet_wait() -> None:
    host = Host()
    group = host.run("systemctl show --property=ControlGroup kubelet.service")[1].strip().partition("=")[2]
    stat = f"cat /sys/fs/cgroup{group}/cpu.stat"
    assert "throttled_usec 0\n" in host.run(stat)[1]
    host.run(SET)
    host.cluster.sim.run_until(host.cluster.sim.now + 10.0)
    assert "throttled_usec 9950000\n" in host.run(stat)[1]
    host.run("systemctl stop kubelet")
    assert host.run(stat)[0] == 1


def test_other_properties_are_refused() -> None:
    host = Host()
    for words in ("kubelet.service CPUQuota=", "kubelet.service CPUWeight=1", "cron.service CPUQuota=5%"):
        code, _, error = host.run(f"systemctl set-property --runtime {words}")
        assert (code, "the lab simulates only" in error) == (1, True)
    assert "only systemctl set-property --runtime" in host.run("systemctl set-property kubelet.service CPUQuota=5%")[2]


FACTS = discover(chaos.faults.readings, HostFact)
WHERE = {"unit": "kubepods.slice", "path": "/var/lib/kubelet"}
SET_LIMIT = (
    "systemctl set-property --runtime kubepods.slice 'IOReadBandwidthMax=/dev/vda 500000' "
    "'IOWriteBandwidthMax=/dev/vda 500000' 'IOReadIOPSMax=/dev/vda 50' 'IOWriteIOPSMax=/dev/vda 50'"
)
RESTORE = str(
    HostCommand(("sh", "-c", _RESTORE_SCRIPT, "nodefall", WHERE["unit"], "/dev/vda", *limit_files(WHERE["unit"])))
)
IN_FORCE = {"254:0": "rbps=500000 wbps=500000 riops=50 wiops=50"}


def fact(host: Host, name: str, **more: str) -> Any:
    bound = find_fact(FACTS, str(FactRef(name, WHERE | more)))
    known = {needed: fact(host, "disk-limits") for needed in bound.needs}
    code, out, _ = host.run(str(bound.command_for(known)))
    return bound.parse(out, code)


def free(host: Host) -> bool:
    found = fact(host, "disk-limits")
    assert (found["active"], found["io"], found["disk"], found["number"]) == (True, True, "/dev/vda", "254:0")
    return (found["limits"], found["runtime"], found["stale"]) == ({}, False, False)


def test_a_limit_ends_when_it_is_undone_and_not_when_its_files_are_gone() -> None:
    host = Host()
    assert free(host)
    assert host.run(SET_LIMIT, root=False)[0] == 1
    assert free(host)
    assert host.run(SET_LIMIT) == (0, "", "")
    limited = fact(host, "disk-limits")
    assert (limited["limits"], limited["runtime"], limited["stale"]) == (IN_FORCE, True, False)
    files = " ".join(limit_files("kubepods.slice"))
    host.run(f"rm --force {files}")
    assert fact(host, "disk-limits")["stale"]
    host.run("systemctl daemon-reload")
    assert fact(host, "disk-limits")["limits"] == IN_FORCE, "the kernel still has it"
    for _ in range(2):
        assert host.run(RESTORE) == (0, "", "")
        assert free(host)


def test_a_limit_survives_a_reload_and_ends_with_a_boot() -> None:
    host = Host()
    host.run(SET_LIMIT)
    host.run("systemctl daemon-reload")
    assert fact(host, "disk-limits")["limits"] == IN_FORCE
    host.lose_power()
    host.machine.power_off()
    assert free(host)


def test_reads_in_the_slice_take_as_long_as_the_limit_demands() -> None:
    host = Host()
    usual = fact(host, "disk-reads", count="61")
    assert usual["bytes"] / usual["seconds"] > 50e6
    host.run(SET_LIMIT)
    before = host.cluster.sim.now
    slow = fact(host, "disk-reads", count="61")
    assert slow["bytes"] / slow["seconds"] == pytest.approx(500_000, rel=0.01)
    assert host.cluster.sim.now - before == pytest.approx(slow["seconds"], abs=0.1)
    outside = host.run("dd if=/dev/vda of=/dev/null bs=16k count=61 iflag=direct")[2]
    assert f"copied, {usual['seconds']:g} s" in outside


def test_the_files_are_found() -> None:
    host = Host()
    find = FACTS["disk-limit-files"]
    assert find.parse(host.run(str(find.command))[1], 1) == []
    host.run(SET_LIMIT)
    assert len(find.parse(host.run(str(find.command))[1], 1)) == 4


@pytest.mark.parametrize("size", [1_000_000, 100_000_000])
def test_containers_with_a_probe_are_ready_late(size: float) -> None:
    def ready_after(limit: DiskLimit | None, annotations: dict[str, str]) -> float:
        sim = SimClock(0.0, 1)
        runtime = Runtime(sim, 2.0)
        runtime.disk_limit = limit
        pod = {"metadata": {"uid": "u", "name": "p", "namespace": "n", "annotations": annotations}}
        runtime.start(pod | {"spec": {"containers": [{"name": "c"}]}})
        return runtime.containers("u")[0].ready_at - sim.now

    probe = {"lab.nodefall.dev/ready-after": "2"}
    limit = DiskLimit(size, 100)
    assert ready_after(None, probe) == 2
    assert ready_after(limit, {}) == 0
    assert ready_after(limit, probe) == pytest.approx(2 + max(4.0, 8.388608e6 / size))


def test_other_commands_are_refused() -> None:
    host = Host()
    for words in (
        "systemctl set-property --runtime kubepods.slice 'IOReadIOPSMax=/dev/vdb 5'",
        "systemctl set-property --runtime kubepods.slice IOWeight=5",
        "systemctl set-property --runtime kubepods.slice IOReadIOPSMax=",
        "systemd-run --scope --quiet true",
        "lsblk --json",
        "dd if=/dev/zero of=/x",
        "timeout 5 true",
        "find /run -newer x",
    ):
        code, _, error = host.run(words)
        assert (code != 0, "the lab simulates" in error) == (True, True), words
    assert "Permission denied" in host.run("dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct", root=False)[2]


READ_ONLY = "mount -o remount,ro,nosuid,relatime /dev/vdb1 /var/lib/data"


def read(host: Host, path: str = "/var/lib/data") -> dict[str, str | bool]:
    fact = mount.bind({"path": path})
    code, out, _ = host.run(str(fact.command_for({})))
    found: dict[str, str | bool] = fact.parse(out, code)
    return found


def test_a_data_disk_is_read_only_until_it_is_remounted() -> None:
    host = Host()
    before = read(host)
    assert before == {
        "source": "/dev/vdb1",
        "type": "ext4",
        "options": "rw,nosuid,relatime",
        "whole": True,
        "with-root": False,
        "writable": True,
    }
    assert host.run(READ_ONLY, root=False)[0] == 1
    assert read(host) == before
    assert host.run(READ_ONLY) == (0, "", "")
    assert read(host) == before | {"options": "ro,nosuid,relatime", "writable": False}
    assert host.run(READ_ONLY.replace("ro,", "rw,")) == (0, "", "")
    assert read(host) == before
    assert read(host, "/var/lib") == {}


@pytest.mark.parametrize("command", [READ_ONLY.replace("vdb1", "vdb2"), "mount -o remount,ro /dev/vda1 /"])
def test_a_remount_that_fails_changes_nothing(command: str) -> None:
    host = Host()
    assert host.run(command)[0] == 32
    assert read(host)["writable"] is True


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
