"""Actions that need a separate kernel, on one: pressure, the clock, crashes, and the ways back from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.core.ports import Clock
from chaos.core.result import RunResult
from chaos.machines.pool import Hosts
from tests.kit.drive import drive
from tests.kit.kind_standin import StandIn
from tests.kit.vms import VirtualMachine

pytestmark = [pytest.mark.root, pytest.mark.nightly, pytest.mark.vm, pytest.mark.timeout(900)]
MIB = 1 << 20
HARD = {"memory.available": 200 * MIB, "nodefs.available": 600 * MIB, "pid.available": 900}


def done(
    machine: VirtualMachine,
    action: str,
    given: dict[str, Any],
    folder: Path,
    during: Callable[[Hosts], None] | None = None,
) -> RunResult:
    """The result of a run, which has taken everything back; the machine is restored."""

    def standin(clock: Clock) -> StandIn:
        return StandIn(machine, clock, HARD)

    result = drive(machine, action, given, folder, max_duration="10m", recovery="2m", standin=standin, during=during)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert result.undo
    assert machine.run("systemctl list-units --all --no-legend --plain 'nodefall*'") == ""
    return result


def boot(machine: VirtualMachine) -> str:
    return machine.run("cat /proc/sys/kernel/random/boot_id")


def booted_at(machine: VirtualMachine) -> float:
    """By its clock, read without a program to start: under emulation that takes seconds."""
    now, up = machine.run("bash -c 'read -r up _ < /proc/uptime; echo $EPOCHREALTIME $up'").split()
    return float(now) - float(up)


@pytest.mark.parametrize("action", ["memory-pressure", "disk-pressure", "pid-pressure"])
def test_the_kubelet_would_report_it_and_the_machine_lives_on(
    machine: VirtualMachine, tmp_path: Path, action: str
) -> None:
    machine.run("sysctl -w kernel.pid_max=1536")
    before = boot(machine)
    result = done(machine, action, {}, tmp_path)
    assert "Pressure of nodefall-vm was True" in result.steps[0].because
    assert boot(machine) == before
    assert machine.run("dmesg | grep -c 'Out of memory' || true") == "0"


@pytest.mark.parametrize("direction", ["ahead", "behind"])
def test_the_clock_is_wrong_and_right_again(machine: VirtualMachine, tmp_path: Path, direction: str) -> None:
    started = booted_at(machine)
    result = done(machine, "clock-skew", {"by": "90s", "direction": direction}, tmp_path)
    assert "clock of nodefall-vm was" in result.steps[0].because
    assert abs(booted_at(machine) - started) < 1
    assert machine.run("systemctl is-active systemd-timesyncd") == "active"


def test_a_slow_kubelet_waits_for_its_quota_and_is_fast_again(machine: VirtualMachine, tmp_path: Path) -> None:
    cgroup = "/sys/fs/cgroup/system.slice/kubelet.service"
    before = machine.run(f"cat {cgroup}/cpu.max 2> /dev/null || echo max 100000")
    # The stand-in uses no CPU: a process that uses some is put beside it, and leaves most to the rest of the machine.
    loop = "while sleep 0.3; do i=0; while test $((i += 1)) -lt 3000; do :; done; done"
    burner = f"setsid sh -c '{loop}' > /dev/null 2>&1 < /dev/null"
    pid = machine.run(f"{burner} & echo $! > {cgroup}/cgroup.procs; echo $!")
    try:
        result = done(machine, "kubelet-slow", {"percent": 5}, tmp_path)
    finally:
        machine.run(f"kill -KILL {pid}")
    assert "waited" in result.steps[0].because
    assert machine.run("ls /run/systemd/system.control/kubelet.service.d") == ""
    assert machine.run(f"cat {cgroup}/cpu.max 2> /dev/null || echo max 100000") == before == "max 100000"


@pytest.mark.parametrize("percent", [100, 40])
def test_the_cpu_is_busy_and_free_again(machine: VirtualMachine, tmp_path: Path, percent: int) -> None:
    result = done(machine, "cpu-stress", {"percent": percent}, tmp_path)
    assert "with the step's load" in result.steps[0].because
    print(result.steps[0].because)  # noqa: T201
    assert machine.run("ls -d /sys/fs/cgroup/system.slice/nodefall* 2> /dev/null || true") == ""


# As the kubelet makes its slice (a transient unit, whose drop-ins are elsewhere), and a scope of one container.
PODS = """busctl call --quiet org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager \
StartTransientUnit 'ssa(sv)a(sa(sv))' kubepods.slice replace 1 TasksAccounting b true 0"""
LIMITS = (
    "cat /sys/fs/cgroup/kubepods.slice/io.max /sys/fs/cgroup/system.slice/kubelet.service/io.max 2> /dev/null || true"
)


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ({"rate": "500k", "iops": 1000}, ""),
        ({"rate": "4M", "iops": 20}, ""),
        ({"unit": "kubelet.service", "rate": "500k"}, ""),
        ({"unit": "kubelet.service"}, "IOWriteIOPSMax=/dev/loop0 77"),  # a limit of the unit's own files
    ],
)
def test_the_disk_is_slow_and_fast_again(
    machine: VirtualMachine, tmp_path: Path, given: dict[str, Any], own: str
) -> None:
    folder = "/etc/systemd/system/kubelet.service.d"
    machine.run(f"systemctl is-active --quiet kubepods.slice || {PODS}")
    if own:
        machine.run("modprobe loop && truncate --size=1M /var/disk && losetup /dev/loop0 /var/disk")
        machine.run(f"mkdir -p {folder}; printf '[Service]\n{own}\n' > {folder}/9.conf; systemctl daemon-reload")
    before = machine.run(LIMITS)
    try:
        result = done(machine, "disk-slow", given, tmp_path)
    finally:
        after = machine.run(LIMITS)
        if own:
            machine.run(f"rm -r {folder}; systemctl daemon-reload; losetup --detach /dev/loop0")
    print(result.steps[0].because, before)  # noqa: T201
    assert "kB/s" in result.steps[0].because
    assert after == before
    assert ("wiops=77" in before) == bool(own)
    assert (
        machine.run("ls /run/systemd/system.control/* /run/systemd/transient/kubepods.slice.d | grep IO || true") == ""
    )


def test_a_limit_that_systemd_has_forgotten_is_undone(machine: VirtualMachine, tmp_path: Path) -> None:
    """As after a reload that finds other files: the kernel still has the limit, where another unit uses the controller.

    Where none does, systemd disables it, and the limit ends.
    """
    machine.run(f"systemctl is-active --quiet kubepods.slice || {PODS}")
    machine.run("systemctl set-property --runtime system.slice IOAccounting=yes")
    forget = "rm /run/systemd/transient/kubepods.slice.d/50-IO* && systemctl daemon-reload"
    seen: list[str] = []
    try:
        done(machine, "disk-slow", {}, tmp_path, lambda _: seen.append(machine.run(f"{forget}; {LIMITS}")))
        after = machine.run(LIMITS)
    finally:
        machine.run("rm -r /run/systemd/system.control/system.slice.d; systemctl daemon-reload")
    assert "rbps=1000000" in seen[0]
    assert "rbps" not in after


CRASHES: list[tuple[str, dict[str, Any]]] = [
    ("kernel-crash", {}),
    ("hard-reboot", {}),
    ("power-cut", {"how": "sysrq"}),
    ("power-cut", {}),
]


@pytest.mark.parametrize(("action", "given"), CRASHES)
def test_it_goes_down_and_is_back_with_another_boot(
    machine: VirtualMachine, tmp_path: Path, action: str, given: dict[str, Any]
) -> None:
    before = boot(machine)
    done(machine, action, given, tmp_path)
    assert boot(machine) != before
    machine.await_boot()
