"""A whole run on the lab, seen on a terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.kit.processes import environment
from tests.kit.terminals import on_terminal

NIGHTLY = pytest.mark.nightly
WIDTHS = [pytest.param(width, marks=() if width == 120 else NIGHTLY) for width in (60, 80, 120, 200)]
PHASES = ("steady state", "observe", "recovery", "roll back")


@pytest.mark.lab
@pytest.mark.parametrize("width", WIDTHS)
def test_a_demo(tmp_path: Path, width: int) -> None:
    with on_terminal([sys.executable, "-m", "chaos", "demo"], width, 30, environment(tmp_path), tmp_path) as terminal:
        before = terminal.settings()
        terminal.wait_for("phase: plan")
        terminal.wait_for("LAST EVENTS", "maxDuration in")
        assert terminal.wait() == 0
        assert terminal.settings() == before
        assert terminal.has_cursor()
    heads = [frame.splitlines()[0] for frame in terminal.frames if "LAST EVENTS" in frame]
    assert any("inject" in head for head in heads)
    assert len(set(heads)) > 10, "the clock goes on"
    seen = "\n".join(terminal.frames)
    for pattern in (
        r"\n\* worker-\d.* +NotReady",  # the target falls
        r"\n\* worker-\d.* off ",
        r"\n(deployment|statefulset)/\S+ +[0-2]/3",  # and so do its pods
        r"\n… pending +((\d+m)?\d+s +)?(no|every) pod ",  # which of them, the demo is too quick to say
        r"step power-off on worker-\d: systemctl poweroff",
        r"q stop and undo",
    ):
        assert re.search(pattern, seen), pattern
    assert max(len(line) for frame in terminal.frames for line in frame.splitlines()) <= width
    after = terminal.raw.split(b"\x1b[?1049l")[1].decode()
    lines = [line for line in after.splitlines() if " recovery: " in line and "✓ held: " in line]
    assert len(lines) == 2, "each once, at the end"
    assert "violated" not in after
    assert "report: reports/graceful-poweroff/" in after


@pytest.mark.lab
@pytest.mark.nightly
def test_q_stops_and_undoes(tmp_path: Path) -> None:
    with on_terminal([sys.executable, "-m", "chaos", "demo"], 100, 30, environment(tmp_path), tmp_path) as terminal:
        terminal.wait_for("step power-off on")
        terminal.type("q")
        assert terminal.wait() == 130
    after = terminal.raw.split(b"\x1b[?1049l")[1].decode()
    assert "stopping on signal 2; undoing first" in after
    assert "undone" in after
    assert "left behind" not in after
