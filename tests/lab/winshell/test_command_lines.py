"""Command lines by the rules of the C runtime: documented vectors, and the inverse of Python's own quoting."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaos.lab.winshell.cmd import CmdSyntaxError, parse
from chaos.lab.winshell.command_line import split_arguments, split_program

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


@given(st.text(st.sampled_from('ab "&|<>^%()12'), max_size=20))
def test_cmd_parses_or_refuses_every_line(line: str) -> None:
    try:
        commands = parse(line)
    except CmdSyntaxError:
        return
    assert all(command.text.strip() for command in commands)
    assert all(command.operator in ("&", "&&", "||") for command in commands)
