"""Command lines of Windows, against parsers of the rules by which programs, cmd.exe and PowerShell read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.errors import Refused
from chaos.machines.windows_command_line import (
    CMD_LIMIT,
    PROCESS_LIMIT,
    WindowsShell,
    process_command_line,
    quote_argument,
    shell_command_line,
)
from tests.kit.windows_sshd import read_by_cmd, read_by_powershell, read_by_runtime

EXE = r"C:\Windows\System32\shutdown.exe"
SPACED = r"C:\Program Files (x86)\R&D^2\tool.exe"
ENVIRONMENT = {"PATH": r"C:\elsewhere", "A": "&calc&"}
text = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\t\n") | st.sampled_from('"\\ %^&|'))
line_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('"\\ %^&|<>()!'))


@pytest.mark.parametrize(
    ("argument", "quoted"),
    [
        ("a", "a"),
        ("", '""'),
        ("a b", '"a b"'),
        ('a"b', r'"a\"b"'),
        ("a\\", "a\\"),
        ("a b\\", '"a b\\\\"'),
        ('\\"', r'"\\\""'),
        ("\\\\host\\share", "\\\\host\\share"),
        ("%PATH%", "%PATH%"),
    ],
)
def test_quoted_arguments(argument: str, quoted: str) -> None:
    assert quote_argument(argument) == quoted


@pytest.mark.parametrize("program", [EXE, SPACED])
@given(arguments=st.lists(text, max_size=6))
def test_a_program_reads_its_arguments_as_given(program: str, arguments: list[str]) -> None:
    line = str(process_command_line([program, *arguments]))
    assert read_by_runtime(line) == [program, *arguments]
    assert read_by_runtime(line, doubled_quote_closes=True) == [program, *arguments]


@pytest.mark.parametrize("program", [EXE, SPACED])
@given(arguments=st.lists(line_text | st.sampled_from(["%PATH%", "%A%", "^%A^%", '"%A%"', '" & calc "']), max_size=6))
def test_cmd_passes_them_on(program: str, arguments: list[str]) -> None:
    line = shell_command_line([program, *arguments], WindowsShell.CMD)
    assert read_by_runtime(read_by_cmd(line, ENVIRONMENT)) == [program, *arguments]


@pytest.mark.parametrize("program", [EXE, SPACED])
@given(arguments=st.lists(text, max_size=6))
def test_powershell_passes_them_on(program: str, arguments: list[str]) -> None:
    found, rest = read_by_powershell(shell_command_line([program, *arguments], WindowsShell.POWERSHELL))
    assert read_by_runtime(f'"{found}" {rest}') == [program, *arguments]


def test_powershell_ends_with_the_exit_code_of_the_program() -> None:
    line = shell_command_line([EXE, "/a"], WindowsShell.POWERSHELL)
    assert line.endswith("if($p){$p.WaitForExit();exit $p.ExitCode};exit 1")
    assert read_by_powershell(line) == (EXE, "/a")


def test_parsers_find_what_is_quoted_wrongly() -> None:
    assert read_by_runtime(f"{EXE} a b") == [EXE, "a", "b"]
    assert read_by_runtime(f'{EXE} "a\\" b"') == [EXE, 'a" b']
    assert read_by_runtime(f'{EXE} "a""b" c') != read_by_runtime(f'{EXE} "a""b" c', doubled_quote_closes=True)
    assert read_by_cmd("x %path% ^%path^%", ENVIRONMENT) == r"x C:\elsewhere %path%"
    with pytest.raises(ValueError, match="operator &"):
        read_by_cmd('x "a\\"&calc"', {})


@pytest.mark.parametrize(
    "program", ["shutdown.exe", "", r"\shutdown.exe", "/bin/sh", 'C:\\a"b.exe', r"C:\%X%\a.exe", r"\\h\s\a.exe"]
)
def test_programs_need_a_full_path(program: str) -> None:
    with pytest.raises(Refused, match="it is not a full path") as refused:
        process_command_line([program])
    assert r"C:\Windows\System32\shutdown.exe" in refused.value.hint


@pytest.mark.parametrize("argument", ["\0", "\x1b", "\r", "\ud800", "\ufffe"])
def test_control_characters_cannot_be_sent(argument: str) -> None:
    for send in (process_command_line, lambda argv: shell_command_line(argv, WindowsShell.CMD)):
        with pytest.raises(Refused, match="control character"):
            send([EXE, f"a{argument}b"])


def test_cmd_takes_one_line_of_limited_length() -> None:
    with pytest.raises(Refused, match="no line breaks"):
        shell_command_line([EXE, "a\nb"], WindowsShell.CMD)
    with pytest.raises(Refused, match=f"of {CMD_LIMIT} at most"):
        shell_command_line([EXE, "x" * CMD_LIMIT], WindowsShell.CMD)
    assert process_command_line([EXE, "x" * CMD_LIMIT])
    with pytest.raises(Refused, match=f"of {PROCESS_LIMIT} at most"):
        process_command_line([EXE, "x" * PROCESS_LIMIT])
