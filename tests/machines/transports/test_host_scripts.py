"""Scripts in real shells, the marks around outputs, and bounds of a host's clock, from requests and replies."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Refused
from chaos.machines.sessions.arming import outcome_of
from chaos.machines.sessions.process import ExitReason, FramedOutput, Process
from chaos.machines.sessions.script import (
    CLOCK_REQUEST,
    GO,
    HostClock,
    armed_argv,
    framed_argv,
    login_line,
    parse_start_time,
)

AT = 1000.5
MARK = "nodefall-0a1b"
SHELLS = ("bash", "dash", "zsh", "fish", "tcsh", "csh")


class Captured(Process):
    """A process that has ended, of whose outputs all is known."""

    def __init__(self, stdout: bytes, stderr: bytes) -> None:
        super().__init__(MARK, 0.0)
        for output, data in ((self._stdout, stdout), (self._stderr, stderr)):
            output.append(data)

    is_running = False

    def send(self, line: str) -> None: ...

    def write_stdin(self, text: str) -> None: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...

    def _step(self) -> ExitReason:
        return ExitReason.EXITED


def ran_by(shell: str, line: str, stdin: str = "", **environment: str) -> Captured:
    """What ``shell`` as a login shell prints."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-c", line], input=stdin.encode(), capture_output=True, check=False, env={**os.environ, **environment}
    )
    return Captured(done.stdout, done.stderr)


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
WORDS = [
    "",
    " ",
    "a b",
    "$HOME",
    "`id`",
    "it's",
    '"',
    "!!",
    "!x",
    "a\nb",
    "\n",
    "\\",
    "\\n",
    "\\'",
    "%s",
    "%%",
    "é",
    "*",
    "~",
    "^a^b",
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("prefix", [(), ("env", "--")])
def test_every_login_shell_hands_on_every_argument(shell: str, prefix: tuple[str, ...]) -> None:
    line = login_line(framed_argv(("printf", "%s\\0", *WORDS), MARK), MARK, prefix)
    process = ran_by(shell, line)
    assert (process.exit, process.stdout) == (0, "".join(f"{word}\0" for word in WORDS))
    assert process.greeting == ""


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([shell for shell in SHELLS if shutil.which(shell)]), st.lists(text, min_size=1, max_size=5))
def test_any_argument_arrives(shell: str, arguments: list[str]) -> None:
    process = ran_by(shell, login_line(framed_argv(("printf", "%s\\0", *arguments), MARK), MARK))
    assert process.stdout == "".join(f"{word}\0" for word in arguments)


@pytest.mark.parametrize("shell", SHELLS)
def test_input_and_exit_code_are_those_of_the_command(shell: str) -> None:
    argv = ("sh", "-c", "cat; echo $1 >&2; exit 7", "sh", "to stderr")
    process = ran_by(shell, login_line(framed_argv(argv, MARK), MARK), "line 1\nline 2")
    assert (process.exit, process.stdout, process.stderr) == (7, "line 1\nline 2", "to stderr\n")


def test_a_builtin_of_the_shell_is_not_the_program() -> None:
    assert ran_by("bash", login_line(framed_argv(("exit", "0"), MARK), MARK)).exit == 127


def test_no_line_holds_a_nul() -> None:
    with pytest.raises(Refused, match="contains a NUL character"):
        login_line(framed_argv(("echo", "a\0b"), MARK), MARK)


NOISE = [
    b"",
    b"Welcome\n",
    b"no line end",
    b"\x1b]0;title\x07",
    b"\xff\xfe\n",
    b"nodefall-9999 0\n",
    b"x" * 20000,
    b"\r\n",
]


@given(st.sampled_from(NOISE), st.sampled_from(NOISE), st.binary(max_size=40), st.integers(0, 255), st.data())
def test_what_stands_before_the_marks_is_no_value(
    greeting: bytes, lecture: bytes, value: bytes, code: int, data: st.DataObject
) -> None:
    """However the bytes arrive."""
    mark = MARK.encode()
    sent = b"".join((greeting, mark, b" shell\n", lecture, mark, b" ready\n", value, mark, b" %d\n" % code, b"late"))
    output = FramedOutput("stdout", MARK)
    while sent:
        size = data.draw(st.integers(1, len(sent)))
        output.append(sent[:size])
        sent = sent[size:]
    assert (output.text, output.exit) == (value.decode("utf-8", "replace"), code)
    assert output.greeting_text.strip() == (greeting + lecture)[-8192:].decode("utf-8", "replace").strip() or (
        len(greeting + lecture) > 8000
    )


