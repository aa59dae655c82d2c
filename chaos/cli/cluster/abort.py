"""``nodefall abort``: stop the active run of a cluster, from any machine."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys

import click

from chaos.cli.inventory_option import inventory_option

EPILOG = """\b
Examples:
  nodefall abort --inventory hosts/staging.yaml --reason "pager went off"
  kubectl -n kube-system annotate lease nodefall nodefall.dev/abort="pager went off"
"""


@click.command(epilog=EPILOG)
@inventory_option("The cluster; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--reason", default="nodefall abort", show_default=True, help="Reason shown in the report of the run.")
@click.option("--wait", default="10m", show_default=True, metavar="DURATION", help="How long to wait for its undo.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(inventory: str | None, reason: str, wait: str, as_json: bool) -> None:
    """Stop the active run of a cluster, and wait until it has undone its steps.

    The second example requests the same with kubectl, without waiting.

    Exit code 0: no active run, nothing pending; 2: the run is still active; 3: an undo is pending.
    """
    from chaos.cli.cluster.lock_status import abort

    sys.exit(abort(inventory, reason, wait, as_json))
