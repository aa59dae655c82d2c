"""``nodefall abort``: stop whoever is at work on a cluster, from anywhere."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import sys

import click

EPILOG = """\b
Examples:
  nodefall abort --inventory hosts/staging.yaml --reason "pager went off"
  kubectl -n kube-system annotate lease nodefall nodefall.dev/abort="pager went off"
"""


@click.command(epilog=EPILOG)
@click.option("--inventory", "-i", help="Which cluster; there is no default. [env: NODEFALL_INVENTORY]")
@click.option("--reason", default="nodefall abort", show_default=True, help="What its report will say.")
@click.option("--wait", default="10m", show_default=True, metavar="DURATION", help="For it to undo what it did.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(inventory: str | None, reason: str, wait: str, as_json: bool) -> None:
    """Ask the run on a cluster to stop and undo what it did, and wait until it has.

    Plain kubectl can ask too: the second example does the same without waiting.

    Exit code 0: nobody is at work any more and nothing is owed; 2: it is still at work; 3: something is still owed.
    """
    from chaos.cli.cluster.lock_status import abort

    sys.exit(abort(inventory, reason, wait, as_json))