@pytest.mark.parametrize(
    ("stdout", "reason", "delivery", "error"),
    [
        ("{m} ready\nvalue{m} 3\n", ExitReason.EXITED, Delivery.ANSWERED, ""),
        ("{m} ready\nvalue{m} 3\n", ExitReason.TIMED_OUT, Delivery.ANSWERED, ""),
        ("System is going down.\n", ExitReason.EXITED, Delivery.NOT_SENT, "the host printed 'System is going down.'"),
        ("", ExitReason.KILLED, Delivery.NOT_SENT, "the host printed nothing"),
        ("\x1b[2JHi\n", ExitReason.EXITED, Delivery.NOT_SENT, "the host printed '\\\\x1b[2JHi'"),
        ("{m} shell\nlecture\n", ExitReason.EXITED, Delivery.NOT_SENT, "the host printed 'lecture'"),
        ("Welcome\n", ExitReason.LOST, Delivery.LOST, "the host printed 'Welcome'"),
        ("ready\n", ExitReason.TIMED_OUT, Delivery.LOST, "no answer within 4 s"),
        ("{m} ready\nval", ExitReason.EXITED, Delivery.LOST, "before its end was reported"),
        ("{m} ready\nval", ExitReason.KILLED, Delivery.LOST, "by a signal"),
        ("{m} ready\nval{m} x\n", ExitReason.EXITED, Delivery.LOST, "before its end was reported"),
        ("exec /bin/sh -c mark={m} is not allowed\n", ExitReason.EXITED, Delivery.NOT_SENT, "is not allowed"),
    ],
)
def test_the_marks_decide_delivery(stdout: str, reason: ExitReason, delivery: Delivery, error: str) -> None:
    process = Captured(stdout.format(m=MARK).encode(), b"")
    outcome = outcome_of(HostCommand(("true",), timeout=4), process, "here", reason)
    assert outcome.delivery == delivery
    assert error in outcome.error
    assert bool(error) == bool(outcome.error)


