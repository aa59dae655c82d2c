"""``nodefall demo``: a first run, on a simulated cluster."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

EPILOG = """\b
Examples:
  nodefall demo
  nodefall demo --json
"""


@click.command(epilog=EPILOG)
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--plain", is_flag=True, help="Plain progress lines, also on a terminal.")
@click.option("--quiet", "-q", is_flag=True, help="No progress: print the result only.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
def command(reports: Path, plain: bool, quiet: bool, as_json: bool) -> None:
    """Power off a node of a cluster simulated in this process, gracefully, and report what the cluster did."""
    from chaos.cli.demo_impl import run_demo
    from chaos.cli.run.run_impl import OutputOptions

    sys.exit(run_demo(reports, OutputOptions(plain, as_json, quiet)))
