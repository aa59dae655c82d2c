"""Resources used up and clocks set wrong: what is sent, how far it goes, what is refused; the scripts, run small."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from tests.kit.actionkit import ACTIONS, ActionDescription, describe, prepare
from tests.kit.processes import until

MIB, GIB = 1 << 20, 1 << 30
EVICTION = {"memory.available": "200Mi", "nodefs.available": "10%", "pid.available": "2000"}
FACTS: dict[str, Any] = {
    "shared-kernel": False,
    "configz": {"evictionHard": EVICTION},
    "disk": {"root": "/var/lib/kubelet", "total": 100 * GIB, "available": 60 * GIB, "mount": "/"},
    "memory": {"total": 16 * GIB, "available": 12 * GIB},
    "swap": 0,
    "cgroup-version": 2,
    "pids": {"max": 32768, "running": 5000},
    "failsafe-timers": [],
    "scheduled-shutdown": NO_SHUTDOWN_SCHEDULED,
    "clock-skew": 0,
    "time-sync-unit": "chrony.service",
    "time-sync-state": "active",
}


def target(max_duration: float = 900.0, power: str = "", **facts: Any) -> Target:
    named = {name.replace("_", "-"): value for name, value in facts.items()}
    return Target("n1", facts=FACTS | named, tag="run-do", max_duration=max_duration, power=power)


def words(name: str, given: dict[str, Any], node: Target) -> list[str]:
    """Of the fault's command, without the script."""
    (*_, command) = ACTIONS[name].program(prepare(name, given, node)).commands
    assert isinstance(command, HostCommand)
    return [word for word in command.argv if "\n" not in word]


COMMON = ["--property=RuntimeMaxSec=300", "--property=OOMScoreAdjust=1000", "--property=KillSignal=SIGKILL"]
LIMITS: list[tuple[str, list[str], list[str]]] = [
    ("disk", [], ["/var/lib/kubelet", str(5 * GIB >> 10)]),
    (
        "memory",
        [
            f"--property=MemoryMax={(12 * GIB - 100 * MIB) * 101 // 100 + 64 * MIB}",
            "--property=MemorySwapMax=0",
            "--property=TasksMax=16",
        ],
        ["/proc/meminfo", str(100 * MIB >> 10), str((12 * GIB - 100 * MIB) >> 10)],
    ),
    ("pid", ["--property=TasksMax=26784"], ["32768", "1000"]),
]


@pytest.mark.parametrize(("kind", "limits", "arguments"), LIMITS)
def test_a_unit_leaves_half_of_the_threshold(kind: str, limits: list[str], arguments: list[str]) -> None:
    expected = ["systemd-run", "--collect", f"--unit=nodefall-{kind}-filler", *COMMON, *limits]
    assert words(f"{kind}-pressure", {"duration": "5m"}, target()) == [
        *expected,
        "--",
        "sh",
        "-c",
        "nodefall",
        *arguments,
    ]


@pytest.mark.parametrize("kind", ["disk", "memory", "pid"])
def test_a_unit_ends_by_its_limit_by_a_timer_and_by_undo(kind: str) -> None:
    node = target(120.0)
    done = describe(f"{kind}-pressure", {}, node)
    stop = f"systemctl stop nodefall-{kind}-filler.service"
    assert done == ActionDescription(
        inject=done.inject,
        preconditions=[f"{kind}-filler is inactive"],
        failsafe=f"nodefall-run-do after 120s: {stop}",
        undo=[f"{stop} unless {kind}-filler is inactive"],
        proof=[f"{kind}-filler is inactive", "the node is Ready"],
        disarm="nodefall-run-do",
    )
    assert "RuntimeMaxSec=120 " in done.inject[0]


def test_the_clock_is_set_after_its_synchronisation_is_stopped() -> None:
    done = describe("clock-skew", {"by": "90s", "direction": "behind"}, target())
    assert done.inject[0] == "systemctl stop chrony.service"
    assert done.inject[1].endswith(" nodefall -90")
    assert done.failsafe.endswith("; systemctl start chrony.service'")
    assert done.undo[1] == "systemctl start chrony.service unless time-sync-state is active"
    assert done.proof == ["clock-skew is 0", "time-sync-state is active", "the node is Ready"]


def test_a_synchronisation_that_did_not_run_is_not_started() -> None:
    done = describe("clock-skew", {}, target(time_sync_state="inactive"))
    assert done.proof == ["clock-skew is 0", "the node is Ready"]
    assert "systemctl start" not in " ".join([done.failsafe, *done.undo])


@pytest.mark.parametrize("by", ["1s", "11m", "2500ms"])
def test_a_skew_out_of_bounds_is_rejected(by: str) -> None:
    with pytest.raises(ValueError, match="whole number of seconds"):
        prepare("clock-skew", {"by": by}, target())


def test_power_cut_by_the_kernel() -> None:
    done = describe("power-cut", {"how": "sysrq"}, target(power="redfish"))
    assert done.inject == ["sh -c 'echo o > /proc/sysrq-trigger'"]
    assert done.undo == ["power on unless the machine is on"]


