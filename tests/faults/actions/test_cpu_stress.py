"""CPUs kept busy: the unit that does it, what is refused; its script, run small."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.faults.actions.cpu_stress import _SCRIPT
from tests.kit.actionkit import ACTIONS, describe, prepare
from tests.kit.processes import until

FACTS: dict[str, Any] = {
    "shared-kernel": False,
    "cgroup-version": 2,
    "cpu-time": {"cpus": 4, "busy": 1.0, "idle": 9.0, "filler": 0.0},
}
STOP = "systemctl stop nodefall-cpu-filler.service"


def target(**facts: Any) -> Target:
    named = {name.replace("_", "-"): value for name, value in facts.items()}
    return Target("n1", facts=FACTS | named, tag="run-do", max_duration=600.0)


@pytest.mark.parametrize(
    ("given", "workers", "limits"),
    [
        ({}, "4", ["RuntimeMaxSec=600", "CPUQuota=400%", "CPUWeight=100", "TasksMax=12"]),
        ({"percent": 50}, "4", ["RuntimeMaxSec=600", "CPUQuota=200%", "CPUWeight=100", "TasksMax=12"]),
        (
            {"workers": 1, "percent": 12.5, "weight": 1000, "duration": "1m"},
            "1",
            ["RuntimeMaxSec=60", "CPUQuota=12.5%", "CPUWeight=1000", "TasksMax=9"],
        ),
    ],
)
def test_a_unit_runs_a_loop_for_each_worker(given: dict[str, Any], workers: str, limits: list[str]) -> None:
    (command,) = ACTIONS["cpu-stress"].program(prepare("cpu-stress", given, target())).commands
    assert isinstance(command, HostCommand)
    assert command.argv[-5:] == ("sh", "-c", _SCRIPT, "nodefall", workers)
    assert {f"--property={limit}" for limit in limits} < set(command.argv)
    done = describe("cpu-stress", given, target())
    assert done.preconditions == ["cpu-filler is inactive"]
    assert done.failsafe.endswith(f"s: {STOP}")
    assert done.undo == [f"{STOP} unless cpu-filler is inactive"]
    assert done.proof == ["cpu-filler is inactive", "the node is Ready"]
    assert done.disarm == "nodefall-run-do"


@pytest.mark.parametrize(
    ("node", "why"),
    [(target(shared_kernel=True), "is a container"), (target(cgroup_version=1), "has cgroup v1")],
)
def test_it_is_refused(node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as refused:
        describe("cpu-stress", {}, node)
    assert refused.value.hint


@pytest.mark.parametrize(
    "given", [{"percent": 0}, {"percent": 101}, {"workers": 0}, {"workers": 1025}, {"weight": 1001}, {"weight": 0}]
)
def test_parameters_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        describe("cpu-stress", given, target())


def test_the_script_uses_cpu_time_until_it_is_killed() -> None:
    process = subprocess.Popen(["sh", "-c", _SCRIPT, "nodefall", "2"], start_new_session=True)
    try:
        until(lambda: _cpu_seconds_of_group(process.pid) >= 0.2)
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def _cpu_seconds_of_group(group: int) -> float:
    """CPU seconds of the children of a session's leader."""
    done = subprocess.run(["ps", "-eo", "sess=,cputimes=,pid="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    pids = [pid for session, _, pid in rows if session == str(group)]
    total = 0.0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total
