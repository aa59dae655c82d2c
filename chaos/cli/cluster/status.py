"""``nodefall status``: the active run of a cluster, and its pending undo."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys

import click

from chaos.cli.inventory_option import inventory_option

EPILOG = """\b
Examples:
  nodefall status --inventory hosts/staging.yaml
  nodefall status --inventory hosts/staging.yaml --json
"""


@click.command(epilog=EPILOG)
@inventory_option("The cluster; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(inventory: str | None, as_json: bool) -> None:
    """Show the active run of a cluster, and runs with a pending undo. Changes nothing.

    Exit code 0: no active run, nothing pending; 2: a run is active; 3: a finished run has a pending undo.
    """
    from chaos.cli.cluster.lock_status import status

    sys.exit(status(inventory, as_json))
