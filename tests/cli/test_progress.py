"""Live progress and the final words: what is said, once, without colour alone and without control characters."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.cli.run.live import LiveProgress
from chaos.cli.run.progress import Display, PlainProgress, make_progress
from chaos.cli.run.progress_state import ProgressState
from chaos.cli.run.run_impl import wants_color
from chaos.model.action import ProofStatus
from chaos.model.result import RESULT_VERSION, RunResult, StepResult, UndoResult
from chaos.model.text import escape_for_encoding, printable
from chaos.model.verdict import Status, Verdict
from chaos.report.summary import summary

DUE = Verdict("pods end", "pods", Status.PENDING, "3 of 5 have ended", deadline=140.0)
HELD = Verdict("pods end", "pods", Status.HELD, "all 5 had ended after 8s", at=108.0, deadline=140.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def play(progress: Display) -> None:
    progress.phase("arm")
    progress.tick(100.0)
    progress.step("power-off", "worker-1", "systemctl poweroff")
    progress.verdict(DUE)
    progress.tick(101.5)
    progress.verdict(DUE)
    progress.note("a note")
    progress.verdict(HELD)
    progress.close()


def test_plain_lines_one_per_change_with_offsets_from_the_first_step() -> None:
    stream = io.StringIO()
    play(PlainProgress(stream))
    assert stream.getvalue().splitlines() == [
        "          phase: arm",
        "     +0s  step power-off on worker-1: systemctl poweroff",
        "   +1.5s  a note",
        "     +8s  ✓ held: pods end: all 5 had ended after 8s",
    ]


@pytest.mark.parametrize(
    ("now", "verdict", "left"),
    [
        (None, DUE, ""),
        (100.0, DUE, "40s"),
        (139.6, DUE, "0s"),
        (150.0, DUE, "0s"),
        (10.0, DUE, "2m10s"),
        (100.0, HELD, ""),
        (100.0, Verdict("x", "y", Status.PENDING, "z"), ""),
    ],
)
def test_the_countdown_ends_at_the_deadline(now: float | None, verdict: Verdict, left: str) -> None:
    assert ProgressState(now=now).remaining(verdict) == left


def test_verdicts_with_one_name_differ_in_status() -> None:
    board = ProgressState()
    assert board.verdict(HELD)
    assert board.verdict(HELD) == ""
    assert "violated" in board.verdict(Verdict("pods end", "pods", Status.VIOLATED, "one did not"))


@pytest.mark.parametrize(
    ("stream", "term", "force_plain", "live"),
    [
        (Terminal(), "xterm-256color", False, True),
        (Terminal(), "xterm-256color", True, False),
        (Terminal(), "dumb", False, False),
        (Terminal(), None, False, False),
        (io.StringIO(), "xterm-256color", False, False),
    ],
)
def test_only_a_terminal_that_can_redraw_gets_the_live_view(
    stream: io.StringIO, term: str | None, force_plain: bool, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if term is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", term)
    progress = make_progress(stream, force_plain)
    progress.close()
    assert isinstance(progress, LiveProgress) is live


@pytest.mark.parametrize("no_color", [True, False])
def test_the_live_view_says_all_in_words_and_respects_no_color(no_color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    play(make_progress(stream))
    shown = stream.getvalue()
    assert "✓ held: pods end: all 5 had ended after 8s" in shown
    assert "step power-off on worker-1" in shown
    assert ("\x1b[32m" in shown) is not no_color


def test_the_board_shows_phase_time_and_countdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    progress = make_progress(stream)
    progress.phase("observe")
    progress.tick(110.0)
    progress.verdict(DUE)
    progress.note("draws the board again")
    progress.close()
    shown = stream.getvalue()
    assert "observe" in shown
    assert "00:01:50 UTC" in shown
    assert "30s" in shown


def test_rich_is_imported_only_for_the_live_view() -> None:
    code = (
        "import io, sys, chaos.cli.run.progress as p; p.make_progress(io.StringIO()); sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def result_of(text: str, status: Status = Status.VIOLATED, simulated: bool = True) -> RunResult:
    verdict = Verdict(text, text, status, text, text, text, 12.0, 10.0, 12.0, (1,), (text,))
    step = StepResult(text, text, text, 10.0, 11.0, text, text, ProofStatus.PROVEN, text)
    return RunResult(
        RESULT_VERSION, text, text, text, status, 1, text, simulated, text, text, 9.0, 20.0, {text: (text,)}, (step,),
        (verdict,), (verdict,), (verdict,), (verdict,), (UndoResult(text, text, text, False, text),), (text,), (text,),
    )  # fmt: skip


def test_the_summary_begins_with_the_headline_and_ends_with_the_simulated_cluster() -> None:
    lines = summary(result_of("exp"), report="reports/exp/report.html").splitlines()
    assert lines[:2] == ["✗ exp (simulated cluster)", "  exp (simulated): exp"]
    assert "  ✗ violated          +2s  exp: exp" in lines
    assert "undo pending: exp (exp on exp): exp" in lines
    assert "left behind: exp" in lines
    assert "assumed: exp" in lines
    assert lines[-2] == "report: reports/exp/report.html"
    assert "simulated cluster" in lines[-1]


def test_the_summary_of_a_real_cluster_does_not_say_simulated() -> None:
    assert "simulated" not in summary(result_of("exp", simulated=False))


@pytest.mark.parametrize("status", list(Status))
def test_colour_is_never_the_only_sign(status: Status) -> None:
    plain, coloured = summary(result_of("exp", status)), summary(result_of("exp", status), color=True)
    assert f" {status} " in plain
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colour_only_where_it_is_wanted(
    stream: io.StringIO, environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(stream) is wanted


@given(st.text(st.characters(exclude_categories=())))
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.tick(1.0)
    progress.phase(text)
    progress.step(text, text, text)
    progress.note(text)
    progress.verdict(Verdict(text, text, Status.VIOLATED, text))
    for output in (stream.getvalue(), summary(result_of(text), report=text)):
        assert all(c == "\n" or c.isprintable() for c in output)
        output.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\r\n and\ttabs", "two lines and tabs"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("\ufffe", "\\ufffe"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve ✓ 日本", "naïve ✓ 日本"),
        ("x" * 3000, "x" * 1999 + "…"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("✓ held", "utf-8", "✓ held"),
        ("✓ held", "ascii", "+ held"),
        ("✗ … é", "ascii", "x . \\xe9"),
        ("é", "latin-1", "é"),
    ],
)
def test_a_terminal_that_lacks_our_signs_gets_plain_ones(text: str, encoding: str, shown: str) -> None:
    assert escape_for_encoding(text, encoding) == shown
