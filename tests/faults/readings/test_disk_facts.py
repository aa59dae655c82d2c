"""Limits of a disk and reads from it: output of real programs."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import FactRef, HostFact, find_fact
from chaos.core.registry import discover

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
WHERE = {"unit": "kubepods.slice", "path": "/var/lib/kubelet"}
SHOW = "ControlGroup=/kubepods.slice\nDropInPaths=\nNeedDaemonReload=no\n"
CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc\n"
# util-linux 2.38 with --raw: no parent is an empty last column.
PARTITIONS = (
    "/dev/sr0 11:0 rom \n/dev/vda 254:0 disk \n/dev/vda1 254:1 part /dev/vda\n/dev/vda14 254:14 part /dev/vda\n"
)
LVM = (
    "/dev/nvme0n1 259:0 disk \n/dev/nvme0n1p3 259:3 part /dev/nvme0n1\n"
    "/dev/mapper/luks 253:0 crypt /dev/nvme0n1p3\n/dev/mapper/vg-data 253:1 lvm /dev/mapper/luks\n"
)
RAID = (
    "/dev/sda 8:0 disk \n/dev/sda1 8:1 part /dev/sda\n/dev/md0 9:0 raid1 /dev/sda1\n"
    "/dev/sdb 8:16 disk \n/dev/sdb1 8:17 part /dev/sdb\n/dev/md0 9:0 raid1 /dev/sdb1\n"
)
LIMIT = "rbps=1000000 wbps=1000000 riops=100 wiops=max"
FREE = {
    "active": True,
    "io": True,
    "disk": "/dev/vda",
    "number": "254:0",
    "limits": {},
    "runtime": False,
    "stale": False,
}


def limits(text: str, code: int = 0, **changed: str) -> Any:
    return find_fact(FACTS, str(FactRef("disk-limits", WHERE | changed))).parse(text, code)


def device(major: int, minor: int) -> str:
    """As GNU stat prints %d on Linux."""
    return f"device={major << 8 | minor & 0xFF | (minor & ~0xFF) << 12}\n"


@pytest.mark.parametrize(
    ("number", "rows", "disk", "found"),
    [
        ((254, 1), PARTITIONS, "/dev/vda", "254:0"),
        ((254, 0), PARTITIONS, "/dev/vda", "254:0"),
        ((253, 1), LVM, "/dev/nvme0n1", "259:0"),
        ((9, 0), RAID, "", ""),
        ((8, 17), RAID, "/dev/sdb", "8:16"),
        ((0, 52), PARTITIONS, "", ""),  # Btrfs, overlay, tmpfs, NFS
        ((259, 300), "/dev/nvme9n1 259:300 disk \n", "/dev/nvme9n1", "259:300"),
        ((254, 1), "", "", ""),
    ],
)
def test_the_disk_of_a_path(number: tuple[int, int], rows: str, disk: str, found: str) -> None:
    value = limits(SHOW + device(*number) + rows + CONTROLLERS, 1)
    assert value == FREE | {"disk": disk, "number": found}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (SHOW + device(254, 1) + PARTITIONS + CONTROLLERS + f"254:0 {LIMIT}\n", {"limits": {"254:0": LIMIT}}),
        (SHOW + device(254, 1) + PARTITIONS + "cpuset cpu memory pids\n", {"io": False}),
        (SHOW + device(254, 1) + PARTITIONS, {"io": False}),
        (SHOW.replace("/kubepods.slice", "") + device(254, 1) + PARTITIONS + CONTROLLERS, {"active": False}),
        (SHOW.replace("=no", "=yes") + device(254, 1) + PARTITIONS + CONTROLLERS, {"stale": True}),
        *(
            (SHOW.replace("Paths=", f"Paths=/x/9.conf {path}") + device(254, 1) + PARTITIONS + CONTROLLERS, changes)
            for path, changes in {
                "/run/systemd/transient/kubepods.slice.d/50-IOReadIOPSMax.conf": {"runtime": True},
                "/run/systemd/system.control/kubepods.slice.d/50-IOWriteBandwidthMax.conf": {"runtime": True},
                "/run/systemd/transient/kubepods.slice.d/50-CPUWeight.conf": {},
                "/etc/systemd/system/kubepods.slice.d/50-IOReadIOPSMax.conf": {},
            }.items()
        ),
    ],
)
def test_what_a_unit_may_use(text: str, changes: dict[str, Any]) -> None:
    assert limits(text) == FREE | changes


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("", 1, "systemd did not answer"),
        (SHOW + device(254, 1), 127, "systemd did not answer"),
        (SHOW + PARTITIONS + CONTROLLERS, 1, "/var/lib/kubelet does not exist"),
        (SHOW.replace("/kube", "/my.slice/kube") + device(254, 1), 0, "is /my.slice/kubepods.slice"),
    ],
)
def test_limits_that_are_not_understood(text: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        limits(text, code)


def test_limits_without_a_path_need_no_disk() -> None:
    fact = find_fact(FACTS, str(FactRef("disk-limits", {"unit": "kubepods.slice"})))
    expected = {name: value for name, value in FREE.items() if name not in ("disk", "number")}
    assert fact.parse(SHOW + CONTROLLERS + f"8:0 {LIMIT}\n", 0) == expected | {"limits": {"8:0": LIMIT}}
    assert "lsblk" not in str(fact.command_for({}))
    with pytest.raises(ValueError, match="path"):
        find_fact(FACTS, str(FactRef("disk-reads", {"unit": "kubepods.slice", "count": "8"})))


def test_the_group_of_a_service_is_in_system_slice() -> None:
    show = SHOW.replace("/kubepods.slice", "/system.slice/k3s.service")
    assert limits(show + device(254, 1) + PARTITIONS + CONTROLLERS, 0, unit="k3s.service") == FREE


def reads(**changed: str) -> HostFact:
    return find_fact(FACTS, str(FactRef("disk-reads", WHERE | {"count": "122"} | changed)))


def test_reads_are_from_the_disk_of_the_path_in_the_unit() -> None:
    fact = reads()
    (needed,) = fact.needs
    assert needed == str(FactRef("disk-limits", WHERE))
    words = fact.command_for({needed: FREE}).argv
    assert words[3:] == ("nodefall", "kubepods.slice", "/dev/vda", "122")
    assert "systemd-run --scope" in words[2]
    service = reads(unit="containerd.service")
    words = service.command_for({service.needs[0]: FREE}).argv
    assert words[3:] == ("nodefall", "/sys/fs/cgroup/system.slice/containerd.service", "/dev/vda", "122")
    assert 'echo $$ > "$1/cgroup.procs"' in words[2]
    with pytest.raises(ValueError, match="not on a single disk"):
        fact.command_for({needed: FREE | {"disk": ""}})


@pytest.mark.parametrize(
    ("text", "code", "value"),
    [
        (
            "122+0 records in\n122+0 records out\n1998848 bytes (2.0 MB, 1.9 MiB) copied, 1.95012 s, 1.0 MB/s\n",
            *(0, {"bytes": 1998848, "seconds": 1.95012}),
        ),
        ("Running scope as unit: run-r1.scope\n16384 bytes (16 kB, 16 KiB) copied, 9.8e-05 s, 167 MB/s\n", 0, {}),
        ("4+0 records in\n4+0 records out\n65536 bytes (66 kB, 64 KiB) copied, 20 s, 3.3 kB/s\n", 124, {}),
    ],
)
def test_seconds_that_dd_needed(text: str, code: int, value: dict[str, float]) -> None:
    found = reads().parse(text, code)
    assert found["bytes"] > 0
    assert found["seconds"] > 0
    assert not value or found == value


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("dd: failed to open '/dev/vda': Permission denied\n", 1, "Permission denied"),
        ("sh: 1: cannot create /sys/fs/cgroup/x/cgroup.procs: Directory nonexistent\n", 2, "Directory nonexistent"),
        ("dd: error reading\n0+0 records in\n0 bytes copied, 0.000131 s, 0.0 kB/s\n", 1, "could not read"),
        ("0+0 records in\n0+0 records out\n0 bytes copied, 20.0 s, 0.0 kB/s\n", 124, "could not read"),
        ("", 0, "could not read"),
    ],
)
def test_reads_that_failed(text: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        reads().parse(text, code)


@pytest.mark.parametrize("given", [{"count": "0"}, {"count": "1001"}, {"unit": "x.service"}, {"path": "/"}])
def test_references_that_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="fact disk-reads"):
        reads(**given)


def test_files_of_limits_are_those_of_the_units() -> None:
    names = ("IOReadIOPSMax", "IOWriteBandwidthMax")
    ours = [f"/run/systemd/transient/kubepods.slice.d/50-{name}.conf" for name in names]
    ours += ["/run/systemd/system.control/k3s-agent.service.d/50-IOReadBandwidthMax.conf"]
    others = ["/run/systemd/system.control/db.service.d/50-IOReadIOPSMax.conf", "/run/x/50-IOReadIOPSMax.conf"]
    assert FACTS["disk-limit-files"].parse("".join(f"{path}\n" for path in ours + others), 1) == sorted(ours)
    assert FACTS["disk-limit-files"].parse("", 0) == []
    with pytest.raises(ValueError, match="find did not answer"):
        FACTS["disk-limit-files"].parse("", 127)