REFUSED = [
    *[(f"{kind}-pressure", {}, target(shared_kernel=True), "is a container") for kind in ("disk", "memory", "pid")],
    ("clock-skew", {}, target(shared_kernel=True), "is a container"),
    ("power-cut", {"how": "sysrq"}, target(shared_kernel=True, power="redfish"), "is a container"),
    ("power-cut", {"how": "sysrq"}, target(), "has no power control"),
    ("disk-pressure", {}, target(configz={}), r"thresholds \(evictionHard\) are not known"),
    (
        "disk-pressure",
        {},
        target(configz={"evictionHard": {"memory.available": "1Gi"}}),
        "no hard threshold for nodefs",
    ),
    ("disk-pressure", {}, target(configz={"evictionHard": {"nodefs.available": "3%"}}), "leaves under 2%"),
    ("disk-pressure", {}, Target("n1", facts={"shared-kernel": False}), "the fact disk is not known"),
    ("memory-pressure", {}, target(swap=1), "has swap"),
    ("memory-pressure", {}, target(cgroup_version=1), "cgroup v1"),
    ("memory-pressure", {}, target(configz={"evictionHard": {"memory.available": "80Mi"}}), "at least 48 MiB"),
    ("memory-pressure", {}, target(memory={"total": GIB, "available": 90 * MIB}), "of 90 MiB available"),
    ("pid-pressure", {}, target(configz={"evictionHard": {"memory.available": "1Gi"}}), "no hard threshold for pid"),
    ("pid-pressure", {}, target(configz={"evictionHard": {"pid.available": "798"}}), "at least 400 must be left"),
    ("pid-pressure", {}, target(pids={"max": 4194304, "running": 500}), "it would take 4192804 processes"),
    ("pid-pressure", {}, target(memory={"total": GIB, "available": 200 * MIB}), "at most 512 are started"),
    ("clock-skew", {}, target(failsafe_timers=["nodefall-x.timer"]), "there is nodefall-x.timer, beside which"),
    ("clock-skew", {}, target(scheduled_shutdown='(st) "poweroff" 9'), "there is a shutdown that is scheduled"),
    ("clock-skew", {}, target(clock_skew=60), "set wrong already"),
    ("clock-skew", {}, Target("n1", facts={"shared-kernel": False}), "the fact failsafe-timers is not known"),
]


@pytest.mark.parametrize(("name", "given", "node", "why"), REFUSED)
def test_refusals(name: str, given: dict[str, Any], node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        describe(name, given, node)


@pytest.mark.parametrize("kind", ["disk", "memory", "pid"])
def test_pid_1_has_nothing_to_expand(kind: str) -> None:
    """PID 1 expands these in what it starts."""
    (*_, command) = ACTIONS[f"{kind}-pressure"].program(prepare(f"{kind}-pressure", {}, target())).commands
    assert isinstance(command, HostCommand)
    assert not any("${" in word or "$$" in word or word.startswith("$") for word in command.argv)


@contextmanager
def running(kind: str, arguments: list[str]) -> Iterator[int]:
    """The script of an action with small arguments, in a separate process group; its process ID."""
    (*_, command) = ACTIONS[f"{kind}-pressure"].program(prepare(f"{kind}-pressure", {}, target())).commands
    assert isinstance(command, HostCommand)
    (script,) = (word for word in command.argv if "\n" in word)
    process = subprocess.Popen(["sh", "-c", script, "nodefall", *arguments], start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def group(leader: int) -> dict[int, str]:
    """Names by process ID."""
    output = subprocess.run(["ps", "-eo", "pid=,pgid=,comm="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in output.splitlines()]
    return {int(pid): name for pid, pgid, name in rows if int(pgid) == leader}


def test_memory_is_used_up_to_the_limit(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemFree:  900000 kB\nInactive(file):  100000 kB\nInactive:  500000 kB\n")
    with running("memory", [str(meminfo), "500000", "16384"]) as leader:

        def held() -> int:
            tails = [pid for pid, name in group(leader).items() if name == "tail"]
            return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in tails)

        until(lambda: held() > 15 * MIB)
        until(lambda: "sleep" in group(leader).values())
        assert held() < 20 * MIB


def test_processes_are_started_up_to_the_limit() -> None:
    running_now = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    with running("pid", [str(running_now + 200), "100"]) as leader:
        until(lambda: "sleep" in group(leader).values())
        time.sleep(1)
        assert 20 < len(group(leader)) < 300


def test_the_file_is_unlinked(tmp_path: Path) -> None:
    space = os.statvfs(tmp_path)
    free = space.f_bavail * space.f_frsize
    with running("disk", [str(tmp_path), str((free - 8 * MIB) >> 10)]) as leader:
        until(lambda: group(leader).get(leader) == "sleep")
        assert not list(tmp_path.iterdir())
        held = os.stat(f"/proc/{leader}/fd/3")
        assert held.st_nlink == 0
