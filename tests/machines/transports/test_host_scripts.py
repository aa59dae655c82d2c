"""Bounds of a host's clock, from requests and replies."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.machines.sessions.script import (
    CLOCK_REQUEST,
    GO,
    HostClock,
    armed_command_line,
    command_line,
    has_host_clock,
    is_ready,
    parse_start_time,
    sudo_refusal,
)

SUDO = ("sudo", "-n", "--")
AT = 1000.5


@pytest.mark.parametrize(
    ("argv", "prefix", "expected"),
    [
        (("true",), (), "true"),
        (("systemctl", "poweroff"), SUDO, "sudo -n -- systemctl poweroff"),
        (("printf", "%s", "a b", "$x", ""), (), "printf %s 'a b' '$x' ''"),
    ],
)
def test_command_line(argv: tuple[str, ...], prefix: tuple[str, ...], expected: str) -> None:
    assert command_line(argv, prefix) == expected


def test_armed_command_line() -> None:
    words = shlex.split(armed_command_line(("systemctl", "poweroff"), SUDO))
    assert words[:5] == [*SUDO, "sh", "-c"]
    assert words[7:] == ["nodefall", "systemctl", "poweroff"]


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
    [("go\n", ["ran"]), ("go\nmore\n", ["ran", "more"]), ("", None), ("no line end", None)],
    ids=["released", "more", "eof", "incomplete line"],
)
def test_armed_command_line_in_a_real_shell(path: str, stdin: str, expected: list[str] | None) -> None:
    """A whole line releases the command, and the program gets what follows; an incomplete line runs nothing."""
    script = armed_command_line(("sh", "-c", "echo ran; cat"))
    before = time.time()
    done = subprocess.run(
        ["sh", "-c", script], input=stdin, capture_output=True, text=True, check=False, env={"PATH": path}
    )
    first, *out = done.stdout.splitlines()
    assert (is_ready(first), done.stderr, done.returncode) == (True, "", 0 if expected else 1)
    if expected is None:
        assert out == []
        return
    began = parse_start_time(out[0])
    assert began
    assert before - 1 < began < time.time() + 1
    assert out[1:] == expected


NEAR, FAR = 0.15, 1000.0  # seconds; a host does not wait for a distant instant


@pytest.mark.parametrize("ahead", [None, -FAR, 0.0, NEAR, FAR])
@pytest.mark.parametrize("requests", [1, 3])
def test_bash_reports_its_clock_and_starts_at_an_instant(ahead: float | None, requests: int) -> None:
    script = armed_command_line(("sh", "-c", "cat; ls /proc/self/fd"))
    with subprocess.Popen(
        ["sh", "-c", script], text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdin
        assert shell.stdout
        assert has_host_clock(shell.stdout.readline())
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
    assert out == ["more", "0", "1", "2", "3"]  # the last is the folder that ls reads
    assert shell.returncode == 0


@pytest.mark.parametrize("stdin", ["", CLOCK_REQUEST, CLOCK_REQUEST * 2 + GO])
def test_without_a_release_nothing_runs(path: str, stdin: str) -> None:
    """Neither in bash, which supports clock requests, nor in another shell that gets one by mistake."""
    script = armed_command_line(("sh", "-c", "echo ran"))
    done = subprocess.run(
        ["sh", "-c", script], input=stdin, capture_output=True, text=True, check=False, env={"PATH": path}
    )
    assert done.returncode != 0
    assert "ran" not in done.stdout


def test_only_bash_has_the_host_clock() -> None:
    assert [(is_ready(line), has_host_clock(line)) for line in (None, "", "x", "ready", "ready 5.2.15(1)-release")] == [
        (False, False), (False, False), (False, False), (True, False), (True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        ("sudo: a password is required\n", "(sudo: a password is required)"),
        ("sudo: a terminal is required to read the password; either\nsudo: a password is required\n", "NOPASSWD"),
        ("sudo: sorry, you must have a tty to run sudo\n", "must have a tty"),
        ("\nchaos is not in the sudoers file.  This incident will be reported.\n", "(chaos is not in the sudoers"),
        ("Sorry, user chaos is not allowed to execute '/bin/true' as root on w1.\n", "not allowed to execute"),
        ("Sorry, user chaos may not run sudo on w1.\n", "may not run sudo"),
        ("bash: line 1: sudo: command not found\n", "sudo is not installed on w1"),
        ("sh: 1: sudo: not found\n", "sudo is not installed on w1"),
        ("sudo: unable to resolve host w1: Name or service not known\n", ""),
        ("sudo: nft: command not found\n", ""),
        ("Failed to power off: access denied\n", ""),
        ("", ""),
    ],
)
def test_sudo_refusal(stderr: str, error: str) -> None:
    found = sudo_refusal(stderr, "w1", "chaos")
    assert bool(found) == bool(error)
    assert error in found


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