@pytest.fixture(params=["bash", "no bash"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """PATH of a host with bash, and of one without."""
    for name in ("sh", "date", "echo", "cat", *(["bash"] if request.param == "bash" else [])):
        program = shutil.which(name)
        assert program
        (tmp_path / name).symlink_to(program)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("stdin", "expected"),
    [("go\n", "ran\n"), ("go\nmore\n", "ran\nmore\n"), ("", None), ("no line end", None)],
    ids=["released", "more", "eof", "incomplete line"],
)
def test_an_armed_command_in_a_real_shell(path: str, stdin: str, expected: str | None) -> None:
    """A whole line releases the command, and the program gets what follows; an incomplete line runs nothing."""
    before = time.time()
    line = login_line(armed_argv(("sh", "-c", "echo ran; cat"), MARK), MARK)
    process = ran_by("/bin/sh", line, stdin, PATH=path)
    assert (process.has_started, process.stderr, process.exit) == (True, "", None if expected is None else 0)
    began = parse_start_time(process.read_line() or "")
    if expected is None:
        assert (began, process.stdout) == (None, "")
        return
    assert began
    assert before - 1 < began < time.time() + 1
    assert process.stdout == expected


NEAR, FAR = 0.15, 1000.0  # seconds; a host does not wait for a distant instant


@pytest.mark.parametrize("ahead", [None, -FAR, 0.0, NEAR, FAR])
@pytest.mark.parametrize("requests", [1, 3])
def test_bash_reports_its_clock_and_starts_at_an_instant(ahead: float | None, requests: int) -> None:
    argv = armed_argv(("sh", "-c", "cat; ls /proc/self/fd"), MARK)
    with subprocess.Popen(argv, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin
        assert shell.stdout
        assert shell.stdout.readline().startswith(f"{MARK} ready 5.")
        for _ in range(requests):
            before = time.time()
            shell.stdin.write(CLOCK_REQUEST)
            host_time = parse_start_time(shell.stdout.readline())
            assert host_time
            assert before - 0.001 <= host_time <= time.time() + 0.001
        now = time.time()
        shell.stdin.write(f"{GO}\n" if ahead is None else f"{GO} {round((now + ahead) * 1e6)}\n")
        shell.stdin.write("more\n")
        shell.stdin.close()
        first, *out = shell.stdout.read().splitlines()
    began = parse_start_time(first)
    assert began
    assert began >= now + (NEAR if ahead == NEAR else 0.0) - 0.001
    assert began < now + FAR or ahead != FAR
    assert out == ["more", "0", "1", "2", "3", f"{MARK} 0"]  # the last number is the folder that ls reads
    assert shell.returncode == 0


@pytest.mark.parametrize("stdin", ["", CLOCK_REQUEST, CLOCK_REQUEST * 2 + GO])
def test_without_a_release_nothing_runs(path: str, stdin: str) -> None:
    """Neither in bash, which supports clock requests, nor in another shell that gets one by mistake."""
    process = ran_by("/bin/sh", login_line(armed_argv(("sh", "-c", "echo ran"), MARK), MARK), stdin, PATH=path)
    assert process.exit is None
    assert "ran" not in process.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [("1700000000.250000000", 1700000000.25), ("1700000000.%N", 1700000000.0), ("1700000000", 1700000000.0),
     ("1700000000,250000", 1700000000.25),
     ("", None), ("sh: date: not found", None)],
)  # fmt: skip
def test_start_time(line: str, expected: float | None) -> None:
    assert parse_start_time(line) == expected


class Host:
    """A host whose clock is ``ahead``; a request takes the first of each pair of ``delays``, its reply the second."""

    def __init__(self, delays: list[tuple[float, float]], ahead: list[float]) -> None:
        self.now, self._delays, self._ahead = 1000.0, delays, ahead
        self.requests = 0

    def send(self, _: str) -> None:
        self.requests += 1
        self.now += self._delays[(self.requests - 1) % len(self._delays)][0]

    def read_line(self) -> str:
        host_time = self.now + self._ahead[min(self.requests, len(self._ahead)) - 1]
        self.now += self._delays[(self.requests - 1) % len(self._delays)][1]
        return f"{host_time:.6f}"

    def measured(self) -> HostClock:
        clock = HostClock(can_report=True)
        clock.measure(lambda: self.now, self.send, self.read_line)
        return clock


delay = st.floats(0.0, 0.045)


@given(delays=st.lists(st.tuples(delay, delay), min_size=1), ahead=st.floats(-900.0, 1e5))
def test_an_instant_is_as_exact_as_the_shortest_delays_allow(delays: list[tuple[float, float]], ahead: float) -> None:
    clock = Host(delays, [ahead]).measured()
    verb, instant = clock.clock_argument(AT).split()
    assert verb == "go"
    width = min(pair[0] for pair in delays[:12]) + min(pair[1] for pair in delays[:12])
    assert abs(int(instant) / 1e6 - (AT + ahead)) <= max(width, 0.002) / 2 + 1e-5


@pytest.mark.parametrize(
    ("delays", "ahead", "requests"),
    [
        ([(0.0005, 0.0005)], [0.0], 1),
        ([(0.02, 0.02)], [0.0], 12),
        ([(0.02, 0.02), (0.0005, 0.0005)], [3.0], 2),
    ],
    ids=["narrow at once", "never narrow", "narrow at the second request"],
)
def test_requests_are_sent_until_the_bounds_are_narrow(
    delays: list[tuple[float, float]], ahead: list[float], requests: int
) -> None:
    host = Host(delays, ahead)
    assert host.measured().clock_argument(AT) != "go\n"
    assert host.requests == requests


@pytest.mark.parametrize(
    ("delays", "ahead"),
    [([(0.08, 0.08)], [0.0]), ([(0.01, 0.01)], [0.0, 5.0]), ([(0.01, 0.01)], [0.0, -5.0])],
    ids=["too far away", "set ahead meanwhile", "set back meanwhile"],
)
def test_with_an_unknown_clock_the_command_starts_at_once(
    delays: list[tuple[float, float]], ahead: list[float]
) -> None:
    assert Host(delays, ahead).measured().clock_argument(AT) == "go\n"


def test_without_requests_the_clock_is_unknown() -> None:
    clock, host = HostClock(can_report=False), Host([(0.0, 0.0)], [0.0])
    assert not clock.measure(lambda: host.now, host.send, host.read_line)
    assert (host.requests, clock.clock_argument(AT)) == (0, "go\n")


def test_without_an_instant_at_once() -> None:
    assert Host([(0.0, 0.0)], [0.0]).measured().clock_argument(None) == "go\n"


@pytest.mark.parametrize("reply", ["", "no time"])
def test_a_reply_that_is_no_time(reply: str) -> None:
    clock = HostClock(can_report=True)
    assert not clock.measure(lambda: AT, lambda _: None, lambda: reply)
    assert clock.read_start_time(lambda: "12.5") == 12.5


def test_a_late_reply_is_not_the_start_time() -> None:
    clock, lines = HostClock(can_report=True), iter(["11.5", "12.5"])
    assert not clock.measure(lambda: AT, lambda _: None, lambda: None)
    assert clock.read_start_time(lambda: next(lines)) == 12.5
