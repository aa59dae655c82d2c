"""Who is at work on a cluster: read from its lock, and asked to stop through it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import click

from chaos.app.cluster_lock import describe_pending, lock_namespace
from chaos.app.connect import ClusterConnection, connect_cluster, inventory_path
from chaos.cli.output import echo
from chaos.clock import SystemClock
from chaos.kube.journal_mirror import PendingRun, pending_runs
from chaos.kube.lease import LeaseRecord
from chaos.kube.lease_lock import read_lock, request_abort
from chaos.load.inventory import load_inventory
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit, UsageError
from chaos.model.inventory import Inventory
from chaos.model.labels import RUN_LABEL

_POLL_INTERVAL = 1.0


def status(inventory: str | None, as_json: bool) -> int:
    """Say it; the exit code."""
    with connect_cluster(_load_cluster_inventory(inventory)) as opened, closing(SystemClock()) as clock:
        return _echo_status(opened, clock, as_json)


def abort(inventory: str | None, reason: str, wait: str, as_json: bool) -> int:
    """Ask, and wait; the exit code. Raises UsageError."""
    try:
        seconds = parse_duration(wait)
    except ValueError as error:
        raise UsageError(f"--wait: {error}") from error
    if not reason.strip():
        raise UsageError("--reason: say why")
    with connect_cluster(_load_cluster_inventory(inventory)) as opened, closing(SystemClock()) as clock:
        record = read_lock(opened.kube, lock_namespace(opened))
        if record and record.holder and record.is_recent(clock.now()):
            request_abort(opened.kube, lock_namespace(opened), reason)
            echo(f"asked {record.holder} to stop", err=True)
            _wait_for_release(opened, clock, record.holder, seconds)
        return _echo_status(opened, clock, as_json)


def _load_cluster_inventory(inventory: str | None) -> Inventory:
    loaded = load_inventory(inventory_path(inventory))
    if loaded.lab:
        raise UsageError(
            "nobody is at work on a lab that is not up", hint="give the inventory that nodefall lab up prints"
        )
    return loaded


def _wait_for_release(opened: ClusterConnection, clock: SystemClock, holder: str, seconds: float) -> None:
    end = clock.now() + seconds
    while clock.now() < end:
        record = read_lock(opened.kube, lock_namespace(opened))
        if record is None or record.holder != holder:
            return
        clock.sleep(_POLL_INTERVAL)


def _echo_status(opened: ClusterConnection, clock: SystemClock, as_json: bool) -> int:
    record = read_lock(opened.kube, lock_namespace(opened))
    owed = [debt for debt in pending_runs(opened.kube, lock_namespace(opened)) if debt.has_pending]
    holder = record if record and record.holder else None
    alive = holder is not None and holder.is_recent(clock.now())
    if as_json:
        click.echo(json.dumps(_document(opened, holder, alive, owed)))
    else:
        echo(_describe_holder(holder, alive, clock.now()))
        for debt in owed:
            echo(f"run {debt.identity.run} owes {describe_pending(debt)}")
    if alive:
        return int(Exit.INCONCLUSIVE)
    return int(Exit.UNDO_PENDING if owed else Exit.HELD)


def _document(
    opened: ClusterConnection, holder: LeaseRecord | None, alive: bool, owed: list[PendingRun]
) -> dict[str, Any]:
    rows = [
        {"run": debt.identity.run, "step": o.step, "action": o.action, "node": o.node}
        for debt in owed
        for o in debt.pending
        if o.undo.proof
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
    unreadable = [debt.name for debt in owed if debt.error]
    return {
        "server": opened.kube.server,
        "clusterUID": opened.uid,
        "lock": lock,
        "owed": rows,
        "unreadable": unreadable,
    }


def _describe_holder(record: LeaseRecord | None, alive: bool, now: float) -> str:
    if record is None:
        return "nobody is at work on this cluster"
    run = record.annotations.get(RUN_LABEL)
    ago = record.age(now)
    what = "is at work" if alive else "seems to have died"
    asked = f", asked to stop: {record.abort}" if record.abort else ""
    return f"{record.holder} {what}{f': run {run}' if run else ''} (lock renewed {ago:.0f}s ago by its clock{asked})"
