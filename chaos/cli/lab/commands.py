"""Declarations of ``nodefall lab``: simulated clusters."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from chaos.cli.complete import DocumentPath, complete_lab
from chaos.cli.lazy import command, document_option, examples, file_option
from chaos.cli.output import echo_progress, print_document


@click.group(
    epilog=examples(
        "nodefall lab up",
        "nodefall lab up --speed 10 --workload experiments/workloads/web-db-tiers.yaml",
        "nodefall lab status",
        "nodefall lab down",
    )
)
def lab_command() -> None:
    """A simulated cluster on loopback: API server, SSH, kubelets, power.

    A run whose inventory has lab: starts and stops a lab automatically. These commands manage labs that stay up.
    """


@command(
    "nodefall lab breakages",
    "nodefall lab up --breakage eviction-late --breakage pdb-ignored",
    of=lab_command,
    name="breakages",
)
@document_option("Print one JSON array.")
def breakages_command(as_json: bool) -> None:
    """List the deliberate defects of the simulated cluster, which make experiments fail."""
    from chaos.lab.facade import BREAKAGES

    if as_json:
        print_document([asdict(item) for item in BREAKAGES.values()])
        return
    formatter = click.HelpFormatter(width=120, max_width=120)
    for rule in sorted({item.rule for item in BREAKAGES.values()}):
        with formatter.section(f"rule {rule}"):
            formatter.write_dl([(item.id, item.text) for item in BREAKAGES.values() if item.rule == rule], col_max=40)
    click.echo(formatter.getvalue(), nl=False)


@command(
    "nodefall lab up",
    "nodefall lab up --name big --nodes 100 --zones a,b,c",
    "nodefall lab up --speed 10 --workload experiments/workloads/web-db-tiers.yaml",
    "nodefall lab up --kubelet-defects inhibitor-lost-after-cancel=always --systemd 257",
    "nodefall lab up hosts/lab.yaml --foreground --out lab.json",
    "nodefall lab up --snapshot staging.snapshot.gz --speed 10",
    of=lab_command,
    name="up",
)
@click.argument("inventory", type=DocumentPath(), required=False)
@click.option(
    "--name",
    default="lab",
    show_default=True,
    help="The name of the lab. Several labs with different names can run at the same time.",
)
@click.option(
    "--nodes", type=click.IntRange(1, 1000), metavar="N", help="The number of workers, without the control plane."
)
@click.option("--zones", metavar="A,B", help="The zones. Workers are assigned to them in turn.")
@click.option("--kubernetes", metavar="VERSION", help="The Kubernetes version to simulate: v1.31 to v1.36.")
@click.option(
    "--speed",
    type=click.FloatRange(0, 1000, min_open=True),
    metavar="N",
    help="Simulate N seconds per second, for kubectl and other clients. Without this option, simulated time advances "
    "only while a client waits for it, so that nodefall observes each change and its results are exact.",
)
@click.option(
    "--workload",
    "workloads",
    type=DocumentPath(),
    metavar="FILE",
    multiple=True,
    help="Manifests to apply once the nodes are Ready. up waits until they are available. Can be repeated.",
)
@click.option(
    "--kubelet-defects",
    "defects",
    metavar="DEFECT=WHEN",
    multiple=True,
    help="inhibitor-lost-after-cancel=always|never|seeded: whether the kubelet loses its lock after a cancellation.",
)
@click.option(
    "--breakage",
    "broken",
    multiple=True,
    metavar="ID",
    help="A deliberate defect from nodefall lab breakages, or COMPONENT.FIELD=VALUE of a rule. Can be repeated.",
)
@click.option(
    "--systemd",
    type=int,
    metavar="VERSION",
    help="The version of systemd on the nodes. 257 can cancel a shutdown in progress.",
)
@click.option("--seed", type=int, help="The same seed gives the same history.")
@file_option(
    "--snapshot",
    "Copy the cluster of a nodefall snapshot: its nodes and workloads, with pods on the same nodes. Prints what the "
    "lab does not model.",
    metavar="FILE",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port of the API server. Default: a free one."
)
@file_option("--out", "Copy the inventory to this file.")
@click.option(
    "--foreground/--detach",
    default=False,
    help="Run until Ctrl-C, SIGTERM or lab down, then stop the lab. Default: leave it running.",
)
@document_option("Print the lab as one JSON object on stdout.")
def up_command(  # noqa: PLR0913 - one per option
    *,
    inventory: Path | None,
    name: str,
    speed: float | None,
    workloads: tuple[Path, ...],
    port: int,
    out: Path | None,
    foreground: bool,
    as_json: bool,
    snapshot: Path | None,
    **changes: Any,
) -> None:
    """Start the lab that INVENTORY describes (default: the bundled hosts/lab.yaml), with the options applied.

    Returns when its nodes are Ready and its workload is available; the lab runs until nodefall lab down. Prints its
    kubeconfig and its inventory.

    Exit code: 0 it is up; 2 it did not become ready, and was removed; 4 refused (the name or port is in use, or its
    directory is unusable); 64 bad input or usage.
    """
    from chaos.cli.lab.up import UpOptions, build_lab, refuse_with_snapshot, up
    from chaos.core.files import bundled_path
    from chaos.documents.inventory import load_inventory

    source = inventory or bundled_path("hosts/lab.yaml")
    loaded = load_inventory(source)
    if snapshot:
        refuse_with_snapshot(changes)
    lab = build_lab(str(source), loaded.lab, changes)
    up(UpOptions(loaded, lab, name, speed, port, workloads, out, foreground, snapshot), echo_progress, as_json)


@command(
    "nodefall lab down",
    "nodefall lab down big",
    "nodefall lab down --all",
    of=lab_command,
    name="down",
)
@click.argument("name", required=False, shell_complete=complete_lab)
@click.option("--all", "everything", is_flag=True, help="Stop all labs of this user.")
@document_option("Print the names as one JSON object on stdout.")
def down_command(name: str | None, everything: bool, as_json: bool) -> None:
    """Stop the lab NAME (default: lab) and remove its files, also those of a dead lab.

    Exit code: 0 it is removed; 4 refused, as its process cannot be identified; 64 unknown lab.
    """

    from chaos.cli.lab.status import down_all, select_labs

    names = select_labs(name, everything)
    down_all(names, echo_progress)
    if as_json:
        print_document({"down": names})


@command(
    "nodefall lab status",
    "nodefall lab status --json",
    of=lab_command,
    name="status",
)
@document_option("Print the labs as one JSON object on stdout.")
def status_command(as_json: bool) -> int:
    """Show the labs of this user, and how to reach them.

    Exit code: 0 all of them run, or there is none; 2 one is dead, does not respond, or is starting.
    """

    from chaos.cli.lab.status import exit_code, inspect_all, table

    labs = inspect_all()
    if as_json:
        print_document({"labs": labs})
    else:
        click.echo(table(labs))
    return exit_code(labs)
