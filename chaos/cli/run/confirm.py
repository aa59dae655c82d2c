"""Confirmation of a run on a real cluster, by a person or --yes."""

from __future__ import annotations

import sys

import click

from chaos.app.run.plan import ClusterInfo
from chaos.cli.confirm_name import confirm_name
from chaos.cli.run.progress import Display
from chaos.core.plan import Plan
from chaos.core.text import escape_for_encoding, printable

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
