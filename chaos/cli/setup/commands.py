"""Declarations of commands before the first run."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chaos.cli.complete import complete_action, complete_assertion, complete_context, complete_run
from chaos.cli.inventory import command_inventory, context_option
from chaos.cli.lazy import (
    command,
    document_option,
    experiment_argument,
    inventory_option,
    reports_option,
    stored_runs_option,
)

_FILE = click.Path(path_type=Path, dir_okay=False)


@command(
    "nodefall new",
    "nodefall new drain-shop.yaml --action drain --expect pods-evicted --expect workload-available",
    "nodefall new shop.yaml --action poweroff --workload shop/deployment.yaml",
    "nodefall new shop.yaml --action kubelet-stop --namespace shop",
    "nodefall new db.yaml --action power-cut --namespace shop --owner StatefulSet/db",
    "nodefall new db.yaml -i hosts/staging.yaml",
    "nodefall new again.yaml --from last",
    "nodefall new --list",
    "nodefall new plugin --kind assertion nodefall-acme",
)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]")
@click.option(
    "--kind", type=click.Choice(["action", "assertion", "power", "observer"]),
    help="With `plugin DIR`: write a package with a plug-in of this kind, and its tests, to DIR.",
)  # fmt: skip
@click.option(
    "--action", "actions", multiple=True, metavar="NAME", shell_complete=complete_action,
    help="The fault. Repeat the option for several steps.",
)  # fmt: skip
@click.option(
    "--expect", "expectations", multiple=True, metavar="NAME", shell_complete=complete_assertion,
    help="What must hold. Can be repeated. [default: the usual expectations for the action]",
)  # fmt: skip
@click.option(
    "--workload", type=click.Path(path_type=Path), metavar="MANIFEST",
    help="Manifests to apply for the run. [default: a sample that is written beside FILE]",
)  # fmt: skip
@click.option(
    "--namespace", "-n", metavar="NAME", help="Observe the pods of this namespace instead of applying a workload."
)
@click.option(
    "--owner", metavar="KIND/NAME", default="",
    help="The workload in --namespace that the experiment is about. A node that runs its pods fails.",
)  # fmt: skip
@inventory_option("Ask this cluster for its workloads, to choose one. Reads lists only.")
@click.option(
    "--from", "from_", metavar="RUN", default="", shell_complete=complete_run,
    help="Write the experiment of a stored run again, under the name of FILE.",
)  # fmt: skip
@stored_runs_option
@click.option("--title", metavar="TEXT", default="", help="The title of the experiment.")
@click.option("--force", is_flag=True, help="Overwrite FILE and the sample beside it.")
@click.option("--list", "list_names", is_flag=True, help="List the values of --action and --expect.")
def new_command(list_names: bool, kind: str | None, directory: Path | None, **options: Any) -> None:
    """Write an experiment to FILE. Without --action, nodefall asks on the terminal what fails and what must hold.

    The experiment is valid as it is. Its comments say what to change. `nodefall new plugin --kind KIND DIR` writes the
    package of a plug-in instead.
    """
    from chaos.cli.setup.new import NewOptions, create, list_choices

    if kind or directory:
        from chaos.cli.setup.new_plugin import create_plugin

        if not kind or not directory or options["file"] != Path("plugin"):
            raise click.UsageError("to write a plug-in, run: nodefall new plugin --kind KIND DIR")
        create_plugin(kind, directory)
        return
    if list_names:
        list_choices()
        return
    create(NewOptions(**options))


@command(
    "nodefall init",
    "nodefall init --context staging --out hosts/staging.yaml",
    "nodefall init --context staging --yes --user ops --accept-fingerprints",
    "nodefall init --kubeconfig admin.conf --yes --no-doctor --json",
)
@click.option(
    "--context",
    metavar="NAME",
    shell_complete=complete_context,
    help="The context of the kubeconfig. [default: the current context]",
)
@click.option(
    "--kubeconfig", type=_FILE, help="[default: KUBECONFIG, else ~/.kube/config, in a pod its service account]"
)
@click.option("--out", type=_FILE, help="The inventory to write. [default: hosts/CONTEXT.yaml]")
@click.option(
    "--transport",
    type=click.Choice(["ssh", "openssh", "pod"]),
    help="How to reach Linux nodes. [default without a login: docker for kind, pod for EKS, GKE, AKS and OpenShift;"
    " otherwise openssh if ssh is configured for the Nodes, else ssh]",
)
@click.option(
    "--user", metavar="LOGIN", help="The login for SSH. [default: the usual one for the OS images of the Nodes]"
)
@click.option("--port", type=click.IntRange(1, 65535), help="The port of sshd. [default: 22]")
@click.option("--identity-file", type=_FILE, help="The private key for the login. [default: the keys of the SSH agent]")
@click.option("--yes", is_flag=True, help="Ask nothing, and accept every proposal.")
@click.option(
    "--accept-fingerprints", is_flag=True, help="With --yes: trust the host keys that the machines present now."
)
@click.option("--force", is_flag=True, help="Overwrite the inventory and its known_hosts file.")
@click.option("--no-doctor", is_flag=True, help="Do not run nodefall doctor on the inventory.")
@document_option("Print one JSON object on stdout; docs/init.md describes it.")
def init_command(yes: bool, no_doctor: bool, **options: Any) -> int:
    """Write the inventory of a cluster from its kubeconfig, with a comment on each line. Changes no cluster or host.

    nodefall proposes transports, logins and power controls from the labels, OS images and provider IDs of the Nodes.
    On a terminal it asks you to confirm them, and shows the fingerprints of host keys before it trusts them. At the
    end it runs doctor on the inventory.

    Exit code: the exit code of doctor, or 0 with --no-doctor; 4: the cluster cannot be read; 64: bad input or usage.
    """
    from chaos.cli.setup.init import InitOptions, create

    return create(InitOptions(asks=not yes, doctor=not no_doctor, **options))


@command(
    "nodefall doctor --inventory hosts/staging.yaml",
    "nodefall doctor --inventory hosts/staging.yaml my.yaml",
    "nodefall doctor --inventory hosts/lab.yaml --json",
)
@experiment_argument("experiments", nargs=-1)
@inventory_option("The cluster and hosts; there is no default. [env: NODEFALL_INVENTORY]")
@context_option
@reports_option
@click.option("--all", "everything", is_flag=True, help="Also print passed checks, host by host.")
@document_option("Print one JSON object on stdout; docs/doctor.md describes it.")
def doctor_command(
    experiments: tuple[Path, ...], inventory: str | None, reports: Path, everything: bool, as_json: bool
) -> int:
    """Check whether a cluster and its hosts meet the needs of EXPERIMENTS (default: the bundled ones).

    This changes nothing.

    Exit code 0: no experiment is refused; 2: some are refused on some nodes; 4: all are refused on all nodes.
    """
    from chaos.cli.setup.doctor import echo_report, run_doctor

    report = run_doctor(lambda: command_inventory(inventory), experiments, reports)
    echo_report(report, everything=everything, as_json=as_json)
    return report.exit_code
