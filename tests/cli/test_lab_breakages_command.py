"""``nodefall lab breakages``, and an id that does not exist."""

from __future__ import annotations

import json
from pathlib import Path

from chaos.lab.breakages import BREAKAGES
from tests.kit.command import command


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
