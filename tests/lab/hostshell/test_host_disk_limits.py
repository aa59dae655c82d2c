"""Limits of the pods' disk on a simulated host: what they do, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.command import HostCommand
from chaos.core.fact import FactRef, HostFact, find_fact
from chaos.core.registry import discover
from chaos.faults.actions.disk_slow import _RESTORE_SCRIPT
from chaos.faults.readings.disks import limit_files
from chaos.lab.node.kubelet.runtime import DiskLimit, Runtime
from chaos.lab.sim import SimClock
from tests.kit.lab_host import Host

FACTS = discover(chaos.faults.readings, HostFact)
WHERE = {"unit": "kubepods.slice", "path": "/var/lib/kubelet"}
SET = (
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
    assert host.run(SET, root=False)[0] == 1
    assert free(host)
    assert host.run(SET) == (0, "", "")
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
    host.run(SET)
    host.run("systemctl daemon-reload")
    assert fact(host, "disk-limits")["limits"] == IN_FORCE
    host.lose_power()
    host.machine.power_off()
    assert free(host)


def test_reads_in_the_slice_take_as_long_as_the_limit_demands() -> None:
    host = Host()
    usual = fact(host, "disk-reads", count="61")
    assert usual["bytes"] / usual["seconds"] > 50e6
    host.run(SET)
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
    host.run(SET)
    assert len(find.parse(host.run(str(find.command))[1], 1)) == 4


@pytest.mark.parametrize("size", [1_000_000, 100_000_000])
def test_containers_with_a_probe_are_ready_late(size: float) -> None:
    def ready_after(limit: DiskLimit | None, annotations: dict[str, str]) -> float:
        sim = SimClock(0.0, 1)
        runtime = Runtime(sim)
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
