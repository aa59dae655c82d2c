"""A fleet on labs: the real command, real Jobs on real API servers, and pods whose process is the real one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fleets import FleetLab, fleet_labs, kill, write_fleet, write_inventories
from tests.kit.processes import WALL, nodefall, start, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.timeout(10 * WALL)]
RUN = ("gameday", "run", "--fleet", "fleet.yaml", "--plain", "--yes")


def run_fleet(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    process = start(*RUN, *options, cwd=folder)
    output, _ = process.communicate(timeout=8 * WALL)
    return subprocess.CompletedProcess(process.args, process.returncode, output, "")


def fleet_state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        nodefall("gameday", "status", "--fleet", "fleet.yaml", "--json", cwd=folder).stdout
    )
    return found


def statuses(state: dict[str, Any]) -> dict[str, str]:
    return {run["key"]["cluster"]: run.get("verdict") or run.get("status", "pending") for run in state["runs"]}


def most_at_once(labs: dict[str, FleetLab]) -> int:
    """The most processes of pods that ran at the same time, over all labs."""
    spans = [span for lab in labs.values() for span in lab.kubelet.spans.values()]
    return max(sum(begun <= moment <= ended for begun, ended in spans) for moment, _ in spans)


@pytest.mark.nightly
def test_a_fleet_of_a_lab_and_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    """What cannot be read is unknown, never passed."""
    with fleet_labs(tmp_path, ["a"]) as labs:
        write_inventories(tmp_path, labs)
        gone = json.loads((tmp_path / "a.json").read_text())
        gone["cluster"]["timeSource"]["port"] = 1
        (tmp_path / "b.json").write_text(json.dumps(gone))
        (tmp_path / "b.json").chmod(0o644)
        write_fleet(tmp_path, ["a", "b"], ["one"], maxClusters=2, patience="40s")  # also for the pod, on a busy machine
        done = run_fleet(tmp_path, "--id", "d1")
        assert done.returncode == 2, done.stdout
        assert "b is skipped: unknown: it cannot be read" in done.stdout
        assert "a is held: day d1 of days finished: 1 held" in done.stdout
        assert len(labs["a"].kubelet.pods) == 1
        assert labs["a"].applied() == []
        assert labs["a"].left_behind() == []
        report = nodefall("gameday", "report", "days", "--format", "md", cwd=tmp_path)
        assert "**1 held, 1 skipped of 2 runs**" in report.stdout


@pytest.mark.nightly
def test_twenty_labs_under_a_coordinator_that_is_killed(tmp_path: Path) -> None:
    """At most five clusters are under test at once, and each is exactly once, whatever the coordinator's deaths."""
    names = [f"c{number:02}" for number in range(int(os.environ.get("NODEFALL_FLEET", "20")))]
    with fleet_labs(tmp_path, names) as labs:
        write_inventories(tmp_path, labs)
        write_fleet(tmp_path, names, ["one"], maxClusters=5)
        for text in ("c01 begins", f"{names[len(names) // 2]} begins"):
            process = start(*RUN, "--id", "d1", cwd=tmp_path)
            wait_for(process, text)
            kill(process)
        done = run_fleet(tmp_path)  # without the ID: it goes on with that day
        assert done.returncode == 0, done.stdout
        assert statuses(fleet_state(tmp_path)) == dict.fromkeys(names, "held")
        assert {name: len(lab.kubelet.pods) for name, lab in labs.items()} == dict.fromkeys(names, 1)
        assert 1 < most_at_once(labs) <= 5
        assert {name: lab.applied() + lab.left_behind() for name, lab in labs.items()} == {name: [] for name in names}
        again = run_fleet(tmp_path)
        assert again.returncode == 0
        assert "to start another day, name it with --id" in again.stdout
        assert sum(len(lab.kubelet.pods) for lab in labs.values()) == len(names)


@pytest.mark.nightly
def test_after_a_violation_no_further_cluster_begins(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    with fleet_labs(tmp_path, names, breakages={"b": "no-schedule-taint-missing"}) as labs:
        write_inventories(tmp_path, labs)
        write_fleet(tmp_path, names, ["one"])
        done = run_fleet(tmp_path, "--id", "d1")
        assert done.returncode == 1, done.stdout
        assert statuses(fleet_state(tmp_path)) == {"a": "held", "b": "violated", "c": "skipped"}
        # The entry is named if its verdict was seen before the day of that cluster had ended, else the day.
        assert re.search(r"^c: stopped: (one|days) \(1\) on b was violated$", done.stdout, re.MULTILINE)
        assert labs["c"].kubelet.pods == []
        report = nodefall("gameday", "report", "--fleet", "fleet.yaml", "--format", "json", cwd=tmp_path)
        assert report.returncode == 1
        assert {name: lab.applied() + lab.left_behind() for name, lab in labs.items()} == {name: [] for name in names}


@pytest.mark.nightly
def test_a_halt_stops_all_clusters_and_a_resume_goes_on(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    with fleet_labs(tmp_path, names) as labs:
        write_inventories(tmp_path, labs)
        write_fleet(tmp_path, names, ["one", "two"], maxClusters=2)
        process = start(*RUN, "--id", "d1", cwd=tmp_path)
        wait_for(process, "is running: 0 of 2 done, one (1) is running")
        halted = nodefall("gameday", "halt", "--fleet", "fleet.yaml", "--reason", "pager", cwd=tmp_path)
        assert halted.returncode == 0, halted.stderr
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 2, output
        assert {name: lab.applied() + lab.left_behind() for name, lab in labs.items()} == {name: [] for name in names}
        assert labs["c"].kubelet.pods == []
        assert fleet_state(tmp_path)["status"] == "halted"
        still = run_fleet(tmp_path)
        assert still.returncode == 2, still.stdout
        assert labs["c"].kubelet.pods == []
        resumed = nodefall("gameday", "resume", "--fleet", "fleet.yaml", "--reason", "a false alarm", cwd=tmp_path)
        assert resumed.returncode == 0, resumed.stderr
        done = run_fleet(tmp_path)
        assert done.returncode in (0, 2), done.stdout  # an entry that was halted after its fault is not repeated
        assert set(statuses(fleet_state(tmp_path)).values()) <= {"held", "inconclusive"}
        assert statuses(fleet_state(tmp_path))["c"] == "held"


@pytest.mark.nightly
def test_a_signal_ends_only_the_watching(tmp_path: Path) -> None:
    with fleet_labs(tmp_path, ["a"]) as labs:
        write_inventories(tmp_path, labs)
        write_fleet(tmp_path, ["a"], ["one"])
        process = start(*RUN, "--id", "d1", cwd=tmp_path)
        wait_for(process, "a is running")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 130, output
        assert "the Jobs go on by themselves" in output
        done = run_fleet(tmp_path)
        assert done.returncode == 0, done.stdout
        assert len(labs["a"].kubelet.pods) == 1
