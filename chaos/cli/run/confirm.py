"""Confirmation by a person or --yes: of a run on a real cluster, and of an undo that no key proves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from chaos.app.run.experiment import ClusterInfo
from chaos.app.undo.replica_entries import RejectedEntry, ResolvedReplica
from chaos.cli.output import confirm_name, echo
from chaos.cli.run.progress import Display
from chaos.cluster.replica import PendingRun
from chaos.core.errors import Refused
from chaos.core.plan import Plan
from chaos.core.text import escape_for_encoding, on_node, printable

# Lines of each kind: the summary fits on a terminal of 24 lines.
_MAX_TARGETS, _MAX_STEPS, _MAX_NOTES = 4, 6, 3


def ask(plan: Plan, cluster: ClusterInfo, nodes: list[str], *, progress: Display, yes: bool) -> None:
    """Print a summary of the plan, and ask before machines go down. Raises Refused if not confirmed."""
    settings = cluster.inventory.cluster
    if settings is None or settings.simulated:
        return
    name = cluster.inventory.metadata.name
    progress.hide()
    try:
        for label, text in summary(plan, cluster.server, name):
            click.echo(escape_for_encoding(f"{label:<11}{printable(text)}", sys.stderr.encoding), err=True)
        if nodes and not yes:
            confirm_name("inventory", name, "run", ", ".join(nodes))
    finally:
        progress.show()


def summary(plan: Plan, server: str, name: str) -> list[tuple[str, str]]:
    """The summary of a plan: labels and texts."""
    rows = [("cluster", f"{name} ({server}, uid {plan.cluster_uid})")]
    slack = f", slack {plan.slack:g}" if plan.slack > 1 else ""
    rows.append(("experiment", f"{plan.experiment}, seed {plan.seed}{slack}"))
    rows += _truncate([("target", f"{target.target}: {target.node}") for target in plan.targets], _MAX_TARGETS)
    if plan.namespace:
        rows.append(("workload", f"in namespace {plan.namespace}, removed afterwards"))
    rows += _truncate(
        [("step", f"{step.label}: {step.action}: {step.commands[-1]}") for step in plan.steps], _MAX_STEPS
    )
    rows += _truncate([("overridden", text) for text in plan.overridden], _MAX_NOTES)
    return rows + _truncate([("warning", text) for text in plan.warnings], _MAX_NOTES)


def _truncate(lines: list[tuple[str, str]], limit: int) -> list[tuple[str, str]]:
    more = len(lines) - limit
    return lines if more <= 0 else [*lines[:limit], ("", f"and {more} more: nodefall plan prints them all")]


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
