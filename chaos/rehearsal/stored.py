"""A rehearsal with a run directory: the files of any run, for all commands that read one."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from chaos.app.cluster_lock import own_identity
from chaos.app.interrupts import stop_on_signal
from chaos.app.load import LoadedExperiment
from chaos.app.logs import RunLog, run_log
from chaos.app.pending_undo_guard import guard_pending_undo
from chaos.app.plan import new_run_id
from chaos.app.progress_log import LoggedProgress
from chaos.app.run import stop_run
from chaos.app.run_files import Run, close_recording, create_directory, write_reports
from chaos.app.run_setup import JudgeFunc, LiveJudge, RunSetup
from chaos.core.decode import decode
from chaos.core.registry import PluginRegistry
from chaos.core.store.journal import Journal
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.lab.facade import LabSpec
from chaos.rehearsal.connection import connect_directly
from chaos.rehearsal.garbage import rare_collections
from chaos.rehearsal.lock import SoleHolder
from chaos.rehearsal.run import RehearsalOptions, plan_rehearsal, refuse_outside_world

logger = logging.getLogger(__name__)


def rehearse_and_store(
    loaded: LoadedExperiment,
    registry: PluginRegistry,
    lab_spec: LabSpec,
    seed: int,
    reports: Path,
    options: RehearsalOptions,
) -> Run:
    """As :func:`chaos.rehearsal.run.rehearse_once`, with a new directory below ``reports``.

    In the main thread, the first SIGINT or SIGTERM stops the run, which undoes and returns that ``exit_code``. If the
    process is killed, ``nodefall undo`` finds that the cluster is gone with it. ``options.recording`` is a copy.
    """
    refuse_outside_world(loaded)
    with run_log() as log:
        logged = replace(options, progress=LoggedProgress(options.progress))
        with ExitStack() as stack:
            stack.enter_context(rare_collections())
            spec = msgspec.structs.replace(lab_spec, seed=seed)
            connection = stack.enter_context(connect_directly(spec, options.settings, options.populate))
            logged.progress.phase("plan")
            setup = plan_rehearsal(loaded, registry, connection, seed, new_run_id(loaded))
            holder = SoleHolder(setup.lock.namespace, own_identity(setup.plan.run))
            setup = replace(setup, lock=holder, judge=_at_every_tick)
            finished, failure = _execute(setup, reports, logged, log)
        return write_reports(finished, options.recording, failure)


def _at_every_tick(live: LiveJudge) -> JudgeFunc:
    """Somebody watches."""
    return live.judge


def _execute(setup: RunSetup, reports: Path, options: RehearsalOptions, log: RunLog) -> tuple[Run, OSError | None]:
    """The run, and what failed of its recording."""
    connection = replace(setup.connection, lab_pid=os.getpid())
    holder = setup.lock.identity.holder
    directory, writer = create_directory(reports, setup.loaded, connection, setup.plan, holder)
    with ExitStack() as stack:
        log.open(directory)
        logger.info("run %s of %s, simulated in this process", setup.plan.run, setup.plan.experiment)
        stack.callback(close_recording, writer)
        journal = stack.enter_context(Journal(directory))
        recorder = Recorder(decode, connection.clock, writer.write)
        context = setup.context(journal, recorder, options.progress)
        with stop_on_signal(partial(stop_run, context.stop, connection.clock)), guard_pending_undo(directory):
            result = execute(context)
            timeline = recorder.timeline()
            options.progress.phase("report")  # what a view's key to stop does ends here, before the signal handler
        failure = close_recording(writer)
    return Run(result, timeline, directory), recorder.failure or failure
