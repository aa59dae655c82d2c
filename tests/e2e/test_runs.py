"""The main experiments on the lab, run as a process, and judged again from the recording.

The others are in tests/experiments.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.store.recording import build_timeline, read_recording
from tests.kit.processes import EXPERIMENTS, LAB, nodefall, result_of
from tests.kit.suite import others_nightly

pytestmark = pytest.mark.lab
MAIN = ("graceful-poweroff", "cancelled-shutdown", "lock-after-cancel", "power-cut")


@pytest.mark.smoke  # over SSH
@pytest.mark.parametrize("name", others_nightly(MAIN, ("graceful-poweroff",)))
def test_a_bundled_experiment_holds_and_its_recording_gives_the_same_verdicts(tmp_path: Path, name: str) -> None:
    experiment = EXPERIMENTS / f"{name}.yaml"
    done = nodefall("run", experiment, "--inventory", LAB, "--seed", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(done)
    assert result["status"] == "held"
    assert result["simulated"] is True
    assert all(step["shown"] == "proven" for step in result["steps"])
    assert all(undo["proven"] for undo in result["undo"])
    assert result["left_behind"] == []
    assert done.stderr.rstrip().splitlines()[-1].startswith("This was a simulated cluster")
    directory = next((tmp_path / "reports" / name).iterdir())
    names = {path.name for path in directory.iterdir()}
    assert {
        "report.html",
        "report.md",
        "junit.xml",
        "metrics.txt",
        "result.json",
        "recording.jsonl.gz",
        "journal.jsonl",
    } <= names
    again = result_of(nodefall("judge", directory, experiment, "--json", cwd=tmp_path))
    assert again["status"] == "held"
    statuses = {v["name"]: v["status"] for v in result["hypothesis"] + result["recovery"]}
    assert {v["name"]: v["status"] for v in again["hypothesis"] + again["recovery"]} == statuses
    assert "no pending undo" in nodefall("undo", "last", cwd=tmp_path).stderr
    assert nodefall("undo", "--list", cwd=tmp_path).returncode == 0
    timeline = build_timeline(read_recording(directory / "recording.jsonl.gz"))
    (victim,) = timeline.meta["targets"]
    assert timeline.readings(victim, "containers"), "containers were observed on the node"
    assert set(timeline.meta["clockOffsets"]) == {"the API server", f"host {victim}"}
    assert {blind.source for blind in timeline.blind_windows} <= {f"host@{victim}"}


def test_a_kubelet_that_loses_its_lock_is_detected_and_restarted(tmp_path: Path) -> None:
    done = nodefall("run", EXPERIMENTS / "lock-after-cancel.yaml", "-i", LAB, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(done)
    assert result["tally"] == "4 of 5 held, 1 violated as known"
    assert all(undo["proven"] for undo in result["undo"]), "undo restarts the kubelet, which takes its lock again"
    assert "systemctl restart kubelet" in done.stderr


def test_a_power_off_without_the_lost_lock_is_not_graceful(tmp_path: Path) -> None:
    done = nodefall("run", EXPERIMENTS / "poweroff-after-cancel.yaml", "-i", LAB, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {verdict["name"]: (verdict["status"], "known" in verdict) for verdict in result_of(done)["hypothesis"]}
    assert found == {
        "the node is Ready again after the cancellation": ("held", False),
        "every pod is terminated by the kubelet": ("violated", True),
    }


def test_no_graceful_shutdown_configured_is_refused(tmp_path: Path) -> None:
    inventory = tmp_path / "lab.yaml"
    text = LAB.read_text(encoding="utf-8")
    text = text.replace("shutdownGracePeriod: 30s", "shutdownGracePeriod: 0s")
    inventory.write_text(text.replace("CriticalPods: 10s", "CriticalPods: 0s"))
    done = nodefall("run", EXPERIMENTS / "graceful-poweroff.yaml", "-i", inventory, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "requires kubelet.shutdownGracePeriod >0" in done.stderr


def test_demo_and_plan(tmp_path: Path) -> None:
    done = nodefall("demo", "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = next(line for line in done.stdout.splitlines() if line.startswith("report: ")).removeprefix("report: ")
    assert (tmp_path / report).is_file()
    planned = nodefall("plan", EXPERIMENTS / "graceful-poweroff.yaml", "-i", LAB, "--seed", "1", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "send    systemctl poweroff" in planned.stdout
    assert "undo    power on, unless the machine is on" in planned.stdout
