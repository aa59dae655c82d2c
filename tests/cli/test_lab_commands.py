"""``nodefall lab breakages``, and the workload of a lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.cli.lab.workload import job_readiness
from chaos.lab.breakages import BREAKAGES
from tests.kit.command import command

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
    assert all("unobservable_reason" in item for item in listed)


def test_an_unknown_breakage_is_refused_with_the_nearest(tmp_path: Path) -> None:
    done = command("lab", "up", "--out", str(tmp_path / "lab.json"), "--breakage", "evicton-late")
    assert done.returncode == 64
    assert "unknown breakage 'evicton-late'; did you mean: eviction-late" in done.stderr


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
