"""The live view on a pseudo-terminal: keys, size, job control, and a terminal that is restored."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.kit.processes import ROOT
from tests.kit.terminals import Terminal, on_terminal

Start = Callable[..., AbstractContextManager[Terminal]]
BLACK_AND_WHITE = {"NO_COLOR": "1"}
CONTROLS = (b"\x1b[32m", b"\x1b[1;31m", b"\x1b[36m")  # colours


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def run(how: str, columns: int = 100, lines: int = 30, **environment: str) -> AbstractContextManager[Terminal]:
        inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        command = [sys.executable, "-m", "tests.kit.live_program", how]
        return on_terminal(command, columns, lines, {**inherited, "PYTHONPATH": str(ROOT), **environment}, tmp_path)

    return run


def test_keys_size_and_the_end(start: Start) -> None:
    with start("run", 100, 30) as terminal:
        before = terminal.settings()
        first = terminal.wait_for("pods end", "worker-1", "q stop and undo", "second 5")
        assert first.splitlines()[0].startswith("arm  ")
        assert first.splitlines()[0].endswith("graceful-poweroff (simulated cluster)")
        assert not terminal.has_cursor()
        terminal.resize(60, 20)
        terminal.wait_until(lambda text: "KUBELET LOCK" in text and "PODS" not in text, "narrow frame")
        terminal.resize(120, 40)
        terminal.wait_for("KUBELET LOCK  PODS")
        terminal.type(" ")
        paused = terminal.wait_for("space go on (").split("LAST EVENTS")[1].splitlines()[1:5]
        later = terminal.wait_for("space go on (1").split("LAST EVENTS")[1].splitlines()[1:5]
        assert paused == later
        terminal.type(" o")
        terminal.wait_for("o do not open the report", "space pause")
        terminal.type("\x1b[Ax")  # an arrow and a letter without a meaning
        terminal.type("qqq")
        assert terminal.wait() == 0
        assert "stopped by 1" in terminal.text, "the first q is one SIGINT, and the others are nothing"
        assert "the end, report: True" in terminal.text
        assert terminal.has_cursor()
        assert terminal.settings() == before
    lines = terminal.raw.split(b"\x1b[?1049l")[1].decode().splitlines()
    assert any(line.endswith("second 0") for line in lines), "the lines of the run stay in the terminal's history"
    assert any(colour in terminal.raw for colour in CONTROLS)


def test_ctrl_c_is_as_before_and_no_color_is_respected(start: Start) -> None:
    with start("run", **BLACK_AND_WHITE) as terminal:
        terminal.wait_for("second 5")
        terminal.type("\x03")
        assert terminal.wait() == 0
        assert "stopped by 1" in terminal.text
    assert not any(colour in terminal.raw for colour in CONTROLS)


@pytest.mark.parametrize(
    ("how", "number", "code"),
    [("crash", None, 1), ("run", signal.SIGQUIT, -signal.SIGQUIT), ("short", None, 0)],
    ids=["an exception", "Ctrl-\\", "the end"],
)
def test_the_terminal_is_restored(start: Start, how: str, number: signal.Signals | None, code: int) -> None:
    with start(how) as terminal:
        before = terminal.settings()
        if number:
            terminal.wait_for("second 3")
            assert terminal.settings() != before
            os.kill(terminal.pid, number)
        assert terminal.wait() == code
        assert terminal.settings() == before
        assert terminal.has_cursor()
    assert terminal.raw.count(b"\x1b[?1049h") == terminal.raw.count(b"\x1b[?1049l") == 1


def test_a_view_that_fails_does_not_end_the_run(start: Start, tmp_path: Path) -> None:
    with start("bug") as terminal:
        before = terminal.settings()
        assert terminal.wait() == 0
        assert terminal.settings() == before
        assert "second 9" in terminal.text
        assert "the end" in terminal.text
    assert "KeyError: 'cannot draw'" in (tmp_path / "view.log").read_text()


def test_only_what_changes_is_written(start: Start) -> None:
    with start("run", 200, 60) as terminal:
        terminal.wait_for("second 3")
        written = len(terminal.raw)
        frames = len(terminal.frames)
        terminal.wait_for("second 40")
        frames = len(terminal.frames) - frames
        assert (len(terminal.raw) - written) / frames < 200 * 60 / 2


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Terminal]:
    """A shell with job control."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PS1": "ready$ ", **BLACK_AND_WHITE}
    with on_terminal([bash, "--norc", "--noprofile", "-i"], 100, 30, environment, tmp_path) as terminal:
        terminal.wait_for("ready$")
        yield terminal


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(shell: Terminal) -> None:
    shell.type(f"{sys.executable} -m tests.kit.live_program run\n")
    shell.wait_for("second 5", "q stop and undo")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    assert shell.has_cursor()
    shell.type("stty -a\n")
    shell.wait_until(lambda _: b" icanon" in shell.raw and b" echo " in shell.raw, "settings of a shell")
    shell.type("fg\n")
    shell.wait_until(lambda _: shell.raw.count(b"\x1b[?1049h") == 2, "view that is drawn again")
    shell.type("q")
    shell.wait_for("stopped by 1", "the end")
    assert shell.has_cursor()


def test_in_the_background_it_prints_lines_and_leaves_the_keys_alone(shell: Terminal) -> None:
    shell.type(f"{sys.executable} -m tests.kit.live_program short &\n")
    shell.wait_for("second 2", "the end")
    shell.type("echo own\n")
    shell.wait_for("\nown")
    assert b"\x1b[?1049h" not in shell.raw
