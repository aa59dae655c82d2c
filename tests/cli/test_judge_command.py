"""``nodefall judge``: exit codes, first lines, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.kit.command import command

ROOT = Path(__file__).parents[2]
RECORDINGS, EXPERIMENTS = ROOT / "tests" / "recordings", ROOT / "experiments"
GRACEFUL, CUT = "01-graceful-poweroff.jsonl.gz", "05-power-cut.jsonl.gz"


def nodefall(*arguments: str) -> CompletedProcess[str]:
    return command("judge", *arguments, cwd=ROOT)


def on(recording: str, experiment: str = "graceful-poweroff", *rest: str) -> CompletedProcess[str]:
    return nodefall(str(RECORDINGS / recording), str(EXPERIMENTS / f"{experiment}.yaml"), *rest)


@pytest.mark.parametrize(
    ("recording", "experiment", "options", "code", "first"),
    [
        (
            GRACEFUL,
            "graceful-poweroff",
            [],
            0,
            "5 of 5 held: The cluster behaved as expected after power-off on ra-worker",
        ),
        (GRACEFUL, "graceful-poweroff", ["--bind", "victim=ra-worker", "--bind", "workload=demo"], 0, "5 of 5 held"),
        (GRACEFUL, "cancelled-shutdown", [], 2, "6 of 6 inconclusive: Step announce is not in the recording"),
        (CUT, "graceful-poweroff", ["--map", "power-off=power-cut"], 1, "2 of 5 violated: Node rb-worker did not have"),
        (
            GRACEFUL,
            "graceful-poweroff",
            ["--fact", "kubelet.shutdownGracePeriod=0s"],
            2,
            "5 of 5 inconclusive: Node ra-worker does not meet the requirements of the experiment",
        ),
    ],
)
def test_judged(recording: str, experiment: str, options: list[str], code: int, first: str) -> None:
    done = on(recording, experiment, *options)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(first)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bind", "victim"], "--bind victim: not of the form NAME=VALUE"),
        (["--bind", "victm=ra-worker"], "unknown target 'victm'\nhint: did you mean 'victim'?"),
        (["--bind", "victim=ra-wrker"], "unknown node 'ra-wrker'\nhint: did you mean 'ra-worker'?"),
        (["--map", "poweroff=power-cut"], "unknown step 'poweroff'\nhint: did you mean 'power-off'?"),
        (["--fact", "kubelet.shutdownGrace=1s"], "did you mean 'kubelet.shutdownGracePeriod'?"),
        (["--fact", "kubelet.shutdownGracePeriod=soon"], "invalid duration 'soon'"),
        (["--fact", "kubelet.shutdownGracePeriod=nan"], "'nan' is not 0 or a positive number"),
        (["--fact", "kubelet.shutdownGracePeriod=inf"], "'inf' is not 0 or a positive number"),
        (["--fact", "kubelet.shutdownGracePeriod=-5"], "'-5' is not 0 or a positive number"),
    ],
)
def test_usage_errors(options: list[str], message: str) -> None:
    done = on(GRACEFUL, "graceful-poweroff", *options)
    assert (done.returncode, done.stdout) == (64, "")
    assert message in done.stderr


def test_a_directory_without_a_recording(tmp_path: Path) -> None:
    done = nodefall(str(tmp_path), str(EXPERIMENTS / "graceful-poweroff.yaml"))
    assert (done.returncode, done.stdout) == (64, "")
    assert f"{tmp_path}: contains no recording.jsonl.gz" in done.stderr


def test_bad_recordings(tmp_path: Path) -> None:
    experiment = str(EXPERIMENTS / "graceful-poweroff.yaml")
    broken = tmp_path / "r.jsonl"
    broken.write_text("{}\n")
    for path, message in ((broken, f"{broken}:1:1: "), (tmp_path / "x", "x: file not found")):
        done = nodefall(str(path), experiment)
        assert (done.returncode, message in done.stderr) == (64, True), done.stderr
        assert "Traceback" not in done.stderr


def test_json_and_reports(tmp_path: Path) -> None:
    done = on(CUT, "graceful-poweroff", "--map", "power-off=power-cut", "--json", "--report", str(tmp_path / "r"))
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert (result["status"], result["exit_code"]) == ("violated", 1)
    assert json.loads((tmp_path / "r" / "result.json").read_text())["headline"] == result["headline"]
    assert (tmp_path / "r" / "report.html").stat().st_size > 1000


def test_a_run_directory(tmp_path: Path) -> None:
    (tmp_path / "recording.jsonl.gz").write_bytes((RECORDINGS / GRACEFUL).read_bytes())
    assert nodefall(str(tmp_path), str(EXPERIMENTS / "graceful-poweroff.yaml")).returncode == 0
