"""A person, or --yes, agrees to what a run is about to do to a cluster that is not simulated."""

from __future__ import annotations

import sys

import click

from chaos.app.connect import ClusterConnection
from chaos.cli.run.progress import Display
from chaos.model.errors import Refused
from chaos.model.plan import Plan
from chaos.model.text import escape_for_encoding, printable

# Lines of each: all of it fits on a screen of 24.
_MAX_TARGETS, _MAX_STEPS, _MAX_NOTES = 4, 6, 3


def ask(plan: Plan, opened: ClusterConnection, down: list[str], *, progress: Display, yes: bool) -> None:
    """Say in one screen what is about to be done, and have machines' going down confirmed. Raises Refused."""
    cluster = opened.inventory.cluster
    if cluster is None or cluster.simulated:
        return
    progress.hide()
    try:
        for label, text in summary(plan, opened.kube.server, opened.inventory.metadata.name):
            click.echo(escape_for_encoding(f"{label:<11}{printable(text)}", sys.stderr.encoding), err=True)
        if down and not yes:
            _confirm(opened.inventory.metadata.name, down)
    finally:
        progress.show()


def summary(plan: Plan, server: str, name: str) -> list[tuple[str, str]]:
    """What is about to be done: labels and texts."""
    told = [("cluster", f"{name} ({server}, uid {plan.cluster_uid})")]
    told.append(("experiment", f"{plan.experiment}, seed {plan.seed}"))
    told += _truncate([("target", f"{target.target}: {target.node}") for target in plan.targets], _MAX_TARGETS)
    if plan.namespace:
        told.append(("workload", f"in namespace {plan.namespace}, removed afterwards"))
    told += _truncate(
        [("step", f"{step.label}: {step.action}: {step.commands[-1]}") for step in plan.steps], _MAX_STEPS
    )
    told += _truncate([("set aside", text) for text in plan.overridden], _MAX_NOTES)
    return told + _truncate([("warning", text) for text in plan.warnings], _MAX_NOTES)


def _truncate(lines: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], ("", f"and {more} more: nodefall plan prints them all")]


def _confirm(name: str, down: list[str]) -> None:
    machines = ", ".join(down)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            f"{machines} would go down, and there is no terminal on which somebody could confirm that",
            hint="--yes says that it is meant",
        )
    typed = click.prompt(
        f"{machines} will go down. Type the inventory's name to go on", default="", show_default=False, err=True
    )
    if typed.strip() != name:
        raise Refused(f"not confirmed: the inventory's name is {name!r}", hint="--yes confirms without asking")
