"""The contract of transports, on a real sshd and in a real container."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.core.command import Delivery, HostCommand, is_success
from chaos.machines.sessions.process import LIMIT
from tests.kit.connectionkit import HostLink
from tests.kit.processes import until


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
def test_answered_commands(link: HostLink, argv: tuple[str, ...], exit_code: int, stdout: str, stderr: str) -> None:
    outcome = link.session.run(HostCommand(argv))
    assert (outcome.delivery, outcome.exit, outcome.stdout, outcome.stderr) == (
        Delivery.ANSWERED,
        exit_code,
        stdout,
        stderr,
    )
    assert outcome.error == ""


def test_a_missing_program_is_an_answer(link: HostLink) -> None:
    outcome = link.session.run(command("no-such-program-here"))
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 127)


def test_a_program_ended_by_a_signal_is_answered_without_success(link: HostLink) -> None:
    outcome = link.session.run(command("sh", "-c", "kill -TERM $$"))
    assert outcome.delivery == Delivery.ANSWERED
    assert outcome.exit is None or outcome.exit == 143
    assert not is_success(command("x"), outcome)


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(text, min_size=1, max_size=5))
def test_any_argument_arrives_intact(link: HostLink, arguments: list[str]) -> None:
    outcome = link.session.run(command("printf", "%s\\0", *arguments))
    assert outcome.stdout == "".join(f"{a}\0" for a in arguments)


@pytest.mark.parametrize("size", [1, 100_000, 900_000])
def test_stdin(link: HostLink, size: int) -> None:
    assert link.session.run(command("cat", stdin="x" * size)).stdout == "x" * size


def test_stdin_that_is_not_read_does_no_harm(link: HostLink) -> None:
    assert link.session.run(command("true", stdin="x" * 5_000_000)).exit == 0


@pytest.mark.parametrize(("redirect", "name"), [("", "stdout"), (">&2", "stderr")])
def test_big_output_is_truncated_with_a_note(link: HostLink, redirect: str, name: str) -> None:
    outcome = link.session.run(command("sh", "-c", f"head -c {3 * LIMIT} /dev/zero | tr '\\0' x {redirect}; exit 5"))
    assert (outcome.exit, len(getattr(outcome, name))) == (5, LIMIT)
    assert outcome.error == f"{name} truncated at 1 MiB"


def test_output_held_open_by_a_remaining_process(link: HostLink) -> None:
    outcome = link.session.run(command("sh", "-c", "sleep 3 & echo done", timeout=20))
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 0, "done\n")


def test_a_timeout_is_lost_and_the_connection_stays_usable(link: HostLink) -> None:
    outcome = link.session.run(command("sh", "-c", "echo first; exec sleep 9", timeout=2.5))
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.LOST, None, "first\n")
    assert "2.5 s" in outcome.error
    assert link.session.run(command("true")).exit == 0


def test_many_commands_at_once(link: HostLink) -> None:
    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(lambda n: link.session.run(command("sh", "-c", f"sleep 0.1; echo {n}")), range(12)))
    assert [(o.delivery, o.stdout) for o in outcomes] == [(Delivery.ANSWERED, f"{n}\n") for n in range(12)]


def _running(link: HostLink, flag: str) -> bool:
    return link.session.run(command("test", "-e", flag)).exit == 0


def test_a_broken_connection_is_lost_and_is_opened_again(link: HostLink) -> None:
    flag, count = f"{link.folder}/flag", f"{link.folder}/count"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(link.session.run, command("sh", "-c", f"echo x >> {count}; : > {flag}; exec sleep 9"))
        until(lambda: _running(link, flag))
        link.cut()
        outcome = future.result(20)
    assert (outcome.delivery, outcome.exit) == (Delivery.LOST, None)
    assert "lost" in outcome.error
    assert link.session.run(command("echo", "again")).stdout == "again\n"
    assert link.session.run(command("cat", count)).stdout == "x\n"  # a command that may have run was not sent again


def test_an_armed_command_runs_once_and_reports_its_start(link: HostLink) -> None:
    armed = link.session.arm(command("sh", "-c", 'cat; echo "$0 end"; exit 4', "a b", stdin="input\n"))
    outcome = armed.wait()
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 4, "input\na b end\n")
    host_time = link.session.run(command("date", "+%s")).stdout
    assert outcome.began is not None
    assert abs(outcome.began - float(host_time)) < 60
    assert armed.wait().delivery == Delivery.NOT_SENT


def test_an_armed_command_starts_at_an_instant(link: HostLink) -> None:
    """On a machine that is too busy for an exact clock measurement the command starts at once."""
    armed = link.session.arm(command("cat", stdin="input\n"))
    calibrated, at = armed.calibrate(time.time), time.time() + 0.15
    armed.release(at)
    outcome = armed.wait()
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 0, "input\n")
    assert outcome.began is not None
    assert at - (0.06 if calibrated else 60) < outcome.began < at + 60
    assert armed.wait().delivery == Delivery.NOT_SENT


def test_calibrated_and_cancelled_runs_nothing(link: HostLink) -> None:
    armed = link.session.arm(command("touch", f"{link.folder}/mark"))
    armed.calibrate(time.time)
    armed.cancel()
    assert armed.wait().delivery == Delivery.NOT_SENT
    assert link.session.run(command("ls", link.folder)).stdout == ""


def test_cancelled_runs_nothing(link: HostLink) -> None:
    armed = link.session.arm(command("touch", f"{link.folder}/mark"))
    armed.cancel()
    armed.cancel()
    assert armed.wait().delivery == Delivery.NOT_SENT
    control = link.session.arm(command("touch", f"{link.folder}/control"))
    assert control.wait().exit == 0
    assert link.session.run(command("ls", link.folder)).stdout == "control\n"


def test_the_connection_breaks_after_the_release(link: HostLink) -> None:
    flag = f"{link.folder}/flag"
    armed = link.session.arm(command("sh", "-c", f": > {flag}; exec sleep 9"))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(armed.wait)
        until(lambda: _running(link, flag))
        link.cut()
        outcome = future.result(20)
    assert outcome.delivery == Delivery.LOST
    assert outcome.began is not None


def test_closing_ends_the_wait_and_not_the_program(link: HostLink) -> None:
    started, ended = f"{link.folder}/started", f"{link.folder}/ended"
    armed = link.session.arm(command("sh", "-c", f": > {started}; sleep 2; : > {ended}", timeout=300))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(armed.wait)
        until(lambda: _running(link, started))
        link.session.close()
        assert future.result(60).delivery == Delivery.LOST
    until(lambda: _running(link, ended))


def test_armed_timeout(link: HostLink) -> None:
    outcome = link.session.arm(command("sleep", "9", timeout=2.5)).wait()
    assert outcome.delivery == Delivery.LOST
