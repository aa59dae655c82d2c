"""``nodefall compare``: runs and recordings beside what was predicted, or beside each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import Struct

from chaos.core.errors import UsageError, bad_input
from chaos.core.files import missing_file_hint, read_regular
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.store import run_directory
from chaos.core.store.recording import build_timeline, read_recording
from chaos.engine.load import load
from chaos.lab.facade import ReplayError
from chaos.rehearsal.copies import boot_times, expected_of_recording, snapshot_source, with_boot_times
from chaos.rehearsal.many import Rehearsals, ReportSample
from chaos.rehearsal.rehearsal import predict
from chaos.reports.comparison.comparison import Comparison, compare
from chaos.reports.comparison.side import (
    Expected,
    NotComparableError,
    Side,
    check_comparable,
    expected_of_prediction,
    expected_of_sides,
    side_of,
)
from chaos.verdicts.outcome.prediction import parse_prediction


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """``names``: run directories, runs below ``reports``, or recordings, the oldest first.

    At most one of ``snapshot``, ``other`` (a name, too) and ``prediction``, then of one name. ``jobs``: processes at
    a time, None for one on each core. ``report`` is called after each rehearsal.
    """

    names: tuple[str, ...]
    reports: Path
    snapshot: Path | None = None
    other: str = ""
    prediction: Path | None = None
    seeds: tuple[int, ...] = tuple(range(1, 21))
    jobs: int | None = None
    other_victims: bool = False
    report: ReportSample = lambda _: None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """``directory``: of the run, None for a recording alone."""

    side: Side
    entries: Sequence[RecordingEntry]
    directory: Path | None


class _Planned(Struct, frozen=True):
    """What is read of plan.json. ``source``: path of the experiment's file."""

    source: str = ""


def compare_all(options: CompareOptions) -> list[Comparison]:
    """One comparison, or for several names one for each but the first, with the runs before it.

    Raises NotComparableError, BadInput, UsageError, and NodefallError of a rehearsal.
    """
    loaded = [_load(name, options.reports) for name in options.names]
    if len(loaded) == 1:
        only = loaded[0]
        expected = _expected(only, options)
        check_comparable(only.side, expected, other_victims=options.other_victims)
        return [compare(only.side, expected)]
    sides = [each.side for each in loaded]
    found = []
    for index, side in enumerate(sides[1:], 1):
        expected = expected_of_sides(sides[:index])
        check_comparable(side, expected, other_victims=options.other_victims)
        found.append(compare(side, expected))
    return found


def _expected(loaded: _Loaded, options: CompareOptions) -> Expected:
    if options.snapshot:
        return _rehearsed(loaded, options.snapshot, options)
    if options.other:
        return expected_of_sides([_load(options.other, options.reports).side])
    if options.prediction:
        path = options.prediction
        try:
            data = read_regular(path)
        except OSError as error:
            hint = missing_file_hint(path) if not path.exists() else ""
            raise bad_input(str(path), f"cannot be read: {error.strerror}", hint) from error
        return expected_of_prediction(parse_prediction(data, str(path)), path.name)
    try:
        return expected_of_recording(loaded.side, loaded.entries, options.seeds)
    except ReplayError as error:
        raise NotComparableError(f"{loaded.side.name} cannot be compared with its first lists: {error}") from error


def _rehearsed(loaded: _Loaded, snapshot: Path, options: CompareOptions) -> Expected:
    """The experiment of the run on copies of the cluster, with the victims that the run had."""
    side, directory = loaded.side, loaded.directory
    if directory is None or not (directory / run_directory.EXPERIMENT).is_file():
        raise NotComparableError(
            f"{side.name} cannot be rehearsed: it has no {run_directory.EXPERIMENT}",
            hint="give the directory of a run, or leave out --snapshot: then the recording's own first lists are used",
        )
    experiment = load(_experiment_file(directory, side.name))
    try:
        boots = boot_times(loaded.entries, [node for nodes in side.targets.values() for node in nodes])
    except ReplayError as error:
        raise NotComparableError(f"{side.name} does not show how long its machines boot: {error}") from error
    source = with_boot_times(snapshot_source(snapshot), boots)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    rehearsals = Rehearsals(experiment, source, jobs, report=options.report)
    samples = rehearsals.over_seeds(options.seeds, side.targets)
    if not any(sample.outcome for sample in samples):
        why = next((sample.refused for sample in samples if sample.refused), "no rehearsal came to its fault")
        raise NotComparableError(f"{side.name} cannot be rehearsed on {snapshot.name}: {why}")
    expected = expected_of_prediction(predict(experiment, source, samples), snapshot.name)
    taken = tuple(f"{node} boots in {seconds:.1f} s, as in {side.name}" for node, seconds in boots.items())
    return replace(expected, notes=expected.notes + taken)


def _experiment_file(directory: Path, name: str) -> Path:
    """The copy if it has its workload; else the file that the run was of, beside its manifests, or the copy.

    Raises NotComparableError.
    """
    copy = directory / run_directory.EXPERIMENT
    if run_directory.stored_workload(copy):
        return copy
    try:
        source = Path(run_directory.load(directory, run_directory.PLAN, _Planned).source)
        is_there = source.is_file()
        is_same = is_there and read_regular(source) == read_regular(copy)
    except (UsageError, OSError):
        return copy
    if is_there and not is_same:
        raise NotComparableError(
            f"{name} cannot be rehearsed: {source} has changed since the run",
            hint="restore the file, or compare with a stored prediction",
        )
    return source if is_there else copy


def _load(name: str, reports: Path) -> _Loaded:
    path = Path(name)
    directory = None if path.is_file() else run_directory.find(reports, name)
    recording = directory / run_directory.RECORDING if directory else path
    if not recording.is_file():
        raise bad_input(str(recording), "file not found", "give a run directory, or a recording (*.jsonl.gz)")
    entries = list(read_recording(recording))
    title = f"{directory.parent.name}/{directory.name}" if directory else path.name
    return _Loaded(side_of(title, build_timeline(entries), _result(directory)), entries, directory)


def _result(directory: Path | None) -> RunResult | None:
    """The verdicts of a run, None if it has none: its measures can be compared without."""
    if directory is None:
        return None
    with suppress(UsageError):
        return run_directory.load_result(directory)
    return None
