"""Units that exhaust a resource: the host's view, and all ways in which they end."""

from __future__ import annotations

import pytest

from chaos.core.command import HostCommand
from chaos.core.fact import HostFact
from chaos.faults.actions import cpu_stress
from chaos.faults.actions.pressure import DISK_SCRIPT, MEMORY_SCRIPT, PID_SCRIPT
from chaos.faults.readings.disks import disk
from chaos.faults.readings.kubelet import kubelet_flags
from chaos.faults.readings.machine import cpu_time, memory, pids, swap
from chaos.faults.readings.units import memory_filler
from tests.kit.lab_host import Host

SCRIPTS = {"memory": MEMORY_SCRIPT, "disk": DISK_SCRIPT, "pid": PID_SCRIPT}


def start(host: Host, kind: str, seconds: str = "30") -> tuple[int, str, str]:
    unit = ("systemd-run", "--collect", f"--unit=nodefall-{kind}-filler", f"--property=RuntimeMaxSec={seconds}")
    script = ("sh", "-c", SCRIPTS[kind], "nodefall", "/var/lib/kubelet", "1", "2")
    return host.run(str(HostCommand((*unit, "--", *script))))


def wait(host: Host, seconds: float) -> None:
    host.cluster.sim.run_until(host.cluster.sim.now + seconds)


def fact(host: Host, wanted: HostFact, **known: object) -> object:
    code, out, _ = host.run(str(wanted.command_for(known)))
    return wanted.parse(out, code)


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_filler_presses_until_it_is_stopped(kind: str) -> None:
    host = Host()
    assert start(host, kind) == (0, "", f"Running as unit: nodefall-{kind}-filler.service\n")
    assert host.machine.pressure == {kind}
    assert "already loaded" in start(host, kind)[2]
    assert host.run(f"systemctl is-active nodefall-{kind}-filler")[1] == "active\n"
    assert host.run(f"systemctl stop nodefall-{kind}-filler.service") == (0, "", "")
    assert host.machine.pressure == set()
    assert host.run(f"systemctl stop nodefall-{kind}-filler.service")[0] == 5


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_filler_ends_with_its_time_and_with_the_power(kind: str) -> None:
    host = Host()
    start(host, kind)
    wait(host, 29)
    assert host.machine.pressure == {kind}
    wait(host, 2)
    assert host.machine.pressure == set()
    start(host, kind)
    host.lose_power()
    assert host.machine.pressure == set()
    wait(host, 60)  # its timer is gone too


def test_cpu_time_of_loops_up_to_their_quota() -> None:
    host = Host()
    before = cpu(host)
    wait(host, 100)
    idle = cpu(host)
    assert (idle["cpus"], idle["filler"]) == (2, 0.0)
    assert idle["busy"] - before["busy"] == pytest.approx(10, abs=0.1)
    unit = ("systemd-run", "--collect", "--unit=nodefall-cpu-filler", "--property=RuntimeMaxSec=50")
    script = ("--property=CPUQuota=150%", "--", "sh", "-c", cpu_stress._SCRIPT, "nodefall", "8")
    assert host.run(str(HostCommand((*unit, *script))))[0] == 0
    wait(host, 10)
    during = cpu(host)
    assert during["filler"] == pytest.approx(15, abs=0.1)
    assert during["busy"] - idle["busy"] == pytest.approx(16, abs=0.1)
    assert during["busy"] + during["idle"] - idle["busy"] - idle["idle"] == pytest.approx(20, abs=0.1)
    wait(host, 90)
    after = cpu(host)
    assert after["filler"] == 0.0
    assert after["busy"] - during["busy"] == pytest.approx(69, abs=0.1)  # 60 CPU seconds more, and 5 % of 180


def cpu(host: Host) -> dict[str, float]:
    found = fact(host, cpu_time)
    assert isinstance(found, dict)
    return found


def test_the_host_shows_what_remains() -> None:
    host = Host()
    free = fact(host, memory), fact(host, disk, **{"kubelet-flags": {}}), fact(host, pids)
    assert free[0] == {"total": 8 << 30, "available": 6 << 30}
    assert free[1] == {"root": "/var/lib/kubelet", "total": 40 << 30, "available": 30 << 30, "mount": "/"}
    assert free[2] == {"max": 16384, "running": 400}
    assert fact(host, swap) == 0
    assert fact(host, memory_filler) == "inactive"
    for kind in SCRIPTS:
        start(host, kind)
    assert fact(host, memory) == {"total": 8 << 30, "available": 50 << 20}
    assert fact(host, disk, **{"kubelet-flags": {}}) == {**free[1], "available": 2 << 30}
    assert fact(host, pids) == {"max": 16384, "running": 16384 - 819}
    assert fact(host, memory_filler) == "active"


def test_the_kubelets_flags_are_seen() -> None:
    flags = fact(Host(), kubelet_flags)
    assert flags == {
        "bootstrap-kubeconfig": "/etc/kubernetes/bootstrap-kubelet.conf",
        "kubeconfig": "/etc/kubernetes/kubelet.conf",
        "config": "/var/lib/kubelet/config.yaml",
    }


def test_other_services_are_refused() -> None:
    code, _, err = Host().run("systemd-run --unit=x -- sh -c 'echo hello'")
    assert (code, "the lab simulates only services that" in err) == (1, True)
