"""``nodefall doctor``."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.cli.complete import complete_experiment_file
from chaos.cli.experiment_argument import ExperimentPath
from chaos.cli.inventory_option import inventory_option

EPILOG = """\b
Examples:
  nodefall doctor --inventory hosts/staging.yaml
  nodefall doctor --inventory hosts/staging.yaml my.yaml
  nodefall doctor --inventory hosts/lab.yaml --json
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, shell_complete=complete_experiment_file, type=ExperimentPath())
@inventory_option("The cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--all", "everything", is_flag=True, help="Print also passed checks, host by host.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout; docs/doctor.md describes it.")
def command(
    experiments: tuple[Path, ...], inventory: str | None, reports: Path, everything: bool, as_json: bool
) -> None:
    """Check what EXPERIMENTS (default: the bundled ones) need of a cluster and its hosts. No side effects.

    Exit code 0: no experiment is refused; 2: some are refused on some nodes; 4: all are refused on all nodes.
    """
    from chaos.app.wiring.connect import inventory_path
    from chaos.cli.doctor.run import echo_report, run_doctor
    from chaos.documents.inventory import load_inventory

    report = run_doctor(lambda: load_inventory(inventory_path(inventory)), experiments, reports)
    echo_report(report, everything=everything, as_json=as_json)
    sys.exit(report.exit_code)
