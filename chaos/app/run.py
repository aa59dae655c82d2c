"""Runs an experiment on an open cluster, from the plan to the reports."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from chaos.app.cluster_lock import hold_lock, hold_machine_lock
from chaos.app.confirmation import ClusterInfo, Confirm, nodes_taken_down
from chaos.app.connect import ClusterConnection, refuse_before_side_effects
from chaos.app.interrupts import stop_on_signal
from chaos.app.inventory_secrets import journal_signer
from chaos.app.load import LoadedExperiment
from chaos.app.logs import RunLog, run_log
from chaos.app.null_progress import Unwatched
from chaos.app.pending_undo import refuse_pending_undo, remove_finished_runs
from chaos.app.pending_undo_guard import guard_pending_undo
from chaos.app.plan import new_run_id, plan
from chaos.app.progress_log import LoggedProgress
from chaos.app.run_files import Run, close_recording, create_directory, write_reports
from chaos.app.run_setup import RunSetup
from chaos.core.cluster_view import ClusterView
from chaos.core.decode import decode
from chaos.core.plan import Plan, nodes_by_target
from chaos.core.ports import Clock, Progress, RunWatcher
from chaos.core.registry import PluginRegistry
from chaos.core.store.journal import Journal
from chaos.engine.planning.stale import check_age, check_unchanged
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.engine.stop import StopRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunHooks:
    """What a caller such as a game day has to do with a run. ``run_id``: the run's ID, "" for a new one.

    ``on_begin`` is called with the run's directory and the way to stop it, before the first side effect on the cluster;
    ``before_fault`` once before the first step: it raises NodefallError if there must be none. ``awaits_lock``: wait
    for the cluster's lock as long as its holder may be dead, instead of refusing the run at once. ``watcher`` is shown
    the run while it goes on.
    """

    run_id: str = ""
    awaits_lock: bool = False
    on_begin: Callable[[Path, StopRequest], None] = lambda _directory, _stop: None
    before_fault: Callable[[], None] = lambda: None
    watcher: RunWatcher = field(default_factory=Unwatched)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of one run. ``plan``: a saved plan to execute unchanged, instead of making a new one."""

    loaded: LoadedExperiment
    registry: PluginRegistry
    reports: Path
    confirm: Confirm
    seed: int | None = None
    record: Path | None = None
    plan: Plan | None = None
    anyway: bool = False
    hooks: RunHooks = RunHooks()

    @property
    def overrides_preflight(self) -> bool:
        """Whether refusals of preflight that are not final are overridden."""
        return self.anyway or bool(self.plan and self.plan.overridden)


def run(request: RunRequest, connection: ClusterConnection, progress: Progress) -> Run:
    """Plan, inject, observe, roll back, judge and report.

    Raises NodefallError if the run ends before any side effect, and UndoPending if the rollback did not finish.
    """
    with run_log() as log:
        finished, failure = _run_locked(request, connection, LoggedProgress(progress), log)
        return write_reports(finished, request.record, failure)


def _run_locked(
    request: RunRequest, connection: ClusterConnection, progress: Progress, log: RunLog
) -> tuple[Run, OSError | None]:
    """The run, with the locks of this machine and of the cluster held; and what failed of its recording."""
    with ExitStack() as stack:
        machine = stack.enter_context(hold_machine_lock(connection))
        stack.enter_context(connection.clock.participant())
        run_id = request.plan.run if request.plan else request.hooks.run_id or new_run_id(request.loaded)
        with refuse_before_side_effects():
            on_wait = partial(_before_lock_wait, request, connection, progress)
            awaits = request.hooks.awaits_lock
            connection.label_helpers(run_id)
            lock = stack.enter_context(hold_lock(connection, machine, run_id, on_wait, wait_for_holder=awaits))
            remove_finished_runs(connection, request.reports, progress.note)
            signer = journal_signer(connection)
            progress.phase("plan")
            planned, view = _confirmed_plan(request, connection, run_id)
        directory, writer = create_directory(request.reports, request.loaded, connection, planned, lock.identity.holder)
        log.open(directory)
        logger.info("run %s of %s on %s", planned.run, planned.experiment, connection.kube.server)
        stack.callback(close_recording, writer)
        journal = stack.enter_context(Journal(directory))
        hooks, watcher = request.hooks, request.hooks.watcher
        recorder = Recorder(decode, connection.clock, writer.write, watcher.entry)
        setup = RunSetup(
            request.loaded, request.registry, connection, planned, view, lock, signer, hooks.before_fault, watcher
        )
        context = setup.context(journal, recorder, progress)
        lock.on_abort = context.stop.request
        lock.on_crash = context.stop.report_crash
        lock.on_loss = context.stop.report_loss
        stop = partial(stop_run, context.stop, connection.clock)
        with stop_on_signal(stop), guard_pending_undo(directory):
            hooks.on_begin(directory, context.stop)
            watcher.begin(nodes_by_target(planned.targets), partial(stop, signal.SIGINT))
            result = execute(context)
            timeline = recorder.timeline()
            progress.phase("report")  # what a view's key to stop does ends here, before the signal handler
        failure = close_recording(writer)
    return Run(result, timeline, directory), recorder.failure or failure


def stop_run(request: StopRequest, clock: Clock, number: int) -> None:
    """Stop the run on the first signal."""
    if request.signum is None:
        request.signum = number
        clock.wake()


def _before_lock_wait(request: RunRequest, connection: ClusterConnection, progress: Progress, reason: str) -> None:
    """Waiting for the lock of a holder that has died is in vain if it left a pending undo. Raises Refused."""
    refuse_pending_undo(connection, request.reports)
    progress.note(reason)


def _confirmed_plan(request: RunRequest, connection: ClusterConnection, run_id: str) -> tuple[Plan, ClusterView]:
    """A new plan; one that was saved must not differ from it, nor be too old. Raises Refused."""
    anyway = request.overrides_preflight
    planned, view = plan(
        request.loaded, connection, request.registry, request.seed, run_id, reports=request.reports, anyway=anyway
    )
    if request.plan:
        check_unchanged(request.plan, planned)
        check_age(request.plan, connection.clock.now())
    info = ClusterInfo(connection.inventory, connection.kube.server, connection.uid, connection.version)
    request.confirm(planned, info, nodes_taken_down(planned, connection, request.loaded.experiment))
    check_age(planned, connection.clock.now())
    return planned, view
