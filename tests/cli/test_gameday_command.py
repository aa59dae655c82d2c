"""``nodefall gameday plan``, as a process."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.kit.command import command
from tests.kit.processes import EXPERIMENTS, LAB, ROOT, nodefall

DATA = ROOT / "tests" / "documents" / "data"
FIRST = EXPERIMENTS / "gamedays" / "first.yaml"


def plan(*arguments: str | Path, cwd: Path) -> dict[str, Any]:
    return planned_by(command("gameday", "plan", *arguments, "--json", cwd=cwd))


def planned_by(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_calendar_is_shown_in_both_zones(tmp_path: Path) -> None:
    done = command("gameday", "plan", DATA / "gameday.yaml", "--at", "2026-12-17T15:00", "--count", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "window in Europe/Berlin, open at 2026-12-17T15:00:00+01:00 (2026-12-17T14:00:00Z)" in lines
    assert [line for line in lines if line.startswith("  open  ")] == [
        "  open  2026-12-17T15:00:00+01:00 (2026-12-17T14:00:00Z) to 2026-12-17T16:00:00+01:00 (2026-12-17T15:00:00Z)",
        "  open  2027-01-07T09:00:00+01:00 (2027-01-07T08:00:00Z) to 2027-01-07T16:00:00+01:00 (2027-01-07T15:00:00Z)",
    ]
    assert "  start 2027-02-02T10:00:00+01:00 (2027-02-02T09:00:00Z)" in lines
    assert "entry 2 longer: A planned power-off finishes every pod in time and moves its work" in lines
    assert "  target   victim: 2 of workers of zone a" in lines
    assert "gate approved by ada" in lines
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_as_json(tmp_path: Path) -> None:
    document = plan(DATA / "gameday.yaml", "--at", "2026-11-23T00:00Z", "--seed", "7", cwd=tmp_path)
    assert (document["name"], document["seed"], document["clusters"]) == ("monthly", 7, ["east", "west"])
    assert document["entries"][0]["seeds"] == [7, 8]
    assert document["openings"][0]["begin"] == {"local": "2026-11-23T09:00:00+01:00", "utc": "2026-11-23T08:00:00Z"}
    assert "runs" not in document
    again = plan(DATA / "gameday.yaml", "--at", "2026-11-23T01:00+01:00", "--seed", "7", cwd=tmp_path)
    assert again == document


def test_the_hash_is_that_of_what_the_day_does(tmp_path: Path) -> None:
    """It changes with an experiment and an inventory, and not with time, seed or a comment."""
    for file in DATA.rglob("*.yaml"):
        copy = tmp_path / file.relative_to(DATA)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    hashes = [plan("gameday.yaml", cwd=tmp_path)["hash"]]
    for name, old, new in [
        ("gameday.yaml", "kind: GameDay", "kind: GameDay  # a comment"),
        ("experiment.yaml", "within: 5s", "within: 6s"),
        ("inventory.yaml", "maxNodes: 1", "maxNodes: 2"),
        ("gameday.yaml", "count: 2", "count: 3"),
    ]:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert old in text, name
        (tmp_path / name).write_text(text.replace(old, new, 1), encoding="utf-8")
        hashes.append(plan("gameday.yaml", "--at", "2027-01-01", cwd=tmp_path)["hash"])
    assert hashes[0] == hashes[1]
    assert len(set(hashes[1:])) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gameday.yaml", "--at", "tomorrow"], "error: --at: invalid time 'tomorrow'"),
        (["experiment.yaml"], "experiment.yaml:2:7: wrong kind Experiment: a GameDay is required here"),
        (["nowhere.yaml"], "nowhere.yaml: file not found"),
        (["gameday.yaml", "-i", "nowhere.yaml"], "nowhere.yaml: file not found"),
        (["gameday.yaml", "--seed", "-1"], "-1 is not in the range"),
        (["gameday.yaml", "--count", "0"], "0 is not in the range"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str) -> None:
    done = command("gameday", "plan", *arguments, cwd=DATA)
    assert done.returncode == 64
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_an_example() -> None:
    done = command("gameday", "plan", "--help", cwd=ROOT)
    example = "nodefall gameday plan experiments/gamedays/first.yaml -i hosts/lab.yaml --seed 7"
    assert example in " ".join(done.stdout.replace("\\\n", "").split())


@pytest.mark.lab
def test_every_run_is_planned_on_a_cluster(tmp_path: Path) -> None:
    document = planned_by(nodefall("gameday", "plan", FIRST, "-i", LAB, "--seed", "3", "--json", cwd=tmp_path))
    runs = document["runs"]
    assert [run["entry"] for run in runs] == [entry["name"] for entry in document["entries"]]
    assert [run["seed"] for run in runs] == [seed for entry in document["entries"] for seed in entry["seeds"]]
    assert all(run["plan"]["targets"] and run["plan"]["steps"] for run in runs)
    assert not any(run["refused"] for run in runs)
    assert list(tmp_path.glob("reports/**/*")) == []


@pytest.mark.lab
def test_a_run_that_is_refused_does_not_hide_the_others(tmp_path: Path) -> None:
    """And an entry of another cluster is not planned on this one."""
    text = FIRST.read_text(encoding="utf-8").replace("../../hosts/lab.yaml", str(LAB)).replace("../", f"{EXPERIMENTS}/")
    text = text.replace("cordon.yaml}", "cordon.yaml, targets: {victim: {zone: nowhere}}}")
    text = text.replace("drain-allowed.yaml}", "drain-allowed.yaml, clusters: [other]}")
    text = text.replace("  clusters:\n", "  clusters:\n    - {name: other, inventory: other.yaml}\n")
    (tmp_path / "other.yaml").write_text(LAB.read_text(encoding="utf-8"), encoding="utf-8")
    file = tmp_path / "day.yaml"
    file.write_text(text, encoding="utf-8")
    done = nodefall("gameday", "plan", file, "-i", LAB, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert done.stdout.count("\nrefused: ") == 1
    planned = [line.split()[1].rstrip(",") for line in done.stdout.splitlines() if line.startswith("experiment ")]
    assert planned == ["no-execute-untolerated", "fast-reboot", "graceful-poweroff"]
