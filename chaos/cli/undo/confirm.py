"""Confirmation of an undo that only a journal in the cluster describes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from chaos.app.undo.replica_entries import RejectedEntry, ResolvedReplica
from chaos.cli.output import echo
from chaos.cli.run.progress import Display
from chaos.cluster.replica import PendingRun
from chaos.core.errors import Refused
from chaos.core.text import on_node


def confirm_entries(replica: PendingRun, resolved: ResolvedReplica, *, progress: Display, yes: bool) -> None:
    """Print what would be sent, and ask. Raises Refused if not confirmed."""
    progress.hide()
    try:
        for line in _describe(replica, resolved):
            echo(line, err=True)
        if not yes:
            _confirm(replica.identity.run)
    finally:
        progress.show()


def confirm_acceptance(node: str, changes: list[str], *, progress: Display, yes: bool) -> None:
    """Print what identifies the machine in the place of a node now, and ask. Raises Refused if not confirmed."""
    progress.hide()
    try:
        echo(f"the machine in the place of {node}:", err=True)
        for line in changes:
            echo(f"  {line}", err=True)
        if yes:
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            hint = "look at the machine and pass --yes"
            raise Refused(f"not confirmed: the machine of {node} is not known as that of the run", hint=hint)
        if not click.confirm("Undo there?", default=False, err=True):
            raise Refused(f"not confirmed: nothing on {node} was undone", hint="run nodefall undo again")
    finally:
        progress.show()


def describe_rejected(rejected: RejectedEntry) -> str:
    """One line."""
    entry = rejected.entry
    return f"not undone: {on_node(f'{entry.step} ({entry.action})', entry.node)}: {rejected.why}"


def _describe(replica: PendingRun, resolved: ResolvedReplica) -> Iterator[str]:
    identity = replica.identity
    begun = _timestamp(identity.started)
    yield f"run {identity.run} of {identity.holder or 'an unknown user'}, begun {begun}: no key proves its journal"
    for entry in resolved.accepted:
        yield f"  {on_node(f'{entry.step} ({entry.action})', entry.node)}"
        for step in entry.undo.steps:
            yield f"    {step.command}" + (f", unless {step.unless}" if step.unless else "")
    for rejected in resolved.rejected:
        yield f"  {describe_rejected(rejected)}"


def _timestamp(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"at {seconds:g} s"


def _confirm(run: str) -> None:
    """Raises Refused."""
    hint = "check the commands and pass --yes; journals that are signed (cluster.journalKey) need no confirmation"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"not confirmed: the undo of {run} is known from the cluster only", hint=hint)
    if not click.confirm("Send these commands?", default=False, err=True):
        raise Refused(f"not confirmed: nothing of {run} was undone", hint=hint)
