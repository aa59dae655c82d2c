"""Declarations of commands that run experiments, on clusters or copies of them."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chaos.cli.complete import complete_change, complete_run
from chaos.cli.inventory import context_option
from chaos.cli.lazy import (
    command,
    document_option,
    experiment_argument,
    file_option,
    first_seed_option,
    inventory_option,
    jobs_option,
    out_option,
    plain_option,
    quiet_option,
    reports_option,
    require_reports,
    result_option,
    stored_runs_option,
)


@command(
    "nodefall demo",
    "nodefall demo --json",
)
@reports_option
@plain_option
@quiet_option
@result_option
def demo_command(reports: Path, **output: bool) -> int:
    """Shut down a node of a simulated cluster gracefully, and report what the cluster did."""
    from chaos.cli.run.demo import run_demo
    from chaos.cli.run.run import OutputOptions

    return run_demo(reports, OutputOptions(**output))


@command(
    "nodefall plan experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml",
    "nodefall plan my.yaml --inventory hosts/staging.yaml --seed 7 --out plan.json",
)
@experiment_argument("experiment")
@inventory_option("The cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@context_option
@click.option("--seed", type=int, help="Select the same targets as an earlier run with this seed.")
@reports_option
@file_option("--out", "Write the plan as JSON to this file.")
@click.option("--anyway", is_flag=True, help="Override refusals of preflight, also when this plan is run.")
@document_option("Print the plan as one JSON object on stdout.")
def plan_command(**options: Any) -> None:
    """Select targets for an EXPERIMENT, collect facts, and print exactly what a run would send."""
    from chaos.cli.run import plan

    plan.show_plan(**options)


@command(
    "nodefall run experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml",
    "nodefall run my.yaml --inventory hosts/staging.yaml --seed 7 --json",
    "nodefall run my.yaml --inventory hosts/staging.yaml --repeat 20 --json",
    "nodefall run my.yaml --inventory hosts/staging.yaml --serve",
    "nodefall run --plan plan.json --inventory hosts/staging.yaml",
    "NODEFALL_INVENTORY=hosts/lab.yaml nodefall run experiments/cancelled-shutdown.yaml",
)
@experiment_argument("experiment", required=False)
@file_option("--plan", "Run a saved plan. Refused if the cluster has changed.")
@inventory_option("The cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@context_option
@reports_option
@click.option("--seed", type=int, help="Select the same targets as an earlier run with this seed.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Run the experiment N times, each with another seed. Stop at an abort, a refusal or a pending undo.",
)
@click.option("--max-duration", metavar="DURATION", help="Replace the experiment's maxDuration.")
@file_option("--record", "Copy the recording to this file.")
@click.option("--anyway", is_flag=True, help="Override refusals of preflight. The run is then at best inconclusive.")
@click.option("--yes", is_flag=True, help="Do not ask before taking real machines down.")
@click.option(
    "--serve",
    is_flag=False,
    flag_value="127.0.0.1:0",
    metavar="[ADDR]",
    help="Show the run in the browser while it is in progress. ADDR is PORT or HOST:PORT, by default any free port on "
    "loopback.",
)
@plain_option
@quiet_option
@result_option
def run_command(repeat: int | None, plain: bool, quiet: bool, as_json: bool, **options: Any) -> int:
    """Run an EXPERIMENT: plan, inject, observe, undo, judge, report.

    EXPERIMENT is a file or the name of a bundled experiment, such as graceful-poweroff.

    Exit code 0: every expectation held; 1: an expectation was violated; 2: inconclusive or aborted; 3: an undo is
    pending; 4: refused, without side effects. A series ends with the most severe code of its runs, in the order 3,
    130 or 143, 1, 4, 2, 0.
    """
    from chaos.cli.run.run import OutputOptions, RunOptions, run_and_report

    given, output = RunOptions(**options), OutputOptions(plain, as_json, quiet)
    if repeat is None:
        return run_and_report(given, output)
    from chaos.cli.run.series import run_series

    return run_series(given, repeat, output)


@command(
    "nodefall rehearse my.yaml --snapshot staging.snapshot.gz",
    "nodefall rehearse my.yaml --snapshot staging.snapshot.gz --each-node --out rehearsal",
    "nodefall rehearse my.yaml --snapshot staging.snapshot.gz --what-if grace=shop/web:5 --what-if nodes=+1",
    "nodefall rehearse experiments/graceful-poweroff.yaml --seeds 5",
    "nodefall rehearse experiments",
    "nodefall rehearse --help-what-if",
)
@experiment_argument("experiments", nargs=-1, metavar="EXPERIMENT...")
@file_option(
    "--snapshot",
    "The snapshot of a cluster. By default, the simulated cluster that the experiment names.",
    metavar="FILE",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of runs, each with another seed and other targets. [default: 20; 1 with --each-node, --each-zone or "
    "several experiments]",
)
@first_seed_option
@click.option(
    "--what-if",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_change,
    help="Change the snapshot first and show both results side by side; see --help-what-if. Can be repeated.",
)
@click.option("--help-what-if", is_flag=True, help="List the keys of --what-if, and exit.")
@click.option(
    "--each-node", is_flag=True, help="Make every worker the victim in turn, and rank the workers by what is lost."
)
@click.option("--each-zone", is_flag=True, help="Take down all workers of each zone in turn.")
@inventory_option("The inventory whose limits and protected nodes apply. Without one, every node may be a victim.")
@out_option("Write rehearsal.html, rehearsal.md, rehearsal.json, and prediction.json for nodefall compare.")
@jobs_option
@quiet_option
@result_option
def rehearse_command(
    *, help_what_if: bool, each_node: bool, each_zone: bool, quiet: bool, as_json: bool, **options: Any
) -> int:
    """Run an EXPERIMENT many times on simulated copies of a cluster, and report what would be lost.

    The report shows how often each expectation held and how long it took. It lists losses: workloads without a serving
    pod, pods that fit nowhere, violated budgets, stuck pods, volumes that are waited for. It also lists what the copy
    does not model. The same snapshot, seeds and options give the same result. docs/rehearse.md has an example.

    If you give several experiments or a directory, each experiment runs on the simulated cluster that it names, and a
    table shows the verdicts.

    Exit code 0: every run held; 1: a run was violated; 2: a run was inconclusive, aborted or refused; 4: all were
    refused; 64: bad input or usage. With several experiments, 0: every run ended as its annotation
    nodefall.dev/verdict says (default: held); 1: a verdict was the opposite; 2: otherwise.
    """
    from chaos.cli.run.rehearse import RehearseOptions, list_changes, rehearse_and_report
    from chaos.core.errors import UsageError

    if help_what_if:
        list_changes()
        return 0
    if each_node and each_zone:
        raise UsageError("--each-node cannot be combined with --each-zone")
    each = "node" if each_node else "zone" if each_zone else ""
    return rehearse_and_report(RehearseOptions(each=each, **options), quiet=quiet, as_json=as_json)


@command(
    "nodefall suggest -i hosts/staging.yaml --out suggestions",
    "nodefall suggest --snapshot staging.snapshot.gz",
    "nodefall suggest --snapshot staging.snapshot.gz --namespace shop --top 3 --out suggestions",
    "nodefall suggest -i hosts/staging.yaml --json",
)
@inventory_option("The cluster, of which a snapshot is taken; there is no default. [env: NODEFALL_INVENTORY]")
@context_option
@file_option("--snapshot", "A snapshot of the cluster instead of the cluster.", metavar="FILE")
@out_option("Write the experiments, suggest.html, suggest.md, suggest.json, and with -i the snapshot.")
@click.option(
    "--top", type=click.IntRange(1, 1000), default=10, show_default=True, metavar="N",
    help="Number of risks that get experiments.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), default=5, show_default=True, metavar="N",
    help="Number of rehearsals of the worst event of each top risk. All other events are rehearsed once.",
)  # fmt: skip
@click.option("--namespace", "-n", default="", metavar="NAME", help="Look only at the workloads of this namespace.")
@jobs_option
@quiet_option
@document_option("Print the result as one JSON object on stdout; docs/suggest.md describes it.")
def suggest_command(*, quiet: bool, as_json: bool, **options: Any) -> int:
    """Find what is fragile in a cluster, rehearse it on simulated copies, and write experiments. Changes nothing.

    The snapshot alone shows weaknesses, such as single replicas, or budgets that block every drain. Then each node and
    each zone is drained, shut down and without power, on copies of the cluster; of nodes that are alike, only one.
    Workloads are ranked by the seconds for which they have no serving pod. For each of the top risks there are
    experiments that run on the cluster as they are, the gentlest first. docs/suggest.md has the list of weaknesses.

    Exit code 0: done, whatever was found; 4: the cluster cannot be read; 64: bad input or usage.
    """
    from chaos.cli.run.suggest import Given, suggest_and_report

    return suggest_and_report(Given(**options), quiet=quiet, as_json=as_json)


@command(
    "nodefall compare last --snapshot staging.snapshot.gz",
    "nodefall compare last --prediction rehearsal/prediction.json",
    "nodefall compare graceful-poweroff --with graceful-poweroff/20261121T033533Z",
    "nodefall compare before.jsonl.gz after.jsonl.gz --json",
    "nodefall compare recording.jsonl.gz --out comparison",
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)
@file_option(
    "--snapshot",
    "Rehearse the experiment of RUN on copies of this cluster, with the same victims.",
    metavar="FILE",
)
@click.option(
    "--with",
    "other",
    metavar="RUN",
    default="",
    shell_complete=complete_run,
    help="Compare with this run or recording.",
)
@file_option("--prediction", "Compare with the prediction.json of nodefall rehearse --out.", metavar="FILE")
@click.option(
    "--seeds", type=click.IntRange(2, 10_000), default=20, show_default=True, metavar="N", help="Number of rehearsals."
)
@first_seed_option
@click.option("--other-victims", is_flag=True, help="Also compare runs that have different victims.")
@out_option("Write comparison.html, comparison.md and comparison.json.")
@jobs_option
@quiet_option
@stored_runs_option
@result_option
def compare_command(
    *, seeds: int, seed: int, out: Path | None, quiet: bool, reports: Path, as_json: bool, **options: Any
) -> int:
    """Compare a RUN with a prediction or with another run, or compare a series of runs, each with the earlier ones.

    RUN is a run directory, EXPERIMENT/STAMP, EXPERIMENT or last for the newest run, or a recording (*.jsonl.gz). A
    single RUN without options is compared with what the lab predicts from the first lists of its recording. The first
    line names the greatest surprise. docs/compare.md describes when a time counts as predicted.

    Exit code 0: everything is within its band; 1: something differs; 2: the runs cannot be compared; 64: bad input or
    usage.
    """
    from chaos.cli.run.rehearse import compare_and_report
    from chaos.rehearsal.comparisons import CompareOptions

    require_reports(reports)
    numbers = tuple(range(seed, seed + seeds))
    given = CompareOptions(reports=reports, seeds=numbers, **options)
    return compare_and_report(given, out, quiet=quiet, as_json=as_json)
