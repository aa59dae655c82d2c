"""Declarations of commands on a cluster and the run that is active or pending there."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chaos.cli.complete import complete_run
from chaos.cli.inventory import context_option, lock_namespace_option
from chaos.cli.lazy import cluster_option, command, document_option, inventory_option, json_option, reports_option


@command(
    "nodefall undo last",
    "nodefall undo reports/graceful-poweroff/20261121T033533Z",
    "nodefall undo graceful-poweroff --inventory hosts/staging.yaml",
    "nodefall undo --list",
    "nodefall undo --list --inventory hosts/staging.yaml",
    "nodefall undo graceful-poweroff-1f5458 --inventory hosts/staging.yaml",
    "nodefall undo graceful-poweroff-1f5458 --inventory hosts/staging.yaml --yes",
    "nodefall undo last --accept-machine worker-1 --yes",
)
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--list", "list_", is_flag=True, help="List the runs with a pending undo; exit code 3 if there are any.")
@inventory_option("Use this inventory instead of the one stored with the run.")
@context_option
@lock_namespace_option
@reports_option
@click.option(
    "--accept-machine",
    "accept",
    multiple=True,
    metavar="NODE",
    help="Undo on the machine that NODE is now, although nodefall does not recognize it. Can be repeated.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask before an undo that only the journal in the cluster describes, or on an accepted machine.",
)
@json_option
def undo_command(run: str | None, list_: bool, **options: Any) -> int:
    """Finish the pending undo of RUN: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run), last or a run ID.

    With --inventory, RUN may have been started on another machine, because the cluster has a copy of its journal.
    Everyone who can write ConfigMaps can change that copy. Therefore nodefall prints its commands and asks for
    confirmation, unless the copy is signed (cluster.journalKey). nodefall rebuilds a damaged journal from that copy and
    the plan.

    An undo sends nothing to a machine that is not the machine of the run. nodefall compares what survives a boot: the
    host key, container ID, machine ID, certificate or firmware. If something differs, the undo ends after a minute or
    two and says what. Look at the machine. If it is the right one, use --accept-machine NODE: nodefall shows what
    identifies the machine now, asks you, records the answer in the journal, and undoes there. The Node must report the
    same machine.

    --list asks the cluster of each pending run. An undo that another machine has finished is no longer pending once
    all its proofs hold on the node.

    Exit code 0: nothing is pending; 3: an undo is still pending. You can repeat this command safely.
    """
    from chaos.cli.cluster.undo import UndoOptions, list_pending, undo
    from chaos.core.errors import UsageError

    if list_ == bool(run):
        raise UsageError("give a RUN or --list", hint="list pending undos with nodefall undo --list")
    if list_ and options["accept"]:
        raise UsageError("--accept-machine needs a RUN")
    if run is None:
        return list_pending(options["reports"], options["inventory"], options["as_json"])
    return undo(UndoOptions(run, **options))


@command(
    "nodefall status --inventory hosts/staging.yaml",
    "nodefall status --inventory hosts/staging.yaml --json",
    "nodefall status --context staging",
)
@cluster_option
@context_option
@lock_namespace_option
@json_option
def status_command(**options: Any) -> int:
    """Show the active run of a cluster, and runs with a pending undo. Changes nothing.

    --context needs no inventory: it names a cluster of the kubeconfig, as it does for kubectl.

    Exit code 0: no active run, nothing pending; 2: a run is active; 3: a finished run has a pending undo.
    """
    from chaos.cli.cluster.lock_status import status

    return status(**options)


@command(
    'nodefall abort --inventory hosts/staging.yaml --reason "pager went off"',
    'kubectl -n kube-system annotate lease nodefall nodefall.dev/abort="pager went off"',
)
@cluster_option
@context_option
@lock_namespace_option
@click.option(
    "--reason", default="nodefall abort", show_default=True, help="The reason that the report of the run shows."
)
@click.option("--wait", default="10m", show_default=True, metavar="DURATION", help="How long to wait for the undo.")
@json_option
def abort_command(**options: Any) -> int:
    """Stop the active run of a cluster, and wait until it has undone its steps.

    The second example does the same with kubectl, but does not wait.

    Exit code 0: no active run, nothing pending; 2: the run is still active; 3: an undo is pending.
    """
    from chaos.cli.cluster.lock_status import abort

    return abort(**options)


@command(
    "nodefall watch last",
    "nodefall watch graceful-poweroff --serve 8080",
    "nodefall watch --inventory hosts/staging.yaml",
    "nodefall watch --inventory hosts/staging.yaml --serve 10.0.0.5:8080",
)
@click.argument("run", required=False, shell_complete=complete_run)
@inventory_option("Watch this cluster instead of a RUN. [env: NODEFALL_INVENTORY]")
@context_option
@lock_namespace_option
@reports_option
@click.option(
    "--serve",
    default="127.0.0.1:0",
    metavar="ADDR",
    help="The PORT or HOST:PORT to serve on. By default, any free port on loopback.",
)
def watch_command(**options: Any) -> int:
    """Show RUN, which is in progress in another process on this machine, in the browser until it ends.

    RUN is a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run) or last. With --inventory, the page shows the
    active run of the cluster if the run was started here. Otherwise it shows the cluster's nodes and pods until
    Ctrl-C. The Stop button asks for confirmation and then does what nodefall abort does.

    Exit code 0 when the run has ended, whatever its verdict.
    """
    from chaos.cli.cluster.lock_status import watch

    return watch(**options)


@command(
    "nodefall snapshot --inventory hosts/staging.yaml --out staging.snapshot.gz",
    "nodefall snapshot -i hosts/staging.yaml --out shared.snapshot.gz --anonymize",
    "nodefall lab up --snapshot staging.snapshot.gz --speed 10",
)
@cluster_option
@context_option
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write: JSON lines, compressed with gzip. Only its owner can read it.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace names, values of labels and annotations, images and hosts by a hash that is the same everywhere. "
    "Its key is random and is not stored.",
)
@click.option(
    "--hosts",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    metavar="N",
    help="Contact N hosts for each OS image and kernel, to read their systemd settings.",
)
@document_option("Print the header of the snapshot as one JSON object on stdout.")
def snapshot_command(**options: Any) -> int:
    """Copy the structure of a cluster into a file, from which nodefall lab up makes a lab. Changes nothing.

    A snapshot contains nodes, kubelet configurations, workloads, pods, budgets, volumes, priority classes and services,
    but only the fields that decide where pods run and how they end. It contains no environment variables, arguments,
    Secrets or ConfigMaps. It also records how long pulls of images, starts and terminations of pods really took. The
    command prints what could not be read, and so does the file.

    Exit code 0: the snapshot is complete; 2: objects are missing, or nothing could be read; 4: refused (wrong cluster);
    64: bad input or usage.
    """
    from chaos.cli.cluster import lock_status

    return lock_status.snapshot(**options)
