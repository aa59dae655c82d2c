"""What every transport must do: one table, on a real sshd and in a real container."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.hosts.transports.channel_io import LIMIT
from chaos.model.command import Delivery, HostCommand, is_success
from tests.kit.connectionkit import Line


def command(*argv: str, stdin: str = "", timeout: float = 30.0) -> HostCommand:
    return HostCommand(argv, stdin=stdin, timeout=timeout)


@pytest.mark.parametrize(
    ("argv", "exit_code", "stdout", "stderr"),
    [
        (("true",), 0, "", ""),
        (("false",), 1, "", ""),
        (("sh", "-c", "exit 37"), 37, "", ""),
        (("printf", "%s|", "a b", "", "$HOME", "'\"", "*"), 0, "a b||$HOME|'\"|*|", ""),
        (("sh", "-c", "echo out; echo err >&2; exit 3"), 3, "out\n", "err\n"),
        (("sh", "-c", "printf out; printf err >&2"), 0, "out", "err"),
        (("printf", "\\303\\050"), 0, "\ufffd(", ""),
    ],
)
def test_answers(line: Line, argv: tuple[str, ...], exit_code: int, stdout: str, stderr: str) -> None:
    outcome = line.session.run(HostCommand(argv))
    assert (outcome.delivery, outcome.exit, outcome.stdout, outcome.stderr) == (
        Delivery.ANSWERED,
        exit_code,
        stdout,
        stderr,
    )
    assert outcome.error == ""


def test_a_missing_program_is_an_answer(line: Line) -> None:
    outcome = line.session.run(command("no-such-program-here"))
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 127)


def test_a_program_ended_by_a_signal_is_an_answer_that_is_no_success(line: Line) -> None:
    outcome = line.session.run(command("sh", "-c", "kill -TERM $$"))
    assert outcome.delivery == Delivery.ANSWERED
    assert outcome.exit is None or outcome.exit == 143
    assert not is_success(command("x"), outcome)


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(text, min_size=1, max_size=5))
def test_any_argument_arrives_intact(line: Line, arguments: list[str]) -> None:
    outcome = line.session.run(command("printf", "%s\\0", *arguments))
    assert outcome.stdout == "".join(f"{a}\0" for a in arguments)


@pytest.mark.parametrize("size", [1, 100_000, 900_000])
def test_stdin(line: Line, size: int) -> None:
    assert line.session.run(command("cat", stdin="x" * size)).stdout == "x" * size


def test_stdin_that_is_not_read_does_no_harm(line: Line) -> None:
    assert line.session.run(command("true", stdin="x" * 5_000_000)).exit == 0


@pytest.mark.parametrize(("redirect", "name"), [("", "stdout"), (">&2", "stderr")])
def test_big_output_is_cut_and_said(line: Line, redirect: str, name: str) -> None:
    outcome = line.session.run(command("sh", "-c", f"head -c {3 * LIMIT} /dev/zero | tr '\\0' x {redirect}; exit 5"))
    assert (outcome.exit, len(getattr(outcome, name))) == (5, LIMIT)
    assert outcome.error == f"{name} cut at 1 MiB"


def test_output_held_open_by_what_was_left_behind(line: Line) -> None:
    outcome = line.session.run(command("sh", "-c", "sleep 3 & echo done", timeout=20))
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 0, "done\n")


def test_time_out_is_lost_and_the_line_stays_good(line: Line) -> None:
    outcome = line.session.run(command("sh", "-c", "echo first; exec sleep 9", timeout=2.5))
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.LOST, None, "first\n")
    assert "2.5 s" in outcome.error
    assert line.session.run(command("true")).exit == 0


def test_many_commands_at_once(line: Line) -> None:
    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(lambda n: line.session.run(command("sh", "-c", f"sleep 0.1; echo {n}")), range(12)))
    assert [(o.delivery, o.stdout) for o in outcomes] == [(Delivery.ANSWERED, f"{n}\n") for n in range(12)]


def _running(line: Line, flag: str) -> bool:
    return line.session.run(command("test", "-e", flag)).exit == 0


def test_a_lost_line_is_lost_and_is_opened_again(line: Line) -> None:
    flag, count = f"{line.folder}/flag", f"{line.folder}/count"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(line.session.run, command("sh", "-c", f"echo x >> {count}; : > {flag}; exec sleep 9"))
        _await(line, flag)
        line.cut()
        outcome = future.result(20)
    assert (outcome.delivery, outcome.exit) == (Delivery.LOST, None)
    assert "lost" in outcome.error
    assert line.session.run(command("echo", "again")).stdout == "again\n"
    assert line.session.run(command("cat", count)).stdout == "x\n"  # what may have run was not sent again


def test_armed_fires_once_and_says_when(line: Line) -> None:
    armed = line.session.arm(command("sh", "-c", 'cat; echo "$0 end"; exit 4', "a b", stdin="input\n"))
    outcome = armed.wait()
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 4, "input\na b end\n")
    own = line.session.run(command("date", "+%s")).stdout
    assert outcome.began is not None
    assert abs(outcome.began - float(own)) < 60
    assert armed.wait().delivery == Delivery.NOT_SENT


def test_armed_begins_at_an_instant(line: Line) -> None:
    """On a machine that is too busy to tell its clock well it begins at once."""
    armed = line.session.arm(command("cat", stdin="input\n"))
    tuned, at = armed.calibrate(time.time), time.time() + 0.15
    armed.release(at)
    outcome = armed.wait()
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 0, "input\n")
    assert outcome.began is not None
    assert at - (0.06 if tuned else 60) < outcome.began < at + 60
    assert armed.wait().delivery == Delivery.NOT_SENT


def test_tuned_and_cancelled_runs_nothing(line: Line) -> None:
    armed = line.session.arm(command("touch", f"{line.folder}/mark"))
    armed.calibrate(time.time)
    armed.cancel()
    assert armed.wait().delivery == Delivery.NOT_SENT
    assert line.session.run(command("ls", line.folder)).stdout == ""


def test_cancelled_runs_nothing(line: Line) -> None:
    armed = line.session.arm(command("touch", f"{line.folder}/mark"))
    armed.cancel()
    armed.cancel()
    assert armed.wait().delivery == Delivery.NOT_SENT
    control = line.session.arm(command("touch", f"{line.folder}/control"))
    assert control.wait().exit == 0
    assert line.session.run(command("ls", line.folder)).stdout == "control\n"


def test_fired_and_the_line_is_lost(line: Line) -> None:
    flag = f"{line.folder}/flag"
    armed = line.session.arm(command("sh", "-c", f": > {flag}; exec sleep 9"))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(armed.wait)
        _await(line, flag)
        line.cut()
        outcome = future.result(20)
    assert outcome.delivery == Delivery.LOST
    assert outcome.began is not None


def test_hanging_up_ends_the_wait_and_not_the_program(line: Line) -> None:
    begun, ended = f"{line.folder}/begun", f"{line.folder}/ended"
    armed = line.session.arm(command("sh", "-c", f": > {begun}; sleep 2; : > {ended}", timeout=300))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(armed.wait)
        _await(line, begun)
        line.session.close()
        assert future.result(60).delivery == Delivery.LOST
    _await(line, ended)


def test_armed_time_out(line: Line) -> None:
    outcome = line.session.arm(command("sleep", "9", timeout=2.5)).wait()
    assert outcome.delivery == Delivery.LOST


def _await(line: Line, flag: str) -> None:
    tick = threading.Event()
    for _ in range(100):
        if _running(line, flag):
            return
        tick.wait(0.05)
    raise AssertionError(f"{flag} did not come")
