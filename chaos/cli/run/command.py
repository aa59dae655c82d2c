"""``nodefall run``."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.cli.complete import complete_experiment_file
from chaos.cli.experiment_argument import ExperimentPath
from chaos.cli.inventory_option import inventory_option

DEFAULT_ADDRESS = "127.0.0.1:0"
EPILOG = """\b
Examples:
  nodefall run experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml
  nodefall run my.yaml --inventory hosts/staging.yaml --seed 7 --json
  nodefall run my.yaml --inventory hosts/staging.yaml --repeat 20 --json
  nodefall run my.yaml --inventory hosts/staging.yaml --serve
  nodefall run --plan plan.json --inventory hosts/staging.yaml
  NODEFALL_INVENTORY=hosts/lab.yaml nodefall run experiments/cancelled-shutdown.yaml
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", required=False, shell_complete=complete_experiment_file, type=ExperimentPath())
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Execute a saved plan; refuse if the cluster has changed.",
)
@inventory_option("The cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--seed", type=int, help="Select the same targets again.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Run a series of N; each seed derives from the first. Stops at an abort, a refusal or a pending undo.",
)
@click.option("--max-duration", metavar="DURATION", help="Instead of the experiment's maxDuration.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), help="Copy the recording to this file.")
@click.option("--anyway", is_flag=True, help="Override refusals of preflight: the run is inconclusive at best.")
@click.option("--yes", is_flag=True, help="Do not ask before taking real machines down.")
@click.option(
    "--serve",
    is_flag=False,
    flag_value=DEFAULT_ADDRESS,
    metavar="[ADDR]",
    help="Show the run in the browser while it goes on; ADDR is PORT or HOST:PORT, by default any port on loopback.",
)
@click.option("--plain", is_flag=True, help="Plain progress lines, also on a terminal.")
@click.option("--quiet", "-q", is_flag=True, help="No progress: print the result only.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
def command(  # noqa: PLR0913, PLR0917 - one per option
    experiment: Path | None,
    plan: Path | None,
    inventory: str | None,
    reports: Path,
    seed: int | None,
    repeat: int | None,
    max_duration: str | None,
    record: Path | None,
    anyway: bool,
    yes: bool,
    serve: str | None,
    plain: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run an EXPERIMENT: plan, inject, observe, undo, judge, report.

    EXPERIMENT is a file, or the name of a bundled experiment, such as graceful-poweroff.

    Exit code 0: every expectation held; 1: one was violated; 2: inconclusive or aborted; 3: an undo is pending;
    4: refused, without side effects. Of a series, the gravest one: 3, 130 or 143, 1, 4, 2, 0.
    """
    from chaos.cli.run.run_impl import OutputOptions, RunOptions, run_and_report

    options = RunOptions(experiment, inventory, reports, seed, max_duration, record, plan, yes, anyway, serve)
    output = OutputOptions(plain, as_json, quiet)
    if repeat is None:
        sys.exit(run_and_report(options, output))
    from chaos.cli.run.repeat import run_series

    sys.exit(run_series(options, repeat, output))
