"""``nodefall watch``: the live page of a run that another process has started, or of a cluster."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.cli.history_options import complete_run
from chaos.cli.inventory_option import inventory_option
from chaos.cli.lazy import examples


@click.command(
    epilog=examples(
        "nodefall watch last",
        "nodefall watch graceful-poweroff --serve 8080",
        "nodefall watch --inventory hosts/staging.yaml",
        "nodefall watch --inventory hosts/staging.yaml --serve 10.0.0.5:8080",
    )
)
@click.argument("run", required=False, shell_complete=complete_run)
@inventory_option("A cluster, instead of RUN. [env: NODEFALL_INVENTORY]")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option(
    "--serve",
    default="127.0.0.1:0",
    metavar="ADDR",
    help="PORT or HOST:PORT to serve on, by default any port on loopback.",
)
def command(run: str | None, inventory: str | None, reports: Path, serve: str) -> None:
    """Show RUN, which goes on in another process of this machine, in the browser until it ends.

    RUN is a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run) or last. With --inventory: the active run of
    the cluster if it was started here, else what its nodes and pods do, until Ctrl-C. Stop on the page asks first, and
    is that of nodefall abort.

    Exit code 0 when the run has ended, whatever its verdict is.
    """
    from chaos.cli.watch.watch_impl import watch

    sys.exit(watch(run, inventory, reports, serve))
