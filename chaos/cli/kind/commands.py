"""Declarations of ``nodefall kind``: a cluster of containers, created with the program kind."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click

from chaos.cli.lazy import command, document_option, examples
from chaos.cli.output import echo_progress, print_document

_NAME = click.option("--name", default="nodefall", show_default=True, help="The name of the cluster.")
_OUT = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file of the inventory. [default: NAME.yaml]"
)
_JSON = document_option("Print one JSON object on stdout.")


@click.group(epilog=examples("nodefall kind up", "nodefall kind down"))
def kind_command() -> None:
    """Manage a Kubernetes cluster in containers, with the program kind and docker or podman.

    Its nodes have D-Bus, logind and sshd, which the stock images of kind lack: without them no shutdown is graceful.
    """


@command(
    "nodefall kind up",
    "nodefall kind up --name ci --kubernetes v1.36.2 --out ci.yaml",
    "nodefall kind up --image kindest/node:v1.36.2",
    "nodefall kind up --retain",
    of=kind_command,
    name="up",
)
@_NAME
@_OUT
@click.option("--kubernetes", default="v1.36.2", show_default=True, help="The version of the base image kindest/node.")
@click.option("--image", help="Use this node image instead of building one.")
@click.option(
    "--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="The configuration file for kind."
)
@click.option("--retain", is_flag=True, help="Keep a cluster that failed, so that you can look at it.")
@_JSON
def up_command(
    name: str, out: Path | None, kubernetes: str, image: str | None, config: Path | None, retain: bool, as_json: bool
) -> None:
    """Create a cluster of one control plane and three workers, and write its inventory.

    Takes some minutes. A cluster that does not become ready is deleted, unless --retain is given.
    KIND_EXPERIMENTAL_PROVIDER=podman selects podman.
    """
    import os
    import shlex

    from chaos.cli.kind.tools import find_tools
    from chaos.cli.kind.up import UpOptions, up

    options = UpOptions(name, out or Path(f"{name}.yaml"), kubernetes, image, config, retain)
    created = up(options, find_tools(os.environ), echo_progress)
    run = f"nodefall run partition-ridden-out --inventory {shlex.quote(str(options.out))} --yes"
    if as_json:
        print_document(created)
        return
    click.echo(f"the cluster {name} is up: {', '.join(created['nodes'])}\n  {run}")


@command(
    "nodefall kind down",
    "nodefall kind down --name ci --out ci.yaml",
    of=kind_command,
    name="down",
)
@_NAME
@_OUT
@_JSON
def down_command(name: str, out: Path | None, as_json: bool) -> None:
    """Delete the cluster, its kubeconfig and its inventory. You can repeat this command safely."""
    import os

    from chaos.cli.kind.tools import find_tools
    from chaos.cli.kind.up import UpOptions, down

    deleted = down(UpOptions(name, out or Path(f"{name}.yaml")), find_tools(os.environ))
    text = f"the cluster {name} was deleted" if deleted else f"no kind cluster {name!r}"
    if as_json:
        print_document({"name": name, "deleted": deleted})
    else:
        click.echo(text)
