"""``nodefall rehearse``: an experiment on copies of a cluster, before anyone is hurt."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.cli.complete import complete_experiment_file
from chaos.cli.experiment_argument import ExperimentPath
from chaos.cli.inventory_option import inventory_option
from chaos.cli.lazy import examples
from chaos.cli.rehearsal_options import jobs_option, out_option, quiet_option, seed_option, snapshot_option
from chaos.cli.rehearse.completion import complete_change


@click.command(
    epilog=examples(
        "nodefall rehearse my.yaml --snapshot staging.snapshot.gz",
        "nodefall rehearse my.yaml --snapshot staging.snapshot.gz --each-node --out rehearsal",
        "nodefall rehearse my.yaml --snapshot staging.snapshot.gz --what-if grace=shop/web:5 --what-if nodes=+1",
        "nodefall rehearse experiments/graceful-poweroff.yaml --seeds 5",
        "nodefall rehearse experiments",
        "nodefall rehearse --help-what-if",
    )
)
@click.argument(
    "experiments",
    nargs=-1,
    metavar="EXPERIMENT...",
    shell_complete=complete_experiment_file,
    type=ExperimentPath(),
)
@snapshot_option(
    "The cluster, as nodefall snapshot has copied it. Default: the simulated cluster that the experiment names."
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of runs, each with other chance and other targets. [default: 20; 1 with --each-node, --each-zone or "
    "several experiments]",
)
@seed_option
@click.option(
    "--what-if",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_change,
    help="Change the snapshot first, and show both side by side; see --help-what-if. Can be repeated.",
)
@click.option("--help-what-if", is_flag=True, help="List the keys of --what-if, and exit.")
@click.option("--each-node", is_flag=True, help="Let every worker be the victim in turn, and rank them.")
@click.option("--each-zone", is_flag=True, help="The same with every zone, whose workers are lost together.")
@inventory_option("Whose limits and protected nodes apply; without one, every node may be a victim.")
@out_option("Write rehearsal.html, rehearsal.md, rehearsal.json, and prediction.json for nodefall compare.")
@jobs_option
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
def command(  # noqa: PLR0913, PLR0917 - one per option
    experiments: tuple[Path, ...],
    snapshot: Path | None,
    seeds: int | None,
    seed: int,
    changes: tuple[str, ...],
    help_what_if: bool,
    each_node: bool,
    each_zone: bool,
    inventory: str | None,
    out: Path | None,
    jobs: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run an EXPERIMENT on simulated copies of a cluster, many times, and report what would be lost.

    For each expectation: how often it held, and how long it took. What is lost: workloads without a serving pod, pods
    without room, overdrawn budgets, stuck pods, waiting volumes. The same snapshot, seeds and options give the same
    result. What the copy does not have is listed. docs/rehearse.md has an example.

    Several experiments, or a directory, run each on the simulated cluster that it names; a table shows their verdicts.

    Exit code, the gravest of all runs: 0 every run held; 1: one was violated; 2: inconclusive or aborted, or
    some runs were refused; 4: refused; 64: bad input or usage. Of several experiments: 0 every run ended as its
    annotation nodefall.dev/verdict says (default: held); 1: one held or was violated unlike that; 2: otherwise.
    """
    from chaos.cli.rehearse.rehearse_impl import RehearseOptions, list_changes, rehearse_and_report
    from chaos.core.errors import UsageError

    if help_what_if:
        list_changes()
        return
    if each_node and each_zone:
        raise UsageError("--each-node cannot be combined with --each-zone")
    each = "node" if each_node else "zone" if each_zone else ""
    options = RehearseOptions(experiments, snapshot, seeds, seed, changes, each, inventory, out, jobs)
    sys.exit(rehearse_and_report(options, quiet=quiet, as_json=as_json))
