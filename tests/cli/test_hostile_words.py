"""Names and messages of a cluster on a terminal or in a log: they neither end a line nor steer anything."""

from __future__ import annotations

import contextlib
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.app import cluster_lock
from chaos.cli import app
from chaos.cli.cluster import lock_status
from chaos.cli.output import echo
from chaos.cli.run.progress import PlainProgress
from chaos.kube.journal_mirror import PendingRun, RunIdentity
from chaos.kube.lease import LeaseRecord
from chaos.model.action import FactCheck, Undo
from chaos.model.errors import BadInput, NodefallError, Problem
from chaos.model.verdict import Status, Verdict
from chaos.store.journal import PendingUndo

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
_STEERS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def told(text: str) -> list[str]:
    """Its lines, none of which holds anything invisible."""
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in _STEERS]
    return text.splitlines()


def said(words: str, *, err: bool = False) -> str:
    out = io.StringIO()
    with contextlib.redirect_stderr(out) if err else contextlib.redirect_stdout(out):
        echo(words, err=err)
    return out.getvalue()


@given(NASTY)
def test_one_line_is_one_line(text: str) -> None:
    assert len(told(said(f"run {text} owes"))) == 1


@given(NASTY)
def test_an_error_says_what_it_says_and_no_more(text: str) -> None:
    found = app._describe_error(NodefallError(f"GET /x: the API server answered {text}", hint="do this"))
    lines = [line for words in found.lines for line in told(said(words, err=True))]
    assert len(lines) == 2
    assert lines[1] == "hint: do this"
    several = app._describe_error(BadInput([Problem("a.yaml", 1, 1, text), Problem("b.yaml", 2, 1, "b")]))
    assert len([line for words in several.lines for line in told(said(words))]) == 2


@given(NASTY)
def test_progress_keeps_to_its_lines(text: str) -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.phase(f"x{text}")
    progress.step(text, text, text)
    progress.note(f"x{text}")
    progress.verdict(Verdict(text, text, Status.VIOLATED, text))
    assert len(told(stream.getvalue())) == 4


@given(NASTY)
def test_who_is_at_work(text: str) -> None:
    """The Lease and the config maps can be written by others."""
    record = LeaseRecord("1", text, 1, 30.0, "", {"nodefall.dev/run": text, "nodefall.dev/abort": text})
    owed = PendingUndo(1, text, text, text, Undo(proof=(FactCheck("x", True),)), 1.0)
    debt = PendingRun("c", RunIdentity(text, text, 1.0, text), (owed,), text)
    assert len(told(said(lock_status._describe_holder(record, True, 1.0)))) == 1
    assert len(told(said(f"run {debt.identity.run} owes {cluster_lock.describe_pending(debt)}"))) == 1


@pytest.mark.parametrize("text", ["plain", "✓ ünïcode 日本"])
def test_other_words_stay_as_they_are(text: str) -> None:
    assert said(text) == f"{text}\n"
