"""``nodefall status``: who is at work on a cluster, and what is owed there."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import sys

import click

EPILOG = """\b
Examples:
  nodefall status --inventory hosts/staging.yaml
  nodefall status --inventory hosts/staging.yaml --json
"""


@click.command(epilog=EPILOG)
@click.option("--inventory", "-i", help="Which cluster; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(inventory: str | None, as_json: bool) -> None:
    """Tell who runs what on a cluster, and which runs still owe an undo there. Changes nothing.

    Exit code 0: nobody is at work and nothing is owed; 2: somebody is at work; 3: a run that is over owes something.
    """
    from chaos.cli.cluster.lock_status import status

    sys.exit(status(inventory, as_json))
