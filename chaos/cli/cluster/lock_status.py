"""The active run of a cluster, read from the cluster's lock and aborted through it; and a snapshot of the cluster."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.app.snapshot.take import take_snapshot
from chaos.app.undo.pending import describe_pending
from chaos.app.wiring.connect import connect_cluster, inventory_path
from chaos.cli.options import seconds_of
from chaos.cli.output import echo, echo_progress
from chaos.cluster.journal_mirror import pending_runs
from chaos.cluster.lease import LeaseRecord, read_lock, request_abort
from chaos.cluster.replica import PendingRun
from chaos.cluster.snapshot.document import Header
from chaos.core.clock import SystemClock
from chaos.core.errors import Exit, UsageError
from chaos.core.inventory import Inventory
from chaos.core.labels import RUN_LABEL
from chaos.documents.inventory import load_inventory
from chaos.engine.connection import ClusterConnection, lock_namespace

_POLL_INTERVAL = 1.0
_SHOWN = ("nodes", "pods", "deployments", "statefulsets", "daemonsets", "jobs", "poddisruptionbudgets")


def status(inventory: str | None, as_json: bool) -> int:
    """Print the lock and the pending undo; the exit code."""
    with connect_cluster(load_cluster_inventory(inventory)) as connection, closing(SystemClock()) as clock:
        return _echo_status(connection, clock, as_json)


def abort(inventory: str | None, reason: str, wait: str, as_json: bool) -> int:
    """Request an abort and wait for the end of the run; the exit code. Raises UsageError."""
    seconds = seconds_of("--wait", wait)
    if not reason.strip():
        raise UsageError("--reason: must not be empty")
    with connect_cluster(load_cluster_inventory(inventory)) as connection, closing(SystemClock()) as clock:
        record = read_lock(connection.kube, lock_namespace(connection))
        if record and record.holder and record.is_recent(clock.now()):
            request_abort(connection.kube, lock_namespace(connection), reason)
            echo(f"asked {record.holder} to stop", err=True)
            _wait_for_release(connection, clock, record.holder, seconds)
        return _echo_status(connection, clock, as_json)


def load_cluster_inventory(inventory: str | None) -> Inventory:
    """The inventory of a running cluster. Raises UsageError for one that describes a lab to be started."""
    loaded = load_inventory(inventory_path(inventory))
    if loaded.lab:
        raise UsageError(
            "no lab is running, so no run can be active", hint="give the inventory that nodefall lab up prints"
        )
    return loaded


def _wait_for_release(connection: ClusterConnection, clock: SystemClock, holder: str, seconds: float) -> None:
    end = clock.now() + seconds
    while clock.now() < end:
        record = read_lock(connection.kube, lock_namespace(connection))
        if record is None or record.holder != holder:
            return
        clock.sleep(_POLL_INTERVAL)


def _echo_status(connection: ClusterConnection, clock: SystemClock, as_json: bool) -> int:
    record = read_lock(connection.kube, lock_namespace(connection))
    pending = [run for run in pending_runs(connection.kube, lock_namespace(connection)) if run.has_pending]
    holder = record if record and record.holder else None
    alive = holder is not None and holder.is_recent(clock.now())
    if as_json:
        click.echo(json.dumps(_document(connection, holder, alive, pending)))
    else:
        echo(_describe_holder(holder, alive, clock.now()))
        for run in pending:
            echo(f"run {run.identity.run} has a pending undo: {describe_pending(run)}")
    if alive:
        return int(Exit.INCONCLUSIVE)
    return int(Exit.UNDO_PENDING if pending else Exit.HELD)


def _document(
    connection: ClusterConnection, holder: LeaseRecord | None, alive: bool, pending: list[PendingRun]
) -> dict[str, Any]:
    rows = [
        {"run": run.identity.run, "step": entry.step, "action": entry.action, "node": entry.node}
        for run in pending
        for entry in run.entries
    ]
    lock = None
    if holder:
        lock = {
            "holder": holder.holder,
            "run": holder.annotations.get(RUN_LABEL, ""),
            "renewed": holder.renewed,
            "alive": alive,
            "fence": holder.fence,
            "abort": holder.abort,
        }
    unreadable = [run.name for run in pending if run.error]
    return {
        "server": connection.kube.server,
        "clusterUID": connection.uid,
        "lock": lock,
        "pendingUndo": rows,
        "owed": rows,  # key of 0.1; words: keep
        "unreadable": unreadable,
    }


def _describe_holder(record: LeaseRecord | None, alive: bool, now: float) -> str:
    if record is None:
        return "no run is active on this cluster"
    run = record.annotations.get(RUN_LABEL) or "unknown"
    state = "is active" if alive else "seems to have died"
    age = f"lock renewed {record.age(now):.0f} s ago by the holder's clock"
    abort = f", abort requested: {record.abort}" if record.abort else ""
    return f"run {run} of {record.holder} {state} ({age}{abort})"


def snapshot(inventory: str | None, out: Path, anonymize: bool, hosts: int, as_json: bool) -> int:
    """Copy the structure of a cluster into a file, from which nodefall lab up makes a lab. Changes nothing."""
    with connect_cluster(load_cluster_inventory(inventory)) as connection:
        header = take_snapshot(connection, out, anonymize=anonymize, hosts_per_image=hosts, progress=echo_progress)
    _print(header, out, as_json)
    is_partial = any(missing.is_object for missing in header.missing)
    return Exit.INCONCLUSIVE if is_partial else Exit.HELD


def _print(header: Header, out: Path, as_json: bool) -> None:
    """Print what the snapshot has and lacks."""
    if as_json:
        click.echo(msgspec.json.encode(header).decode())
        return
    counts = ", ".join(f"{header.counts[kind]} {kind}" for kind in _SHOWN if header.counts.get(kind))
    echo(f"{out}: Kubernetes {header.kubernetes}, {counts or 'no objects'}")
    for missing in header.missing:
        echo(f"missing: {missing.what}: {missing.why}")
