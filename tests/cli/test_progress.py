"""Live progress and the final words: what is said, once, without colour alone and without control characters."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.cli.output import wants_color
from chaos.cli.run.demo import PacedProgress
from chaos.cli.run.lines import PlainProgress, ProgressState, StepGroups
from chaos.cli.run.live import BestEffortProgress, Display, LiveProgress, QuietProgress, make_progress
from chaos.cli.run.view.state import EVENTS
from chaos.core.action import ProofStatus
from chaos.core.result import RESULT_VERSION, Judgement, RunResult, StepResult, UndoResult
from chaos.core.text import escape_for_encoding, printable
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.summary import summary
from tests.kit.fakes import FakeClock

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
        "   +1.5s  ✓ held: pods end: all 5 had ended after 8s",
    ]


def test_lines_are_in_the_order_of_their_times() -> None:
    """A verdict is printed when it is known, not at the earlier moment that it is about."""
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.tick(100.0)
    progress.step("power-off", "worker-1", "systemctl poweroff")
    progress.tick(110.0)
    progress.step("power-off", "worker-1", "proven: off")
    progress.verdict(HELD)
    progress.close()
    offsets = [line[:8].strip() for line in stream.getvalue().splitlines()]
    assert offsets == ["+0s", "+10s", "+10s"]


def test_many_targets_are_one_line() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.tick(100.0)
    for number in range(50):
        progress.step("stop", f"worker-{number}", "systemctl stop kubelet")
    for number in range(50):
        progress.step("stop", f"worker-{number}", f"proven: {number} s after the step")
    progress.tick(101.0)
    assert stream.getvalue().splitlines() == [
        "     +0s  step stop on worker-0, worker-1, worker-2 and 47 more: systemctl stop kubelet",
        "     +0s  step stop on worker-0, worker-1, worker-2 and 47 more: proven: 0 s after the step (of 50 alike)",
    ]
    progress.close()


def test_a_step_that_takes_long_is_printed_meanwhile() -> None:
    stream, printed = io.StringIO(), threading.Event()
    progress = PlainProgress(stream)
    progress.tick(100.0)
    progress.step("stop", "worker-1", "systemctl stop kubelet")
    stream.flush = printed.set  # type: ignore[method-assign]  # called once the lines are written
    assert printed.wait(60)
    assert "step stop on worker-1" in stream.getvalue()
    progress.close()


def judgement(*expectations: Verdict, recovery: tuple[Verdict, ...] = ()) -> Judgement:
    return Judgement(expectations, recovery, Timeline(), 1000.0)


def test_what_is_waited_for_is_said_once_for_each_deadline() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    later = replace(DUE, name="replaced", deadline=190.0, observed="2 of 3 are Ready")
    progress.tick(100.0)
    progress.judged(judgement(DUE, later))  # in no phase that waits
    progress.phase("observe")
    for now in (110.0, 111.0, 112.0):
        progress.tick(now)
        progress.judged(judgement(replace(DUE, observed=f"{now} s"), later))
    progress.judged(judgement(HELD, later))
    progress.close()
    assert [line[10:] for line in stream.getvalue().splitlines()] == [
        "phase: observe",
        "… pending, due in 30s: pods end: 110.0 s; 1 more pending",
        "… pending, due in 1m18s: replaced: 2 of 3 are Ready",
    ]


def test_a_verdict_that_new_evidence_changes_names_the_former() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.verdict(HELD)
    progress.verdict(replace(HELD, status=Status.PENDING))
    progress.verdict(HELD)
    progress.verdict(replace(HELD, status=Status.INCONCLUSIVE, because="somebody else cordoned worker-1"))
    progress.close()
    assert [line.strip() for line in stream.getvalue().splitlines()] == [
        "✓ held: pods end: all 5 had ended after 8s",
        "? inconclusive (was held): pods end: somebody else cordoned worker-1",
    ]


def test_quiet_prints_nothing_and_colours_are_for_terminals() -> None:
    stream = Terminal()
    assert isinstance(make_progress(stream, quiet=True), QuietProgress)
    play(make_progress(stream, quiet=True))
    assert stream.getvalue() == ""


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
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    play(make_progress(stream))
    _, screen, after = stream.getvalue().replace("\x1b[?1049l", "\x1b[?1049h").split("\x1b[?1049h")
    assert "✓ held: pods end: all 5 had ended after 8s" in after
    assert "step power-off on worker-1" in after
    assert ("\x1b[32m" in after) is not no_color
    assert "\x1b[?25l" in screen, "the cursor is hidden"
    assert "\x1b[?25h" in screen, "and shown again"


def test_a_run_that_does_not_begin_opens_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    progress = make_progress(stream)
    progress.phase("plan")
    progress.note("not confirmed")
    progress.hide()
    progress.show()
    progress.close()
    assert stream.getvalue().splitlines() == ["          phase: plan", "          not confirmed"]


def test_q_is_one_interrupt_and_none_while_reports_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr("chaos.cli.run.live.signal.pthread_kill", lambda _thread, number: sent.append(number))
    progress = LiveProgress(Terminal(), None)
    progress.phase("report")
    progress._on_key("q")
    assert sent == []
    progress.phase("observe")
    for key in "xqq":
        progress._on_key(key)
    assert sent == [signal.SIGINT]
    assert not progress.opens_report
    progress._on_key("o")
    assert progress.opens_report


def test_the_screen_is_left_if_there_is_no_thread_to_draw_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    stream = Terminal()
    progress = BestEffortProgress(LiveProgress(stream, None))
    progress.phase("arm")
    progress.close()
    assert stream.getvalue().endswith("\x1b[?1049l")


def test_the_view_keeps_the_last_events_and_says_how_many_it_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    progress = LiveProgress(stream, None)
    progress.phase("arm")
    for number in range(EVENTS + 9):
        progress.note(f"event {number}")
    progress.close()
    lines = [line.strip() for line in stream.getvalue().split("\x1b[?1049l")[1].splitlines()]
    assert lines[:2] == ["(10 earlier lines are left out)", "event 9"]
    assert len(lines) == EVENTS + 1


def test_rich_is_imported_only_for_the_live_view() -> None:
    code = "import io, sys, chaos.cli.run.live as p; p.make_progress(io.StringIO()); sys.exit('rich' in sys.modules)"
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


@pytest.mark.parametrize(
    ("reports", "lines"),
    [
        ([], []),
        ([("stop", "n1", "run x")], ["step stop on n1: run x"]),
        ([("note", "", "x")], ["step note: x"]),
        ([("stop", "n1", "run x"), ("stop", "n2", "run x")], ["step stop on n1, n2: run x"]),
        ([("cut", "n1", "drain n1"), ("cut", "n2", "drain n2")], ["step cut on n1, n2: drain n1 (of 2 alike)"]),
        (
            [("stop", "n1", "run x"), ("stop", "n1", "proven: off"), ("stop", "n2", "run x")],
            ["step stop on n1, n2: run x", "step stop on n1: proven: off"],
        ),
        ([("a", "n1", "x"), ("b", "n2", "x")], ["step a on n1: x", "step b on n2: x"]),
        ([("a", "n1", "x"), ("a", "n2", "y")], ["step a on n1: x", "step a on n2: y"]),
        ([("a", f"n{i}", "x") for i in range(50)], ["step a on n0, n1, n2 and 47 more: x"]),
        ([("a", "n1", "undo: x"), ("a", "n1", "undo: x")], ["step a on n1: undo: x"]),
        ([("a", "n1", "\x1b[2J")], ["step a on n1: \\x1b[2J"]),
    ],
)
def test_lines(reports: list[tuple[str, str, str]], lines: list[str]) -> None:
    groups = StepGroups()
    for report in reports:
        groups.add(*report)
    assert groups.flush() == lines
    assert groups.flush() == []


def test_no_more_than_the_pace() -> None:
    clock = FakeClock()
    begin = clock.now()
    progress = PacedProgress(make_progress(io.StringIO()), clock, 40.0)
    progress.tick(1000.0)
    assert clock.now() == begin, "the first tick begins the time"
    progress.tick(1020.0)
    assert clock.now() - begin == pytest.approx(0.5)
    clock.sleep(2.0)  # the run was slower than its pace
    progress.tick(1080.0)
    assert clock.now() - begin == pytest.approx(2.5)
    progress.tick(1140.0)
    assert clock.now() - begin == pytest.approx(3.5)


def test_all_is_passed_on() -> None:
    stream = io.StringIO()
    progress = PacedProgress(make_progress(stream), FakeClock(), 40.0)
    progress.phase("inject")
    progress.step("power-off", "worker-1", "systemctl poweroff")
    progress.note("a note")
    assert [line.strip() for line in stream.getvalue().splitlines()] == [
        "phase: inject",
        "step power-off on worker-1: systemctl poweroff",
        "a note",
    ]
