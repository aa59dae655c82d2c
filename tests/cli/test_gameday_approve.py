"""``nodefall gameday approve``: what is refused before a cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.app.gameday import load_game_day
from chaos.app.registry import load_registry
from chaos.cli.gameday.control import ApproveOptions, approve
from chaos.core.errors import Refused
from tests.kit.gamedays import write_cordon, write_day

OF_ENTRY = [{"kind": "approval", "by": ["grace"]}]
ENTRIES = [{"experiment": "one.yaml"}, {"experiment": "two.yaml", "gates": OF_ENTRY}]
OF_DAY = [{"kind": "approval", "by": ["ada"]}, {"kind": "no-other-run"}]


def refusal(day: Path, *, by: str = "ada", entry: str = "", plan_hash: str = "") -> Refused:
    with pytest.raises(Refused) as refused:
        approve(ApproveOptions(day, str(day.parent / "no-cluster.yaml"), entry, by, plan_hash, ""))
    return refused.value


@pytest.mark.parametrize(
    ("by", "entry", "message", "hint"),
    [
        ("mallory", "", "no gate of the day asks for mallory", "approve as one of them with --by: ada, grace"),
        ("mallory", "two", "no gate of entry two asks for mallory", "approve as one of them with --by: ada, grace"),
        ("grace", "one", "no gate of entry one asks for grace", "approve as one of them with --by: ada"),
        ("Ada", "", "no gate of the day asks for Ada", "approve as one of them with --by: ada, grace"),
        ("ada", "tow", "has no entry 'tow'", "did you mean 'two'?"),
    ],
)
def test_a_person_whom_no_gate_names(tmp_path: Path, by: str, entry: str, message: str, hint: str) -> None:
    day = write_day(tmp_path, ["one", "two"], gates=OF_DAY, entries=ENTRIES)
    error = refusal(day, by=by, entry=entry)
    assert message in error.message
    assert error.hint == hint


def test_a_day_that_asks_for_no_approval(tmp_path: Path) -> None:
    error = refusal(write_day(tmp_path, ["one"]))
    assert (error.hint, "no gate of the day asks for ada" in error.message) == ("no gate asks for an approval", True)


def test_the_hash_of_an_older_plan(tmp_path: Path) -> None:
    day = write_day(tmp_path, ["one"], gates=OF_DAY)
    older = load_game_day(day, load_registry()).hash
    write_cordon(tmp_path / "one.yaml", lasts="41s")
    newer = load_game_day(day, load_registry()).hash
    for wrong in (older, older[:12], f"{newer}0", newer.upper(), "0000"):
        error = refusal(day, plan_hash=wrong)
        assert error.message == f"not approved: the plan of {day} is {newer[:12]}, not {wrong[:12]}"
        assert "approve the hash that it prints" in (error.hint or "")
