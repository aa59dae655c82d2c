"""Serves the live page of a run of another process, or of a cluster."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from chaos.app.watch import NO_RUN, ClusterFollower, RunFollower, active_run, is_going_on, open_watched
from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.lock import held_lock
from chaos.cli.cluster.lock_status import load_cluster_inventory
from chaos.cli.output import echo
from chaos.cli.run.run import announce
from chaos.core.clock import SystemClock
from chaos.core.errors import UsageError
from chaos.core.store import run_directory
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.reports.live.access import Address, parse_address
from chaos.reports.live.feed import LiveFeed
from chaos.reports.live.server import LiveServer

_LEFT = "nodefall watch has ended; a run goes on without it."


def watch(run: str | None, inventory: str | None, reports: Path, serve: str) -> int:
    """Serve until the run has ended; the exit code. Raises NodefallError."""
    address = parse_address(serve)
    if run is not None and inventory is not None:
        raise UsageError("give RUN or --inventory, not both")
    if run is not None:
        return _watch_run(run_directory.find(reports, run), address)
    with connect_cluster(load_cluster_inventory(inventory)) as connection:
        directory = _local_directory(connection, reports)
        if directory is None:
            _watch_cluster(connection, address)
            return 0
    return _watch_run(directory, address)


def _watch_run(directory: Path, address: Address) -> int:
    if not is_going_on(directory):
        raise UsageError(
            f"the run {directory} does not go on here",
            hint=f"nodefall report {directory} --open shows a finished one; --inventory a run of another machine",
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
            text = (directory / "report.html").read_text(encoding="utf-8")
        except OSError:
            text = ""
        if text.endswith("</html>\n"):
            return text
        clock.sleep(0.5)
    return ""


def _local_directory(connection: ClusterConnection, reports: Path) -> Path | None:
    """The directory of the cluster's active run, if it goes on on this machine."""
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
