"""Watches a cluster without changing it: what run holds its lock, and what its nodes and pods do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from chaos.app.cluster_lock import lock_namespace
from chaos.app.connect import ClusterConnection
from chaos.app.watch_run import stop_active_run
from chaos.cluster.lease import LeaseRecord, read_lock
from chaos.cluster.observers.cluster import ClusterObservers
from chaos.core.clock import SystemClock
from chaos.core.decode import decode
from chaos.core.errors import NodefallError
from chaos.core.labels import RUN_LABEL
from chaos.core.ports import RunWatcher
from chaos.engine.recorder import Recorder

logger = logging.getLogger(__name__)

_INTERVAL = 2.0  # seconds between two reads of the lock
NO_RUN = "no run is active on this cluster"


@dataclass
class ClusterFollower:
    """Passes on what a cluster does, until :attr:`ended` is set. ``describe`` gets the active run, and a note."""

    connection: ClusterConnection
    watcher: RunWatcher
    describe: Callable[[str, str], None]
    ended: threading.Event = field(default_factory=threading.Event)
    _active: str | None = None  # None: unknown
    _to_stop: str = ""  # the run that somebody wants to stop

    def follow(self) -> None:
        """Observe until the end. Raises NodefallError if the cluster's lock cannot be read at first."""
        connection = self.connection
        recorder = Recorder(decode, connection.clock, on_entry=self.watcher.entry)
        observed = ClusterObservers(connection.kube, connection.clock)
        with ExitStack() as stack:
            wall = SystemClock()
            stack.callback(wall.close)
            self._read_lock(wall.now())
            for observer in observed.watches:
                if observer is not observed.currency:  # its proofs are for verdicts, and cost the API server more
                    stack.callback(observer.stop)
                    observer.start(recorder.emit)
            while not self.ended.wait(_INTERVAL):
                recorder.timeline()  # takes what has arrived out of the recorder's queue
                try:
                    self._read_lock(wall.now())
                except NodefallError as error:
                    logger.warning("the cluster's lock was not read: %s", error.message)
                    self._active = None  # described again once it is read
                    self.describe("the cluster's lock cannot be read", error.message)

    def _read_lock(self, now: float) -> None:
        """Read the lock, and stop its holder if somebody wants that."""
        record = read_lock(self.connection.kube, lock_namespace(self.connection))
        run = active_run(record, now)
        wanted, self._to_stop = self._to_stop, ""
        note = self._stop(run) if run and run == wanted else ""  # another run may have the lock by now
        if run != self._active or note:
            self._active = run
            self.describe(f"run {run} of {record.holder} is active" if run and record else NO_RUN, note)
            self.watcher.begin({}, partial(self._want_stop, run) if run else None)

    def _stop(self, run: str) -> str:
        """Stop the active run; why that failed, "" if it did not."""
        try:
            stop_active_run(self.connection.kube, lock_namespace(self.connection), run)
        except NodefallError as error:
            logger.warning("the run was not stopped: %s", error.message)
            return f"the run was not stopped: {error.message}"
        return ""

    def _want_stop(self, run: str) -> None:
        self._to_stop = run


def active_run(record: LeaseRecord | None, now: float) -> str:
    """ID of the run that holds the lock and has renewed it lately, "" for none. ``now``: of this machine."""
    if record is None or not record.holder or not record.is_recent(now):
        return ""
    return record.annotations.get(RUN_LABEL) or "unknown"
