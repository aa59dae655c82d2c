"""Command lines by the rules of the C runtime: documented vectors, and the inverse of Python's own quoting."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaos.lab.winshell.process import split_arguments, split_program
from tests.kit.win_host import WindowsHost

TEXT = st.text(st.sampled_from('ab \t"\\'), max_size=12)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        # "Parsing C command-line arguments" of Microsoft's documentation
        ('"a b c" d e', ["a b c", "d", "e"]),
        ('"ab\\"c" "\\\\" d', ['ab"c', "\\", "d"]),
        ("a\\\\\\b d\"e f\"g h", ["a\\\\\\b", "de fg", "h"]),
        ('a\\\\\\"b c d', ['a\\"b', "c", "d"]),
        ('a\\\\\\\\"b c" d e', ["a\\\\b c", "d", "e"]),
        ('a"b"" c d', ['ab" c d']),
        ("", []),
        ('""', [""]),
    ],
)  # fmt: skip
def test_documented_vectors(line: str, arguments: list[str]) -> None:
    assert split_arguments(line) == arguments


@given(st.lists(TEXT, max_size=5))
@example([""])
@example(["\\"])
@example(['a\\\\"b\\'])
def test_quoted_arguments_come_back(arguments: list[str]) -> None:
    assert split_arguments(subprocess.list2cmdline(arguments)) == arguments


@pytest.mark.parametrize(
    ("line", "program", "rest"),
    [
        ('"C:\\Program Files\\a.exe" x', "C:\\Program Files\\a.exe", "x"),
        ("a.exe  x y", "a.exe", "x y"),
        ("a", "a", ""),
        ("  a b", "a", "b"),
    ],
)
def test_programs(line: str, program: str, rest: str) -> None:
    assert split_program(line) == (program, rest)


UNKNOWN = "'nosuch' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"


@pytest.mark.parametrize(
    ("line", "code", "stdout", "stderr"),
    [
        ("hostname", 0, "win1\r\n", ""),
        (r"C:\Windows\System32\whoami.exe", 0, "win1\\administrator\r\n", ""),
        ("^h^ostname", 0, "win1\r\n", ""),
        ("nosuch /x", 1, "", UNKNOWN),
        (r"C:\elsewhere\hostname.exe", 1, "", None),
        ("hostname & whoami", 1, "", "The lab has no cmd.exe: & is not simulated.\r\n"),
        ("hostname > x", 1, "", "The lab has no cmd.exe: > is not simulated.\r\n"),
        ('hostname "%PATH%"', 1, "", "The lab has no cmd.exe: % is not simulated.\r\n"),
    ],
)
def test_lines_of_cmd(line: str, code: int, stdout: str, stderr: str | None) -> None:
    ran = WindowsHost().run(line)
    assert ran[:2] == (code, stdout)
    assert stderr is None or ran[2] == stderr
