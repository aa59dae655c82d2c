"""The commands of a run, their proofs and their undo, in words; and their confirmation by a person or --yes."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.app.run.experiment import ClusterInfo
from chaos.app.undo.replica_entries import RejectedEntry, ResolvedReplica
from chaos.cli.output import confirm_name, echo, to_json, write
from chaos.cli.run.live import Display
from chaos.cluster.replica import PendingRun
from chaos.core.errors import Refused
from chaos.core.plan import Plan
from chaos.core.text import escape_for_encoding, on_node, printable

if TYPE_CHECKING:
    from chaos.core.experiment import Experiment
    from chaos.core.plan import PlannedStep


def show_plan(
    experiment: Path,
    inventory: str | None,
    seed: int | None,
    reports: Path,
    out: Path | None,
    anyway: bool,
    as_json: bool,
) -> None:
    """Select targets for an EXPERIMENT, collect facts, and print exactly what a run would send."""
    from chaos.api import load, plan
    from chaos.cli.inventory import command_inventory
    from chaos.core.plan import plan_document

    loaded = load(experiment)
    planned = plan(loaded, command_inventory(inventory), seed=seed, reports=reports, anyway=anyway)
    if out:
        write(out, to_json(planned) + "\n")
    if as_json:
        click.echo(to_json(plan_document(planned)))
    else:
        echo(*plan_lines(planned, loaded.experiment))


def plan_lines(plan: Plan, experiment: Experiment) -> list[str]:
    """The plan of a run in words."""
    return [*_steps(plan), *_probes(experiment), *_deadlines(experiment, plan.slack)]


def _steps(plan: Plan) -> list[str]:
    lines = [f"experiment {plan.experiment}, seed {plan.seed}, cluster {plan.cluster_uid}"]
    lines += [f"target {target.target}: {target.described}" for target in plan.targets]
    if plan.namespace:
        lines.append(f"workload in namespace {plan.namespace}, removed afterwards")
    if plan.workload_nodes:
        lines.append(f"its pods run on {', '.join(plan.workload_nodes)} only (node affinity)")
    lines += [f"warning {text}" for text in plan.warnings]
    lines += [f"refused {text} (overridden: the run is inconclusive at best)" for text in plan.overridden]
    return lines + [line for step in plan.steps for line in _step(step)]


def _probes(experiment: Experiment) -> list[str]:
    """The probes of endpoints during the run."""
    lines = [f"probe {probe.name}: {probe}" for probe in experiment.spec.probes]
    return ["", *lines] if lines else []


def _deadlines(experiment: Experiment, slack: float) -> list[str]:
    """The deadlines that slack or a baseline may extend."""
    spec, lines = experiment.spec, []
    for expectation in spec.hypothesis:
        longer = [f"times {slack:g} (slack)"] if slack > 1 and expectation.timing == "loose" else []
        if expectation.baseline is not None:
            longer.append(f"at least {expectation.baseline:g} x the slowest start of the workload")
        if longer:
            lines.append(f"deadline {expectation.title}: {expectation.within}, {', '.join(longer)}")
    if spec.recovery and spec.recovery.timing == "loose" and slack > 1:
        lines.append(f"deadline of the recovery: {spec.recovery.within}, times {slack:g} (slack)")
    return ["", *lines] if lines else []


def _step(step: PlannedStep) -> list[str]:
    from chaos.core.command import HostCommand

    lines = ["", on_node(f"step {step.step}: {step.action}", step.node)]
    lines += [f"  wait    until {' or '.join(map(str, step.awaits))}"] if step.awaits else []
    lines += [f"  only if {check}" for check in step.preconditions]
    if heal := step.failsafe_timer:
        lines.append(
            f"  arm     failsafe timer {heal.unit}: {HostCommand(heal.argv)} after {heal.seconds:.0f}s, read back"
        )
    lines += [f"  send    {command}" for command in step.commands]
    lines.append(f"  proof   {', '.join(step.proofs)}")
    for undo in step.undo.steps:
        lines.append(f"  undo    {undo.command}" + (f", unless {undo.unless}" if undo.unless else ""))
    if step.undo.proof:
        lines.append(f"  undone  when {', '.join(str(check) for check in step.undo.proof)}")
    if step.undo.disarm:
        lines.append(f"  then    stop the failsafe timer {step.undo.disarm}")
    return lines


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
    rows += _truncate([("target", f"{target.target}: {target.described}") for target in plan.targets], _MAX_TARGETS)
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
            raise Refused(
                f"not confirmed: the machine of {node} is not recognized as the machine of the run", hint=hint
            )
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
    journal = "its journal is known from the cluster only, and not signed with a key that is here"
    yield f"run {identity.run} of {identity.holder or 'an unknown user'}, begun {begun}: {journal}"
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
