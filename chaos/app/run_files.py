"""The directory of a run: what it begins with, and its reports at the end."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from chaos import __version__
from chaos.app.cluster_lock import cluster_identity
from chaos.app.connect import ClusterConnection
from chaos.app.judge import JudgedRun
from chaos.app.load import LoadedExperiment
from chaos.core.errors import Exit, Refused
from chaos.core.files import write_private
from chaos.core.plan import Plan
from chaos.core.store import run_directory
from chaos.core.store.recording_writer import RecordingWriter
from chaos.core.verdict import Status

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Run(JudgedRun):
    """A finished run and its directory."""

    directory: Path

    @property
    def report(self) -> Path:
        """Path of the HTML report."""
        return self.directory / "report.html"


def create_directory(
    reports: Path, loaded: LoadedExperiment, connection: ClusterConnection, planned: Plan, holder: str
) -> tuple[Path, RecordingWriter]:
    """The run directory with the inputs of undo: the inventory, the plan, the experiment. Raises Refused."""
    directory = run_directory.create(reports, planned.experiment, connection.clock.now())
    info = run_directory.RunInfo(
        planned.run,
        planned.experiment,
        planned.created,
        connection.inventory.model_dump(mode="json", by_alias=True, exclude_none=True),
        connection.lab_pid,
        connection.uid,
        holder,
        __version__,
        cluster_identity(connection),
    )
    try:
        run_directory.save(directory, run_directory.RUN, info)
        run_directory.save(directory, run_directory.PLAN, planned)
        write_private(directory / run_directory.EXPERIMENT, loaded.document)
        return directory, RecordingWriter(directory / run_directory.RECORDING)
    except OSError as error:
        raise Refused(f"cannot write {error.filename or directory}: {error.strerror}") from error


def close_recording(writer: RecordingWriter) -> OSError | None:
    """Close it; the error if that fails."""
    try:
        writer.close()
    except OSError as error:
        return error
    return None


def write_reports(run: Run, record: Path | None, failure: OSError | None) -> Run:
    """Write the reports. Whatever could not be written becomes a note, and the run then counts as inconclusive."""
    if failure:
        run = _with_note(run, f"the recording is incomplete: {failure}")
    try:
        run.write(run.directory)
    except OSError as error:
        run = _with_note(run, f"cannot write the report: {error}")
    if record:
        try:
            shutil.copyfile(run.directory / run_directory.RECORDING, record)
        except OSError as error:
            run = _with_note(run, f"--record: cannot copy the recording: {error}")
    return run


def _with_note(run: Run, note: str) -> Run:
    logger.error("%s", note)
    result = structs.replace(run.result, notes=(*run.result.notes, note))
    if result.exit_code == Exit.HELD:
        code, headline = int(Exit.INCONCLUSIVE), f"all expectations held, but {note}"
        result = structs.replace(result, exit_code=code, status=Status.INCONCLUSIVE, headline=headline)
        result = structs.replace(result, tally="", sentence="")
    return replace(run, result=result)
