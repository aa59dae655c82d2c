"""``nodefall undo``: finish the pending undo of a run."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.cli.history_options import complete_run
from chaos.cli.inventory_option import inventory_option

EPILOG = """\b
Examples:
  nodefall undo last
  nodefall undo reports/graceful-poweroff/20261121T033533Z
  nodefall undo graceful-poweroff --inventory hosts/staging.yaml
  nodefall undo --list
  nodefall undo --list --inventory hosts/staging.yaml
  nodefall undo graceful-poweroff-1f5458 --inventory hosts/staging.yaml
  nodefall undo graceful-poweroff-1f5458 --inventory hosts/staging.yaml --yes
  nodefall undo last --accept-machine worker-1 --yes
"""


@click.command(epilog=EPILOG)
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--list", "list_", is_flag=True, help="List the runs with a pending undo; exit code 3 if any.")
@inventory_option("Instead of the inventory stored with the run.")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option(
    "--accept-machine",
    "accept",
    multiple=True,
    metavar="NODE",
    help="Undo on the machine that is now in the place of NODE, though it is not known as the run's. Repeatable.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask before an undo that only the cluster's journal describes, or on an accepted machine.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(
    run: str | None,
    list_: bool,
    inventory: str | None,
    reports: Path,
    accept: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Finish the pending undo of RUN: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run), last or a run ID.

    With --inventory, RUN may be from another machine: the cluster has a copy of its journal. Anybody who may write
    ConfigMaps can change that copy, so its commands are printed and confirmed unless it is signed (cluster.journalKey).
    A damaged journal is rebuilt from that copy and the plan.

    An undo sends nothing to a machine that is not the run's, as shown by what stays the same over a boot: host key,
    container ID, machine ID, certificate or firmware. It ends after a minute or two and says what differs. Look at
    the machine. If it is the right one, --accept-machine NODE shows what identifies it now, asks, records that in the
    journal, and undoes there. It must be the machine of its Node, by what the Node reports now.

    Exit code 0: nothing is pending; 3: an undo is still pending. Idempotent.
    """
    from chaos.cli.undo.list_impl import list_pending
    from chaos.cli.undo.undo_impl import UndoOptions, undo
    from chaos.core.errors import UsageError

    if list_ == bool(run):
        raise UsageError("give a RUN or --list", hint="list pending undos with nodefall undo --list")
    if list_ and accept:
        raise UsageError("--accept-machine needs a RUN")
    if run is None:
        sys.exit(list_pending(reports, inventory, as_json))
    sys.exit(undo(UndoOptions(run, inventory, reports, yes, as_json, accept)))
