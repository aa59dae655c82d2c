"""``nodefall kind``: a cluster of containers, made with the program kind."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

from pathlib import Path

import click

from chaos.cli.lazy import examples
from chaos.cli.output import echo_progress

_NAME = click.option("--name", default="nodefall", show_default=True, help="Of the cluster.")
_OUT = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="The inventory's file. [default: NAME.yaml]"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")


@click.group(epilog=examples("nodefall kind up", "nodefall kind down"))
def command() -> None:
    """A Kubernetes cluster in containers, by the program kind with docker or podman.

    Its nodes have D-Bus, logind and sshd, which kind's own images lack: without them nothing shuts down gracefully.
    """


@command.command(
    "up",
    epilog=examples(
        "nodefall kind up",
        "nodefall kind up --name ci --kubernetes v1.36.2 --out ci.yaml",
        "nodefall kind up --image kindest/node:v1.36.2   # stock: nothing shuts down gracefully on it",
    ),
)
@_NAME
@_OUT
@click.option("--kubernetes", default="v1.36.2", show_default=True, help="Version of kindest/node to build on.")
@click.option("--image", help="Use this node image as it is; nothing is built.")
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Of kind's own.")
@_JSON
def up_command(
    name: str, out: Path | None, kubernetes: str, image: str | None, config: Path | None, as_json: bool
) -> None:
    """Create a cluster of one control plane and three workers, and write the inventory that reaches it.

    Takes some minutes. What does not come up whole is taken down again. KIND_EXPERIMENTAL_PROVIDER=podman chooses
    podman.
    """
    import json
    import os

    from chaos.cli.kind.tools import find_tools
    from chaos.cli.kind.up import UpOptions, up

    wish = UpOptions(name, out or Path(f"{name}.yaml"), kubernetes, image, config)
    made = up(wish, find_tools(os.environ), echo_progress)
    run = f"nodefall run experiments/partition-ridden-out.yaml --inventory {wish.out} --yes"
    click.echo(json.dumps(made) if as_json else f"the cluster {name} is up: {', '.join(made['nodes'])}\n  {run}")


@command.command("down", epilog=examples("nodefall kind down", "nodefall kind down --name ci --out ci.yaml"))
@_NAME
@_OUT
@_JSON
def down_command(name: str, out: Path | None, as_json: bool) -> None:
    """Delete the cluster, its kubeconfig and its inventory; harmless twice."""
    import json
    import os

    from chaos.cli.kind.tools import find_tools
    from chaos.cli.kind.up import UpOptions, down

    there = down(UpOptions(name, out or Path(f"{name}.yaml")), find_tools(os.environ))
    told = f"the cluster {name} is deleted" if there else f"there is no kind cluster {name!r}"
    click.echo(json.dumps({"name": name, "deleted": there}) if as_json else told)
