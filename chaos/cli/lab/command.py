"""``nodefall lab``: a simulated cluster to try things on."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from chaos.cli.lab.breakages import breakages
from chaos.cli.lazy import examples
from chaos.cli.output import echo_progress


@click.group(
    epilog=examples(
        "nodefall lab up",
        "nodefall lab up --speed 10 --workload experiments/workloads/web-db-tiers.yaml",
        "nodefall lab status",
        "nodefall lab down",
    )
)
def command() -> None:
    """A simulated cluster on loopback: API server, SSH, kubelets, power.

    A run with an inventory that says lab: starts one for itself. These commands are for labs that stay.
    """


command.add_command(breakages)


def _complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Of the labs that are kept, for the shell's completion."""
    from chaos.cli.lab.lab_state import lab_names
    from chaos.model.errors import NodefallError

    try:
        return [CompletionItem(name) for name in lab_names() if name.startswith(incomplete)]
    except NodefallError:
        return []


@command.command(
    "up",
    epilog=examples(
        "nodefall lab up",
        "nodefall lab up --name big --nodes 100 --zones a,b,c",
        "nodefall lab up --speed 10 --workload experiments/workloads/web-db-tiers.yaml",
        "nodefall lab up --kubelet-defects inhibitor-lost-after-cancel=always --systemd 257",
        "nodefall lab up hosts/lab.yaml --foreground --out lab.json",
    ),
)
@click.argument("inventory", type=click.Path(path_type=Path), required=False)
@click.option("--name", default="lab", show_default=True, help="Several labs can be up, by different names.")
@click.option("--nodes", type=click.IntRange(1, 1000), metavar="N", help="Workers; the control plane comes on top.")
@click.option("--zones", metavar="A,B", help="Zones, which the workers are in by turns.")
@click.option("--kubernetes", metavar="VERSION", help="The version to behave as: v1.36 and its patches.")
@click.option(
    "--speed",
    type=click.FloatRange(0, 1000, min_open=True),
    metavar="N",
    help="Free-running: time always moves, N seconds of the cluster a second. For kubectl and other clients. "
    "Without it the lab is in lockstep: time moves only while somebody waits for it, and waits for nodefall to see "
    "each change. For runs, whose results it makes exact.",
)
@click.option(
    "--workload",
    "workloads",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Manifests to apply once the nodes are Ready, and to wait for. Can be repeated.",
)
@click.option(
    "--kubelet-defects",
    "defects",
    metavar="DEFECT=WHEN",
    multiple=True,
    help="inhibitor-lost-after-cancel=always|never|seeded: a cancelled shutdown costs the kubelet its inhibitor lock.",
)
@click.option("--breakage", "broken", multiple=True, metavar="ID", help="What it is to do wrong. Can be repeated.")
@click.option("--systemd", type=int, metavar="VERSION", help="Of the nodes; 257 cancels a shutdown in flight.")
@click.option("--seed", type=int, help="The same seed, the same history.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the API server. Default: one that is free.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Copy the inventory to this file.")
@click.option(
    "--foreground/--detach",
    default=False,
    help="Stay until Ctrl-C, SIGTERM or lab down, and end the lab then. Default: leave it running.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the lab as one JSON object on stdout.")
def up(  # noqa: PLR0913 - one per option
    *,
    inventory: Path | None,
    name: str,
    speed: float | None,
    workloads: tuple[Path, ...],
    port: int,
    out: Path | None,
    foreground: bool,
    as_json: bool,
    **changes: Any,
) -> None:
    """Start the lab that INVENTORY describes (default: the shipped hosts/lab.yaml), changed by the options.

    Returns when it answers, its nodes are Ready and its workload is available; the lab runs on until
    nodefall lab down. Prints the kubeconfig and the inventory that reach it.

    Exit code: 0 it is up; 2 it did not come up, and is down again; 4 refused (the name or port is in use, or its
    directory cannot be); 64 bad input or usage.
    """
    from chaos.cli.bundled import bundled_path
    from chaos.cli.lab.lab_options import build_lab
    from chaos.cli.lab.up import UpOptions, up
    from chaos.load.inventory import load_inventory

    source = inventory or bundled_path("hosts/lab.yaml")
    asked = load_inventory(source)
    wish = UpOptions(asked, build_lab(str(source), asked.lab, changes), name, speed, port, workloads, out, foreground)
    up(wish, echo_progress, as_json)


@command.command("down", epilog=examples("nodefall lab down", "nodefall lab down big", "nodefall lab down --all"))
@click.argument("name", required=False, shell_complete=_complete_names)
@click.option("--all", "everything", is_flag=True, help="All labs of this user.")
@click.option("--json", "as_json", is_flag=True, help="Print the names as one JSON object on stdout.")
def down(name: str | None, everything: bool, as_json: bool) -> None:
    """Stop the lab NAME (default: lab) and remove its files. A dead lab's files are removed too.

    Exit code: 0 nothing of it is left; 4 refused, as its process is not proven to be a lab; 64 there is no such lab.
    """
    import json

    from chaos.cli.lab.down import down_all, select_labs

    names = select_labs(name, everything)
    down_all(names, echo_progress)
    if as_json:
        click.echo(json.dumps({"down": names}))


@command.command("status", epilog=examples("nodefall lab status", "nodefall lab status --json"))
@click.option("--json", "as_json", is_flag=True, help="Print the labs as one JSON object on stdout.")
def status(as_json: bool) -> None:
    """Show the labs of this user that stay, and how to reach them.

    Exit code: 0 all of them run, or there is none; 2 one is dead, does not answer, or is only just starting.
    """
    import json

    from chaos.cli.lab.status import exit_code, inspect_all, table

    labs = inspect_all()
    click.echo(json.dumps({"labs": labs}) if as_json else table(labs))
    sys.exit(exit_code(labs))


REPLAY_EPILOG = """\b
Examples:
  nodefall lab replay recording.jsonl.gz
  nodefall lab replay recording.jsonl.gz --count
"""


@command.command("replay", epilog=REPLAY_EPILOG)
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("--count", "only_count", is_flag=True, help="Only count the recorded states; no lab is involved.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
def replay(recording: Path, only_count: bool, as_json: bool) -> None:
    """Do in the lab what a RECORDING (a file or a run directory) of a cluster shows, and compare state by state.

    Exit code: 0 every recorded state matched, 1 some did not, 2 the lab cannot do what was done.
    """
    from chaos.cli.lab.lab_replay import replay_command

    sys.exit(replay_command(recording, only_count, as_json))
