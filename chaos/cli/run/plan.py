"""The commands of a run, their proofs and their undo, in words."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.output import echo, to_json, write
from chaos.core.text import on_node

if TYPE_CHECKING:
    from chaos.core.experiment import Experiment
    from chaos.core.plan import Plan, PlannedStep


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
    from chaos.app.wiring.connect import inventory_path
    from chaos.core.legacy import with_former_keys

    loaded = load(experiment)
    planned = plan(loaded, inventory_path(inventory), seed=seed, reports=reports, anyway=anyway)
    if out:
        write(out, to_json(planned) + "\n")
    if as_json:
        click.echo(to_json(with_former_keys(planned)))
    else:
        echo(*plan_lines(planned, loaded.experiment))


def plan_lines(plan: Plan, experiment: Experiment) -> list[str]:
    """The plan of a run in words."""
    return [*_steps(plan), *_probes(experiment), *_deadlines(experiment, plan.slack)]


def _steps(plan: Plan) -> list[str]:
    lines = [f"experiment {plan.experiment}, seed {plan.seed}, cluster {plan.cluster_uid}"]
    lines += [f"target {target.target}: {target.node}" for target in plan.targets]
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
