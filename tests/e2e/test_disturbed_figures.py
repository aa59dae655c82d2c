"""What is said of the figures of disturbed runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.disturbance import KINDS, Row
from tools.disturbed_figures import main


def row(kind: str, seed: int, status: str = "held", *, is_unexcused: bool = False) -> Row:
    made = Row(kind, seed, "cordon", {"tainted": status}, {"tainted": "held"}, cpu=4.0 + 2 * (seed % 2))
    made.reversed = ["tainted"] if status == "violated" else []
    made.unexcused = ["tainted"] if is_unexcused else []
    if status != "held":
        made.because["tainted"] = "it is not known when this changed"
    return made


FINE = [row(kind, seed) for seed in range(100) for kind in KINDS]
WHY = "{}, cordon: tainted: {}: it is not known when this changed"


@pytest.mark.parametrize(
    ("rows", "code", "lines"),
    [
        (FINE, 0, ["late watches: 100 runs, 0 with a reversed verdict", "; 5.0 CPU seconds a run"]),
        (FINE[:1], 0, ["late watches: 1 runs", "starved API server: not run"]),
        (
            [*FINE, row("starved", 100, "violated")],
            1,
            ["101 runs, 1 with a reversed", WHY.format("starved 100", "violated"), "missed: starved 100: cordon"],
        ),
        ([*FINE, *(row("starved", n, "inconclusive") for n in (100, 101))], 0, ["102 runs", "2 inconclusive (2.0 %)"]),
        (
            [*FINE, *(row("starved", n, "inconclusive") for n in (100, 101, 102))],
            1,
            ["3 inconclusive (2.9 %)", "missed: starved API server: 3 of 103 runs are inconclusive"],
        ),
        ([*FINE, row("late", 100, "inconclusive")], 0, [WHY.format("late 100", "inconclusive"), "(1.0 %), 0 of them"]),
        (
            [*FINE, row("late", 100, "inconclusive", is_unexcused=True)],
            1,
            ["(1.0 %), 1 of them though all was delivered by the deadline", "missed: late 100: cordon"],
        ),
        ([*FINE, Row("late", 100, "cordon", refused="no steady state")], 0, ["late 100, cordon: refused: no steady"]),
    ],
)
def test_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[Row], code: int, lines: list[str]
) -> None:
    path = tmp_path / "figures"
    path.write_text("".join(json.dumps(each.as_dict()) + "\n" for each in rows), encoding="utf-8")
    assert main(str(path)) == code
    said = capsys.readouterr().out
    assert [line for line in lines if line not in said] == []
    assert ("missed" in said) == bool(code)
