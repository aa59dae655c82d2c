"""``nodefall snapshot``: a copy of a cluster's structure in one file."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.inventory_option import inventory_option
from chaos.cli.lazy import examples

if TYPE_CHECKING:
    from chaos.cluster.snapshot.document import Header

_SHOWN = ("nodes", "pods", "deployments", "statefulsets", "daemonsets", "jobs", "poddisruptionbudgets")


@click.command(
    epilog=examples(
        "nodefall snapshot --inventory hosts/staging.yaml --out staging.snapshot.gz",
        "nodefall snapshot -i hosts/staging.yaml --out shared.snapshot.gz --anonymize",
        "nodefall lab up --snapshot staging.snapshot.gz --speed 10",
    )
)
@inventory_option("The cluster; there is no default. [env: NODEFALL_INVENTORY]")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write, readable by its owner only: JSON lines, compressed with gzip.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace names, values of labels and annotations, images and hosts by a keyed hash, the same everywhere. "
    "The key is random and is not stored.",
)
@click.option(
    "--hosts",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    metavar="N",
    help="Contact N hosts of each OS image and kernel over SSH, for their systemd.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the header of the snapshot as one JSON object on stdout.")
def command(inventory: str | None, out: Path, anonymize: bool, hosts: int, as_json: bool) -> None:
    """Copy the structure of a cluster into a file, from which nodefall lab up makes a lab. Changes nothing.

    It has nodes, kubelet configurations, workloads, pods, budgets, volumes, priority classes and services, with only
    the fields that decide where pods run and how they end: no environment, arguments, Secrets or ConfigMaps. And how
    long images, starts and terminations of pods really took. What could not be read is listed, in the file too.

    Exit code 0: the snapshot is written; 2: it lacks objects, or nothing could be read; 4: refused (wrong cluster);
    64: bad input or usage.
    """
    from chaos.app.snapshot.take import take_snapshot
    from chaos.app.wiring.connect import connect_cluster
    from chaos.cli.cluster.lock_status import load_cluster_inventory
    from chaos.cli.output import echo_progress
    from chaos.core.errors import Exit

    with connect_cluster(load_cluster_inventory(inventory)) as connection:
        header = take_snapshot(connection, out, anonymize=anonymize, hosts_per_image=hosts, progress=echo_progress)
    _print(header, out, as_json)
    is_partial = any(missing.is_object for missing in header.missing)
    sys.exit(Exit.INCONCLUSIVE if is_partial else Exit.HELD)


def _print(header: Header, out: Path, as_json: bool) -> None:
    """Print what the snapshot has and lacks."""
    import msgspec

    from chaos.cli.output import echo

    if as_json:
        click.echo(msgspec.json.encode(header).decode())
        return
    counts = ", ".join(f"{header.counts[kind]} {kind}" for kind in _SHOWN if header.counts.get(kind))
    echo(f"{out}: Kubernetes {header.kubernetes}, {counts or 'no objects'}")
    for missing in header.missing:
        echo(f"missing: {missing.what}: {missing.why}")
