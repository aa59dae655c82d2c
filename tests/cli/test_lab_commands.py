"""``nodefall lab breakages`` and ``lab replay``, and the workload of a lab."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chaos.cli.lab.workload import job_readiness
from chaos.lab.breakages import BREAKAGES
from tests.kit.command import command

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "tests" / "recordings"
PARTITION = RECORDINGS / "12-partition-ipv4-only.jsonl.gz"
COMPLETE, FAILED = ([{"type": type_, "status": "True"}] for type_ in ("Complete", "Failed"))


def test_every_breakage_is_listed() -> None:
    lines = command("lab", "breakages").stdout.splitlines()
    rules = {line.strip().removesuffix(":") for line in lines if not line.startswith("  ") and line}
    assert rules == {f"rule {number}" for number in range(1, 13)}
    assert {line.split()[0] for line in lines if line.startswith("  ")} == set(BREAKAGES)


def test_as_json() -> None:
    listed = json.loads(command("lab", "breakages", "--json").stdout)
    assert [item["id"] for item in listed] == list(BREAKAGES)
    assert {key: listed[0][key] for key in ("rule", "seconds")} == {"rule": 1, "seconds": 0.0}
    assert all(item["unseen"] == item["unobservable_reason"] for item in listed), "unseen is the key of 0.1.0"


def test_an_unknown_breakage_is_refused_with_the_nearest(tmp_path: Path) -> None:
    done = command("lab", "up", "--out", str(tmp_path / "lab.json"), "--breakage", "evicton-late")
    assert done.returncode == 64
    assert "unknown breakage 'evicton-late'; did you mean: eviction-late" in done.stderr


def replay(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command("lab", "replay", *arguments, cwd=ROOT)


def changed(path: Path, old: str, new: str) -> Path:
    text = gzip.decompress(PARTITION.read_bytes()).decode()
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_recording_that_matches() -> None:
    done = replay(str(PARTITION))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "30 of 30 states matched")
    assert done.stderr == ""


def test_one_that_does_not_prints_every_difference(tmp_path: Path) -> None:
    """Both families are cut in the lab; the recording still shows a node that stays Ready."""
    path = changed(tmp_path / "r.jsonl", '"families":["ipv4"]', '"families":["ipv4","ipv6"]')
    done = replay(str(path), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert set(report) == {"recording", "matched", "states", "seed", "differences", "findings"}
    assert (report["states"], report["matched"] < 30) == (30, True)
    assert all(set(item) == {"subject", "t", "text"} for item in report["differences"])
    words = replay(str(path)).stdout.splitlines()
    assert len(words) == len(report["differences"]) + 1
    assert words[-1] == f"{report['matched']} of 30 states matched"


def test_count_needs_no_lab(tmp_path: Path) -> None:
    assert replay(str(PARTITION), "--count").stdout == "30 states\n"
    path = changed(tmp_path / "r.jsonl", '"type":"partition"', '"type":"earthquake"')
    done = replay(str(path), "--count", "--json")
    assert (done.returncode, json.loads(done.stdout)["states"]) == (0, 30)


def test_what_the_lab_cannot_do(tmp_path: Path) -> None:
    done = replay(str(changed(tmp_path / "r.jsonl", '"type":"partition"', '"type":"earthquake"')))
    assert done.returncode == 0, "a partition of one family changes no state"
    assert "action earthquake is not replayed: the lab does not simulate it" in done.stdout.splitlines()


@pytest.mark.parametrize("text", ["", "nonsense\n", '{"t": 1, "kind": "meta", "type": "recording", "object": {}}\n'])
def test_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")
    done = replay(str(path))
    assert done.returncode == 64
    assert str(path) in done.stderr
    assert done.stdout == ""


def test_no_such_file(tmp_path: Path) -> None:
    assert replay(str(tmp_path / "none.jsonl.gz")).returncode == 64


@pytest.mark.parametrize(
    ("spec", "status", "answer"),
    [
        ({"parallelism": 2}, {}, (False, "0 of 2 pods have started")),
        ({"parallelism": 2}, {"ready": 1, "active": 2}, (False, "1 of 2 pods have started")),
        ({"parallelism": 2}, {"ready": 2}, (True, "2 of 2 pods have started")),
        ({"parallelism": 2, "completions": 1}, {"ready": 1}, (True, "1 of 1 pods have started")),
        ({"parallelism": 2, "completions": 9}, {"ready": 1, "succeeded": 1}, (True, "2 of 2 pods have started")),
        ({"parallelism": 2}, {"succeeded": 1, "conditions": COMPLETE}, (True, "")),
        ({"parallelism": 2, "suspend": True}, {}, (True, "")),
        ({"parallelism": 0}, {}, (True, "0 of 0 pods have started")),
        ({"parallelism": 2}, {"conditions": FAILED}, (False, "failed")),
    ],
)
def test_readiness_of_a_job(spec: dict[str, Any], status: dict[str, Any], answer: tuple[bool, str]) -> None:
    assert job_readiness({"spec": spec, "status": status}) == answer
