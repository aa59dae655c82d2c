"""The active run of a cluster: read from its lock, aborted through it, or shown as a live page; and snapshots."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click
import msgspec

from chaos.app.snapshot.take import take_snapshot
from chaos.app.undo.pending import describe_pending
from chaos.app.watch import NO_RUN, ClusterFollower, RunFollower, active_run, is_going_on, open_watched
from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.lock import held_lock
from chaos.cli.inventory import command_inventory, inventory_or_context, refuse_overrides, require_running
from chaos.cli.lazy import seconds_of
from chaos.cli.output import echo, echo_progress, print_document
from chaos.cli.run.run import announce
from chaos.cluster.journal_mirror import pending_runs
from chaos.cluster.lease import LeaseRecord, read_lock, request_abort
from chaos.cluster.replica import PendingRun
from chaos.cluster.snapshot.document import Header
from chaos.core.clock import SystemClock
from chaos.core.errors import Exit, UsageError
from chaos.core.files import read_regular
from chaos.core.labels import RUN_LABEL
from chaos.core.store import run_directory
from chaos.core.text import shell_word
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.reports.live.access import Address, parse_address
from chaos.reports.live.feed import LiveFeed
from chaos.reports.live.server import LiveServer

_POLL_INTERVAL = 1.0
_SHOWN = ("nodes", "pods", "deployments", "statefulsets", "daemonsets", "jobs", "poddisruptionbudgets")


def status(inventory: str | None, as_json: bool) -> int:
    """Print the lock and the pending undo; the exit code."""
    with (
        connect_cluster(require_running(inventory_or_context(inventory))) as connection,
        closing(SystemClock()) as clock,
    ):
        return _echo_status(connection, clock, as_json)


def abort(inventory: str | None, reason: str, wait: str, as_json: bool) -> int:
    """Request an abort and wait for the end of the run; the exit code. Raises UsageError."""
    seconds = seconds_of("--wait", wait)
    if not reason.strip():
        raise UsageError("--reason: must not be empty")
    with (
        connect_cluster(require_running(inventory_or_context(inventory))) as connection,
        closing(SystemClock()) as clock,
    ):
        record = read_lock(connection.kube, lock_namespace(connection))
        if record and record.holder and record.is_recent(clock.now()):
            request_abort(connection.kube, lock_namespace(connection), reason)
            echo(f"asked {record.holder} to stop", err=True)
            _wait_for_release(connection, clock, record.holder, seconds)
        return _echo_status(connection, clock, as_json)


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
        print_document(_document(connection, holder, alive, pending))
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
    with connect_cluster(require_running(command_inventory(inventory))) as connection:
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


_LEFT = "nodefall watch has ended; a run goes on without it."


def watch(run: str | None, inventory: str | None, reports: Path, serve: str) -> int:
    """Serve until the run has ended; the exit code. Raises NodefallError."""
    address = parse_address(serve)
    if run is not None and inventory is not None:
        raise UsageError("give RUN or --inventory, not both")
    if run is not None:
        refuse_overrides("RUN goes on on this machine")
        return _watch_run(run_directory.find(reports, run), address)
    with connect_cluster(require_running(inventory_or_context(inventory))) as connection:
        directory = _local_directory(connection, reports)
        if directory is None:
            _watch_cluster(connection, address)
            return 0
    return _watch_run(directory, address)


def _watch_run(directory: Path, address: Address) -> int:
    if not is_going_on(directory):
        raise UsageError(
            f"the run {directory} does not go on here",
            hint=f"nodefall report {shell_word(directory)} --open shows a finished one; "
            "--inventory a run of another machine",
        )
    watched = open_watched(directory)
    spec, cluster = watched.experiment.spec, watched.inventory.metadata.name
    feed = LiveFeed(watched.info.experiment, cluster)
    feed.describe(phase="running")
    with LiveServer(address, feed, spec.title) as server, closing(SystemClock()) as clock:
        announce(server)
        try:
            RunFollower(watched, feed, clock, lambda text: feed.describe(note=text)).follow()
        except KeyboardInterrupt:
            server.finish("", _LEFT)
            raise
        report = _final_report(directory, clock)
        server.finish(report, f"The run {directory} has ended without a report.")
    echo(
        f"the run has ended; report: {directory / 'report.html'}" if report else f"the run {directory} has ended",
        err=True,
    )
    return 0


def _final_report(directory: Path, clock: SystemClock) -> str:
    """The report of a run that has just ended, "" without one: it is written after the result."""
    for _ in range(20):
        try:
            text = read_regular(directory / "report.html").decode()
        except OSError:
            text = ""
        if text.endswith("</html>\n"):
            return text
        clock.sleep(0.5)
    return ""


def _local_directory(connection: ClusterConnection, reports: Path) -> Path | None:
    """The directory of the cluster's active run, if it continues on this machine."""
    run = active_run(held_lock(connection.kube, lock_namespace(connection)))
    if not run:
        return None
    directory = run_directory.directories_by_id(reports, "*").get(run)
    return directory if directory is not None and is_going_on(directory) else None


def _watch_cluster(connection: ClusterConnection, address: Address) -> None:
    """Until Ctrl-C, which ends this process."""
    name = connection.inventory.metadata.name
    feed = LiveFeed("", name)
    feed.describe(phase=NO_RUN)
    with LiveServer(address, feed, f"Cluster {name}") as server:
        announce(server)
        try:
            ClusterFollower(connection, feed, lambda phase, note: feed.describe(phase=phase, note=note)).follow()
        except KeyboardInterrupt:
            server.finish("", _LEFT)
            raise
