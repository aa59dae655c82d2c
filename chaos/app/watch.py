"""Watches a cluster, or a run of another process of this machine, without changing them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
from pydantic import ValidationError

from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.lock import held_lock
from chaos.cluster.lease import LeaseRecord, read_lock, request_abort
from chaos.cluster.observers.cluster import ClusterObservers
from chaos.core.decode import decode
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.experiment import Experiment
from chaos.core.files import read_regular
from chaos.core.inventory import Inventory
from chaos.core.labels import RUN_LABEL
from chaos.core.plan import Plan, nodes_by_target
from chaos.core.ports import Clock, KubeApi, RunWatcher
from chaos.core.result import RunResult, RunState, provisional
from chaos.core.store import run_directory
from chaos.core.store.recording import RecordingTail
from chaos.core.store.run_history import read_run
from chaos.core.timeline import Timeline
from chaos.documents.experiment import load_stored_experiment
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.engine.recorder import Recorder
from chaos.engine.registry import load_registry
from chaos.verdicts.judge.context import LiveState, Options
from chaos.verdicts.judge.judge import judge

logger = logging.getLogger(__name__)

STOP_REASON = "stopped on the live page"
_INTERVAL = 1.0  # seconds between two reads of the recording
_SHARE = 0.2  # of one CPU, at most, for judging
_LOCK_INTERVAL = 2.0  # seconds between two reads of the lock
NO_RUN = "no run is active on this cluster"


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run in progress, as its directory describes it."""

    directory: Path
    info: run_directory.RunInfo
    plan: Plan
    experiment: Experiment
    inventory: Inventory


def open_watched(directory: Path) -> WatchedRun:
    """Read what the run has stored at its start. Raises NodefallError, also if other users may have made it."""
    run_directory.refuse_untrusted(directory)
    info = run_directory.load(directory, run_directory.RUN, run_directory.RunInfo)
    try:
        plan = msgspec.json.decode(read_regular(directory / run_directory.PLAN), type=Plan)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{directory / run_directory.PLAN} cannot be read: {error}") from error
    experiment = load_stored_experiment(directory / run_directory.EXPERIMENT)
    try:
        return WatchedRun(directory, info, plan, experiment, Inventory.model_validate(info.inventory))
    except ValidationError as error:
        why = error.errors()[0]["msg"]  # without the values
        raise UsageError(f"{directory / run_directory.RUN} cannot be read: invalid inventory: {why}") from error


def is_going_on(directory: Path) -> bool:
    """Whether a process of this machine has the run open, and there is no result yet."""
    return read_run(directory).state is RunState.RUNNING


@dataclass
class RunFollower:
    """Passes on what a run records, and judges it. ``note`` describes to people what was asked of the run."""

    run: WatchedRun
    watcher: RunWatcher
    clock: Clock
    note: Callable[[str], None]
    _timeline: Timeline = field(default_factory=Timeline)
    _state: LiveState = field(default_factory=LiveState)
    _judge_at: float = 0.0
    _is_stop_wanted: bool = False

    def follow(self) -> None:
        """Follow the run to its end. Raises NodefallError."""
        self.watcher.begin(nodes_by_target(self.run.plan.targets), self._want_stop)
        with ExitStack() as stack:
            tail = stack.enter_context(RecordingTail(self.run.directory / run_directory.RECORDING))
            while True:
                goes_on = is_going_on(self.run.directory)  # before the last entries are read
                self._take(tail)
                if not goes_on:
                    return
                if self._is_stop_wanted:
                    self._is_stop_wanted = False
                    self._stop()
                self.clock.sleep(_INTERVAL)
                self.clock.resume()

    def _take(self, tail: RecordingTail) -> None:
        timeline, before = self._timeline, len(self._timeline.entries)
        for recorded in tail.read():
            entry = decode(recorded, timeline.next_seq())
            timeline.end = max(timeline.end, recorded.t)
            if entry is not None:
                timeline.add(entry)
                self.watcher.entry(entry)
        if len(timeline.entries) > before and time.monotonic() >= self._judge_at:
            begin = time.monotonic()
            self.watcher.judged(provisional(self._judge()))
            end = time.monotonic()
            self._judge_at = end + (end - begin) / _SHARE

    def _judge(self) -> RunResult:
        run, cluster = self.run, self.run.inventory.cluster
        facts = cluster.facts if cluster else {}
        options = Options(bind=nodes_by_target(self.run.plan.targets), namespace=run.plan.namespace, inventory=facts)
        return judge(run.experiment, self._timeline, load_registry(), options, live=True, state=self._state)

    def _want_stop(self) -> None:
        """For any thread: the cluster is asked by the thread that follows."""
        self._is_stop_wanted = True
        self.clock.wake()

    def _stop(self) -> None:
        try:
            with connect_cluster(self.run.inventory) as connection:
                stop_active_run(connection.kube, lock_namespace(connection), self.run.info.run)
        except NodefallError as error:
            logger.warning("the run was not stopped: %s", error.message)
            self.note(f"the run was not stopped: {error.message}")
            self.watcher.begin(nodes_by_target(self.run.plan.targets), self._want_stop)  # it may be asked again


def stop_active_run(kube: KubeApi, namespace: str, run: str) -> None:
    """Ask the run that holds the cluster's lock to stop and undo, as ``nodefall abort`` does. Raises NodefallError."""
    record = read_lock(kube, namespace)
    if record is None or not record.holder or record.annotations.get(RUN_LABEL) != run:
        raise Refused(f"the run {run} does not hold the cluster's lock", hint="see nodefall status")
    request_abort(kube, namespace, STOP_REASON)


@dataclass
class ClusterFollower:
    """Passes on what a cluster does, until :attr:`ended` is set. ``describe`` gets the active run, and a note."""

    connection: ClusterConnection
    watcher: RunWatcher
    describe: Callable[[str, str], None]
    ended: threading.Event = field(default_factory=threading.Event)
    _active: str | None = None  # None: unknown
    _to_stop: str = ""  # the run that someone wants to stop

    def follow(self) -> None:
        """Observe until the end. Raises NodefallError if the cluster's lock cannot be read at first."""
        connection = self.connection
        recorder = Recorder(decode, connection.clock, on_entry=self.watcher.entry)
        observed = ClusterObservers(connection.kube, connection.clock)
        with ExitStack() as stack:
            self._read_lock()
            for observer in observed.watches:
                if observer is not observed.currency:  # its proofs are for verdicts, and cost the API server more
                    stack.callback(observer.stop)
                    observer.start(recorder.emit)
            recorder.on_flood = self._give_up
            while not self.ended.wait(_LOCK_INTERVAL):
                recorder.timeline()  # takes what has arrived out of the recorder's queue
                try:
                    self._read_lock()
                except NodefallError as error:
                    logger.warning("the cluster's lock was not read: %s", error.message)
                    self._active = None  # described again once it is read
                    self.describe("the cluster's lock cannot be read", error.message)

    def _give_up(self, why: str) -> None:
        self.describe("the cluster is no longer shown", why)
        self.ended.set()

    def _read_lock(self) -> None:
        """Read the lock, and stop its holder if someone wants that."""
        record = held_lock(self.connection.kube, lock_namespace(self.connection))
        run = active_run(record)
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


def active_run(held: LeaseRecord | None) -> str:
    """ID of the run that holds the lock, "" for none."""
    return (held.annotations.get(RUN_LABEL) or "unknown") if held else ""
