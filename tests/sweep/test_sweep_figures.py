"""The page that is written from the figures of a death sweep."""

from __future__ import annotations

from typing import Any

from tests.kit.deaths import DEATHS
from tools.sweep_figures import page


def row(action: str, left: list[str], **tried: int) -> dict[str, Any]:
    deaths = {name: {"tried": count, "hit": count - 1, "cpu": 1.5 * count} for name, count in tried.items()}
    return {"action": action, "positions": ["intend", "begin"], "deaths": deaths, "left": left}


def test_counts_by_death_and_by_action() -> None:
    twice = "taint:returned+strike:SIGKILL"
    text = page([row("cordon", [], SIGKILL=2, stopped=2), row("taint", [twice], SIGKILL=3, **{"SIGKILL twice": 4})])
    assert (
        "11 cases were tried. In 7 of them the run reached the position; in the others it ended earlier. 1 left" in text
    )
    assert "A case took 1.5 CPU seconds" in text
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    by_name = {cell[0]: cell[1:] for cell in cells}
    assert by_name["SIGKILL"] == [DEATHS["SIGKILL"].what, "5", "3", "0", "1.5"]
    assert by_name["SIGKILL twice"][1:] == ["4", "3", "1", "1.5"]
    assert by_name["clock-back"][1:] == ["0", "0", "0", "0.0"]
    tried = dict(zip(by_name["action"][1:-1], by_name["all"][1:-1], strict=True))
    assert {name: count for name, count in tried.items() if count != "0"} == {
        "SIGKILL": "5",
        "stopped": "2",
        "SIGKILL twice": "4",
    }
    assert f"- {twice}\n" in text
    assert "Positions: begin, intend.\n" in text


def test_rows_of_windows_forms_and_of_a_partial_sweep() -> None:
    rows = [row("reboot", [], SIGKILL=2), row("reboot@ssh", ["reboot@ssh:begin:stopped"], SIGKILL=2, stopped=2)]
    text = page(rows)
    assert "| Linux, SSH | 1 | 2 | 1 | 0 |\n" in text
    assert "| Windows, SSH | 1 | 4 | 2 | 1 |\n" in text
    assert "Windows, WinRM" not in text
    assert "2 of 2 actions and forms were swept in part" in text
    assert "No case was left out." in page([row("reboot", [], **dict.fromkeys(DEATHS, 2))])
