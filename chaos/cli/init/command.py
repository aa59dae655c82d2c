"""``nodefall init``."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.complete import complete_context
from chaos.cli.lazy import examples

if TYPE_CHECKING:
    from chaos.app.discovery.machines import LinuxTransport

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog=examples(
        "nodefall init",
        "nodefall init --context staging --out hosts/staging.yaml",
        "nodefall init --context staging --yes --user ops --accept-fingerprints",
        "nodefall init --kubeconfig admin.conf --yes --no-doctor --json",
    )
)
@click.option(
    "--context", metavar="NAME", shell_complete=complete_context, help="Of the kubeconfig. [default: the current one]"
)
@click.option("--kubeconfig", type=_FILE, help="[default: that of KUBECONFIG, else ~/.kube/config]")
@click.option("--out", type=_FILE, help="The inventory to write. [default: hosts/CONTEXT.yaml]")
@click.option(
    "--transport",
    type=click.Choice(["ssh", "pod"]),
    help="To Linux nodes. [default without a login: docker for kind, pod for EKS, GKE, AKS and OpenShift; else ssh]",
)
@click.option("--user", metavar="LOGIN", help="Login over SSH. [default: by the OS images of the Nodes]")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of sshd. [default: 22]")
@click.option("--identity-file", type=_FILE, help="Private key of the login. [default: the keys of the SSH agent]")
@click.option("--yes", is_flag=True, help="Ask nothing: write what the cluster proposes.")
@click.option(
    "--accept-fingerprints", is_flag=True, help="With --yes: trust the host keys that the machines present now."
)
@click.option("--force", is_flag=True, help="Overwrite the inventory, and its known_hosts file.")
@click.option("--no-doctor", is_flag=True, help="Do not run nodefall doctor on the inventory.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout; docs/init.md describes it.")
def command(  # noqa: PLR0913, PLR0917 - one per option
    context: str | None,
    kubeconfig: Path | None,
    out: Path | None,
    transport: LinuxTransport | None,
    user: str | None,
    port: int | None,
    identity_file: Path | None,
    yes: bool,
    accept_fingerprints: bool,
    force: bool,
    no_doctor: bool,
    as_json: bool,
) -> None:
    """Write the inventory of a cluster from its kubeconfig, with a comment for each line. Changes no cluster and host.

    Labels, OS images and provider IDs of the Nodes propose transports, logins and power controls. On a terminal it
    asks, also whether to trust the host keys, whose fingerprints it shows. It ends with doctor on the inventory.

    Exit code: that of doctor; 0 with --no-doctor; 4: the cluster cannot be read; 64: bad input or usage.
    """
    from chaos.cli.init.init_impl import InitOptions, create

    options = InitOptions(
        context=context,
        kubeconfig=kubeconfig,
        out=out,
        transport=transport,
        user=user,
        port=port,
        identity_file=identity_file,
        asks=not yes,
        accept_fingerprints=accept_fingerprints,
        force=force,
        doctor=not no_doctor,
        as_json=as_json,
    )
    sys.exit(create(options))
