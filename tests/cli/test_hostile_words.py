"""Control characters in names and messages of a cluster are escaped on a terminal and in a log."""

from __future__ import annotations

import contextlib
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.app.undo import pending as pending_undo
from chaos.cli import app
from chaos.cli.cluster import lock_status
from chaos.cli.output import echo
from chaos.cli.run.lines import PlainProgress
from chaos.cluster.lease import LeaseRecord
from chaos.cluster.replica import PendingRun, ReplicaEntry, RunIdentity
from chaos.core.errors import BadInput, NodefallError, Problem
from chaos.core.verdict import Status, Verdict

NASTY = st.text(max_size=60) | st.sampled_from(
    [
        *(
            "\x1b[2J\x1b[31mred",
            "\x1b]0;title\x07",
            "a\nerror: forged",
            "a\r\nx",
            "\u202egnp.exe",
            "\u2028x",
            "\x9b31m",
        ),
        *("$(reboot)", "`id`", "; rm -rf /", "'\"", "%s%n", "\x00", "\ud800", "x" * 5000),
    ]
)
_CONTROL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible_lines(text: str) -> list[str]:
    """The lines of a text without control characters."""
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in _CONTROL]
    return text.splitlines()


def printed(line: str, *, err: bool = False) -> str:
    out = io.StringIO()
    with contextlib.redirect_stderr(out) if err else contextlib.redirect_stdout(out):
        echo(line, err=err)
    return out.getvalue()


@given(NASTY)
def test_one_line_is_one_line(text: str) -> None:
    assert len(visible_lines(printed(f"run {text} is active"))) == 1


@given(NASTY)
def test_an_error_has_no_additional_lines(text: str) -> None:
    message = app._describe_error(NodefallError(f"GET /x: the API server answered {text}", hint="do this"))
    lines = [line for line in message.lines for line in visible_lines(printed(line, err=True))]
    assert len(lines) == 2
    assert lines[1] == "hint: do this"
    several = app._describe_error(BadInput([Problem("a.yaml", 1, 1, text), Problem("b.yaml", 2, 1, "b")]))
    assert len([line for line in several.lines for line in visible_lines(printed(line))]) == 2


@given(NASTY)
def test_progress_has_no_additional_lines(text: str) -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.phase(f"x{text}")
    progress.step(text, text, text)
    progress.note(f"x{text}")
    progress.verdict(Verdict(text, text, Status.VIOLATED, text))
    assert len(visible_lines(stream.getvalue())) == 4


@given(NASTY)
def test_the_status_of_the_lock(text: str) -> None:
    """Other programs can write the Lease and the ConfigMaps."""
    record = LeaseRecord("1", text, 1, 30.0, "", {"nodefall.dev/run": text, "nodefall.dev/abort": text})
    entry = ReplicaEntry(1, text, text, text, 1.0, {"unit": text})
    pending = PendingRun("c", RunIdentity(text, text, 1.0, text), (entry,), text)
    assert len(visible_lines(printed(lock_status._describe_holder(record, True, 1.0)))) == 1
    assert (
        len(
            visible_lines(
                printed(f"run {pending.identity.run} has a pending undo: {pending_undo.describe_pending(pending)}")
            )
        )
        == 1
    )


@pytest.mark.parametrize("text", ["plain", "✓ ünïcode 日本"])
def test_printable_text_is_unchanged(text: str) -> None:
    assert printed(text) == f"{text}\n"
