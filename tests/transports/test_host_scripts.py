from __future__ import annotations

import shlex
import subprocess

import pytest

from chaos.transports.script import armed_line, began_at, command_line, sudo_refusal

SUDO = ("sudo", "-n", "--")


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


def test_armed_line() -> None:
    words = shlex.split(armed_line(("systemctl", "poweroff"), SUDO))
    assert words[:5] == [*SUDO, "sh", "-c"]
    assert words[6:] == ["nodefall", "systemctl", "poweroff"]


@pytest.mark.parametrize(
    ("given", "lines"),
    [("go\n", 3), ("go\nmore\n", 3), ("", 1), ("no line end", 1)],
    ids=["fired", "more", "eof", "cut"],
)
def test_armed_line_in_a_real_shell(given: str, lines: int) -> None:
    """Only a whole line fires it; a line that is cut off runs nothing."""
    done = subprocess.run(
        ["sh", "-c", armed_line(("echo", "ran"))], input=given, capture_output=True, text=True, check=False
    )
    out = done.stdout.splitlines()
    assert (len(out), out[0]) == (lines, "ready")
    assert ("ran" in out) == (lines == 3)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("sudo: a password is required\n", "(sudo: a password is required)"),
        ("sudo: a terminal is required to read the password; either\nsudo: a password is required\n", "NOPASSWD"),
        ("sudo: sorry, you must have a tty to run sudo\n", "must have a tty"),
        ("\nchaos is not in the sudoers file.  This incident will be reported.\n", "(chaos is not in the sudoers"),
        ("Sorry, user chaos is not allowed to execute '/bin/true' as root on w1.\n", "not allowed to execute"),
        ("Sorry, user chaos may not run sudo on w1.\n", "may not run sudo"),
        ("bash: line 1: sudo: command not found\n", "there is no sudo on w1"),
        ("sh: 1: sudo: not found\n", "there is no sudo on w1"),
        ("sudo: unable to resolve host w1: Name or service not known\n", ""),
        ("sudo: nft: command not found\n", ""),
        ("Failed to power off: access denied\n", ""),
        ("", ""),
    ],
)
def test_sudo_refusal(stderr: str, said: str) -> None:
    found = sudo_refusal(stderr, "w1", "chaos")
    assert bool(found) == bool(said)
    assert said in found


@pytest.mark.parametrize(
    ("line", "expected"),
    [("1700000000.250000000", 1700000000.25), ("1700000000.%N", 1700000000.0), ("1700000000", 1700000000.0),
     ("", None), ("sh: date: not found", None)],
)  # fmt: skip
def test_began_at(line: str, expected: float | None) -> None:
    assert began_at(line) == expected
