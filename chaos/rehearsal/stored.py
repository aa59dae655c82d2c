"""A rehearsal with a run directory: the files of any run, for all commands that read one."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from chaos.app.run.experiment import carry_out, new_run_id
from chaos.app.run.results import Run, close_recording, create_directory, write_reports
from chaos.app.wiring.lock import own_identity
from chaos.app.wiring.logs import RunLog, run_log
from chaos.core.cluster_view import ClusterView
from chaos.core.decode import decode
from chaos.core.plan import Plan
from chaos.core.ports import Progress
from chaos.core.store.journal import Journal
from chaos.engine.load import LoadedExperiment
from chaos.engine.progress import LoggedProgress, Unwatched
from chaos.engine.recorder import Recorder
from chaos.lab.facade import LabSpec
from chaos.rehearsal.connection import DirectConnection, connect_directly
from chaos.rehearsal.processes import rare_collections
from chaos.rehearsal.run import RehearsalOptions, make_session, plan_rehearsal, refuse_outside_world

logger = logging.getLogger(__name__)


def rehearse_and_store(
    loaded: LoadedExperiment, lab_spec: LabSpec, seed: int, reports: Path, options: RehearsalOptions
) -> Run:
    """As :func:`chaos.rehearsal.run.rehearse_once`, with a new directory below ``reports``.

    In the main thread, the first SIGINT or SIGTERM stops the run, which undoes and returns that ``exit_code``. If the
    process is killed, ``nodefall undo`` finds that the cluster is gone with it. ``options.recording`` is a copy.
    """
    refuse_outside_world(loaded)
    with run_log() as log:
        progress = LoggedProgress(options.progress)
        with rare_collections():
            spec = msgspec.structs.replace(lab_spec, seed=seed)
            with connect_directly(spec, options.settings, options.populate) as connection:
                progress.phase("plan")
                planned = plan_rehearsal(connection, loaded, seed, new_run_id(loaded))
                finished, failure = _execute(connection, loaded, planned, reports, progress, log)
        return write_reports(finished, options.recording, failure)


def _execute(
    connection: DirectConnection,
    loaded: LoadedExperiment,
    planned: tuple[Plan, ClusterView],
    reports: Path,
    progress: Progress,
    log: RunLog,
) -> tuple[Run, OSError | None]:
    """The run, and what failed of its recording."""
    ports, (plan, _), identity = replace(connection.ports, lab_pid=os.getpid()), planned, own_identity(planned[0].run)
    directory, writer = create_directory(reports, loaded, ports, plan, identity.holder)
    with ExitStack() as stack:
        log.open(directory)
        logger.info("run %s of %s, simulated in this process", plan.run, plan.experiment)
        stack.callback(close_recording, writer)
        journal = stack.enter_context(Journal(directory))
        recorder = Recorder(decode, ports.clock, writer.write)
        session = make_session(connection, loaded, planned, journal, recorder, progress, identity)
        return carry_out(session, recorder, Unwatched(), directory, writer)
