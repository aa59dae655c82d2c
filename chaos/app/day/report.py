"""The report of a day: a record of the day on each cluster, and what is rendered from all records of one directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from chaos.app.day.document import LoadedEntry, LoadedGameDay
from chaos.app.day.session import DaySession
from chaos.core.errors import NodefallError, UsageError
from chaos.core.files import write_private
from chaos.core.result import RunResult
from chaos.core.store import day_directory, run_directory
from chaos.gameday.state import DayState
from chaos.reports.day.formats import FORMATS
from chaos.reports.day.view import RECORD_VERSION, ClusterRecord, DayView, EntryRecord, is_run_directory, make_view


@contextmanager
def reporting(session: DaySession) -> Iterator[None]:
    """Write the report of the day at the end of the block, however it ends. What cannot be written is only noted."""
    display = session.request.display
    try:
        yield
    finally:
        try:
            page = write_reports(keep_record(session))
            display.note(f"report of the day: {page}")
        except (NodefallError, OSError) as error:
            display.note(f"cannot write the report of the day: {error}")


def keep_record(session: DaySession) -> Path:
    """Write the record of the day on this cluster; its directory. Raises NodefallError, OSError."""
    return store_record(session.request.reports, make_record(session))


def store_record(root: Path, record: ClusterRecord) -> Path:
    """Write a record below ``root``; the directory of its day. Raises NodefallError, OSError."""

    def is_same(path: Path) -> bool:
        with suppress(UsageError):
            stored = run_directory.load(path.parent, path.name, ClusterRecord)
            return (stored.state.created, stored.state.seed) == (record.state.created, record.state.seed)
        return False

    directory = day_directory.choose(root, record.state.gameday, record.state.day, record.cluster, is_same)
    name = day_directory.record_name(record.cluster)
    if (directory / name).exists():
        earlier = run_directory.load(directory, name, ClusterRecord)
        record = replace(record, directories=earlier.directories | record.directories)
    run_directory.save(directory, name, record)
    return directory


def make_record(session: DaySession) -> ClusterRecord:
    """What is known of the day on this cluster now."""
    inventory = session.connection.inventory
    cluster = session.request.cluster or inventory.metadata.name
    record = record_of(session.request.day, cluster, session.state, session.now())
    simulated = bool(inventory.lab or (inventory.cluster and inventory.cluster.simulated))
    return replace(record, simulated=simulated, directories=_run_directories(session))


def record_of(day: LoadedGameDay, cluster: str, state: DayState, now: float) -> ClusterRecord:
    """The record of a day on a real cluster, of whose runs no directory is here."""
    spec = day.document.spec
    return ClusterRecord(
        title=spec.title,
        owner=spec.owner,
        cluster=cluster,
        simulated=False,
        written=now,
        entries=tuple(map(_entry, day.entries)),
        state=state,
        window=spec.window.model_dump(mode="json", by_alias=True, exclude_none=True) if spec.window else None,
        schedule=spec.schedule.cron if spec.schedule else "",
        gates=tuple(map(str, spec.gates)),
        abort=tuple(each.name or each.assert_ or "order" for each in spec.abort),
    )


def _entry(item: LoadedEntry) -> EntryRecord:
    experiment = item.loaded.experiment
    expectations = (each.name or each.assert_ or "order" for each in experiment.spec.hypothesis)
    gates = tuple(map(str, item.entry.gates))
    return EntryRecord(item.name, experiment.metadata.name, experiment.spec.title, tuple(expectations), gates)


def _run_directories(session: DaySession) -> dict[str, str]:
    """Those of the runs of the day that are here, as EXPERIMENT/STAMP, by run ID."""
    runs = {run.run for run in session.state.runs if run.run}
    found = {}
    for experiment in {item.loaded.experiment.metadata.name for item in session.entries.values()}:
        for run, directory in run_directory.directories_by_id(session.request.reports, experiment).items():
            if run in runs:
                found[run] = f"{experiment}/{directory.name}"
    return found


def load_day(directory: Path) -> DayView:
    """The day whose records are in ``directory``, with the results of its runs. Raises UsageError."""
    paths = day_directory.records(directory)
    if not paths:
        raise UsageError(f"no game day in {directory}", hint="give its directory, GAMEDAY/DAY or last")
    records = [run_directory.load(path.parent, path.name, ClusterRecord) for path in paths]
    for path, record in zip(paths, records, strict=True):
        if record.version != RECORD_VERSION:
            raise UsageError(f"{path}: unknown version {record.version}", hint="use a newer nodefall")
    root = directory.resolve().parents[2] if len(directory.resolve().parents) > 2 else directory
    results: dict[str, RunResult] = {}
    for record in records:
        for run, name in record.directories.items():
            with suppress(UsageError):  # removed, or the run was killed before its result
                if is_run_directory(name):
                    results[run] = run_directory.load_result(root / name)
    try:
        return make_view(records, results)
    except ValueError as error:
        raise UsageError(f"{directory}: invalid record of a game day: {error}") from error


def write_reports(directory: Path) -> Path:
    """Render all formats into the directory of a day; the path of the page. Raises NodefallError.

    The template for the review is only written once: from then on it belongs to those who write in it.
    """
    view = load_day(directory)
    for each in FORMATS.values():
        path = directory / each.file
        if each.for_people and (path.exists() or view.unfinished):
            continue
        try:
            write_private(path, each.render(view).encode())
        except OSError as error:
            hint = "choose one format with --format, and another file with --out"
            raise UsageError(f"cannot write {path}: {error.strerror}", hint=hint) from error
    return directory / FORMATS["html"].file
