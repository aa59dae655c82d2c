"""The shell of the hosts, and parsers of its programs."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, Process, UnknownOptionError, split_options
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.programs.logind import parse_time
from chaos.lab.hostshell.programs.systemctl import format_timespan
from chaos.lab.hostshell.programs.systemd import parse_timespan
from chaos.lab.hostshell.shell import Shell
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.lab_host import ReadLine, Write, run_program

CLUSTER = Cluster(LabSpec(nodes=[NodeSpec(name="host")]))
CLUSTER.start()


async def show_argv(process: Process, argv: list[str]) -> int:
    process.out(json.dumps(argv[1:]))
    return 0


def run(script: str, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""

    async def play(out: Write, err: Write, read_line: ReadLine) -> int:
        lockstep = Lockstep(CLUSTER.sim)
        machine = CLUSTER.machines["host"]
        host = HostSystem(machine, CLUSTER.sim, lockstep, lambda _: None, {**PROGRAMS, "argv": show_argv})
        process = Process(host, "chaos", out, err, read_line)
        return await Shell(process, ["sh", *arguments]).run(script)

    return run_program(play, stdin)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_what_shlex_joins_arrives(words: list[str]) -> None:
    assert run(shlex.join(["argv", *words])) == (0, json.dumps(words), "")
    assert run('exec argv "$@"', *words) == (0, json.dumps(words), "")


@given(st.text(st.sampled_from("ab $\"'\\;&|()<>\n\t=#{}@*?0123`!")))
def test_no_script_breaks_the_shell(script: str) -> None:
    code, _, err = run(script)
    assert 0 <= code <= 255
    assert code == 0 or err or "read" in script or "exit" in script


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("argv $1 \"$1\" '$1'", ["a", "b", "a b", "$1"]),
        ("argv $@", ["a", "b", "c"]),
        ('argv "$#" "$0" "$9" $9', ["2", "sh", ""]),
        ("x=1 y='2 3'; argv $x$y", ["12", "3"]),
        ("argv a\\ b # comment", ["a b"]),
        ("argv a#b", ["a#b"]),
        ('argv ${1}x $1x "$2"x', ["a", "bx", "a", "bx", "cx"]),
        ('argv "\\$1 \\" \\x"', ['$1 " \\x']),
        ("\n\n argv \\\n one\n", ["one"]),
        ('IFS= read -r line; argv "$line"', [" typed "]),
    ],
)
def test_expansion(script: str, words: list[str]) -> None:
    assert run(script, "a b", "c", stdin=" typed \nmore\n") == (0, json.dumps(words), "")


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("true && echo a || echo b", 0, "a\n"),
        ("false && echo a || echo b", 0, "b\n"),
        ("false || false && echo a", 1, ""),
        ("false; echo $?", 0, "1\n"),
        ("exit 3; echo never", 3, ""),
        ("false || exit; echo never", 1, ""),
        ("command -v bash && command -v /usr/bin/date && echo both", 0, "both\n"),
        ("command -v nosuch || echo none", 0, "none\n"),
        ("test -n '' || test -z '' && echo empty", 0, "empty\n"),
        ('test -n "$EPOCHREALTIME" || echo no bash', 0, "no bash\n"),
        ("bash --norc -p -c 'test -n \"$EPOCHREALTIME\"'", 0, ""),
        ("exec echo a; echo never", 0, "a\n"),
        ("echo a & wait; echo b", 0, "a\nb\n"),
        ("false & echo $?; wait; echo $?", 0, "0\n0\n"),
        ("sleep 0 & sh -c 'echo a; exit 3' &\nwait", 0, "a\n"),
        ("true && echo a &", 2, ""),
        ("& echo", 2, ""),
        ("read x", 1, ""),
        ("read x || echo end", 0, "end\n"),
        ("echo a >/dev/null; echo b 2>/dev/null", 0, "b\n"),
        ("nosuch 2>/dev/null", 127, ""),
        ("nosuch 2>&1", 127, "sh: 1: nosuch: not found\n"),
        ("echo a 1>&2", 0, ""),
        ("sh -c 'exit 7'", 7, ""),
        ("cat < /dev/null", 0, ""),
        ("&& echo", 2, ""),
        ("echo a &&", 2, ""),
        ("echo 'open", 2, ""),
        ("echo `date`", 2, ""),
        ("for x in 1; do echo; done", 2, ""),
        ('x=$(echo a b) && echo "$x" c', 0, "a b c\n"),
        ("echo $(echo a; echo b) '$(echo c)'", 0, "a b $(echo c)\n"),
        ("x=$(sh -c 'exit 3'); echo $?", 0, "3\n"),
        ("x=$(false) && echo never", 1, ""),
        ("x=1; echo $(echo $x; x=2) $x", 0, "1 1\n"),
        ('x=; test -z "$x" && echo empty', 0, "empty\n"),
        ("echo $(echo $(echo a))", 2, ""),
        ("x=$(nosuch); echo $?", 0, "127\n"),
        ("while read x; do echo $x; done; echo $?", 0, "1\n2\n0\n"),
        ("while false; do echo never; done; echo $?", 0, "0\n"),
        ('while read x && test -n "$x"; do false; done || echo ended', 0, "ended\n"),
        ("false && while true; do echo never; done", 1, ""),
        ("while true; do exit; done", 2, ""),
        ("while true; echo", 2, ""),
        ("while read x; do echo $x; done > /dev/null", 2, ""),
        ("while read x; do while read y; do echo $y; done; done", 2, ""),
        ("done", 2, ""),
    ],
)
def test_control(script: str, code: int, out: str) -> None:
    assert run(script, stdin="1\n2\n" if "while" in script else "")[:2] == (code, out)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("100", 100),
        ("100s", 100),
        ("1.5min", 90),
        ("1h 30m", 5400),
        ("250ms", 0.25),
        ("2d", 172800),
        ("", None),
        ("soon", None),
    ],
)
def test_spans(text: str, seconds: float | None) -> None:
    assert parse_timespan(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (60, "1min"),
        (100.5, "1min 40.500000s"),
        (7322.25, "2h 2min 2.250000s"),
        (0.000001, "0.000001s"),
    ],
)
def test_timespans(seconds: float, text: str) -> None:
    assert format_timespan(seconds) == text


@given(st.integers(0, 10**12))
def test_timespans_are_read_back(micros: int) -> None:
    assert parse_timespan(format_timespan(micros / 1e6)) == pytest.approx(micros / 1e6)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("+0", 0),
        ("+5", 300),
        ("5", 300),
        ("12:30", 1800),
        ("11:00", 82800),
        ("24:00", None),
        ("now", None),
        ("-1", None),
    ],
)
def test_shutdown_times(text: str, after: float | None) -> None:
    assert parse_time(text, NOON) == (None if after is None else NOON + after)


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["a", "-q", "b"], {"quiet": [""]}, ["a", "b"]),
        (["-pX", "-p", "Y", "--property=Z", "--property", "W"], {"property": ["X", "Y", "Z", "W"]}, []),
        (["-ff"], {"force": ["", ""]}, []),
        (["-q", "--", "-f"], {"quiet": [""]}, ["-f"]),
    ],
)
def test_options(words: list[str], options: dict[str, list[str]], rest: list[str]) -> None:
    flags, valued = {"-q": "quiet", "-f": "force"}, {"-p": "property", "--property": "property"}
    assert split_options(words, flags, valued) == (options, rest)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--nope", "unrecognized option '--nope'"),
        ("-x", "invalid option -- 'x'"),
        ("-p", "option '-p' requires an argument"),
    ],
)
def test_bad_options(word: str, message: str) -> None:
    with pytest.raises(UnknownOptionError) as caught:
        split_options([word], {}, {"-p": "property"})
    assert str(caught.value) == message
