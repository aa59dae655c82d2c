"""Rehearses experiments from the command line, and compares runs; prints and writes the results."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from chaos.cli.output import echo, echo_document, echo_encodable, echo_progress, write
from chaos.cluster.snapshot.whatif.changes import CHANGES
from chaos.core.errors import BadInput, Problem, Refused, UsageError
from chaos.core.files import bundled_path
from chaos.core.inventory import Inventory
from chaos.core.text import align_columns, escape_control
from chaos.documents.document import kind_of_document, read_document
from chaos.documents.inventory import load_inventory
from chaos.engine.load import LoadedExperiment, load
from chaos.rehearsal.comparisons import CompareOptions, compare_all
from chaos.rehearsal.copies import Source, lab_source, parse_changes, snapshot_source
from chaos.rehearsal.forecast.document import Rehearsal, render_json, suite_text
from chaos.rehearsal.forecast.formats import rehearsal_markdown, rehearsal_page, rehearsal_text
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.many import Part, Rehearsals, rehearse_suite, without_limits
from chaos.rehearsal.rehearsal import Request, cores, rehearse
from chaos.reports.comparison.comparison import Comparison
from chaos.reports.comparison.document import comparison_document
from chaos.reports.comparison.formats import comparison_markdown, comparison_page, comparison_text
from chaos.verdicts.outcome.prediction import Prediction, dump_prediction

_PARTS = 10  # lines where stderr is not a terminal
_LAB = "nodefall.dev/lab"
_DEFAULT_LAB = "lab.yaml"
_SEEDS = 20
_SUFFIXES = (".yaml", ".yml", ".json")


class RehearsalProgress:
    """``total``: number of runs. Write errors are ignored."""

    def __init__(self, total: int, *, is_shown: bool) -> None:
        self._total, self._is_shown = total, is_shown
        self._is_terminal = sys.stderr.isatty()
        self._endings: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._print(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown and self._is_terminal:
            with suppress(OSError):
                click.echo(err=True)

    def expect(self, runs: int) -> None:
        """So many more runs follow."""
        self._total += runs

    def add(self, sample: Sample) -> None:
        """Count a run that has ended."""
        self._endings[sample.ending] += 1
        done = self._endings.total()
        if self._is_terminal or done == self._total or done % max(1, self._total // _PARTS) == 0:
            self._print(done)

    def _print(self, done: int) -> None:
        if not self._is_shown or (not done and not self._is_terminal):
            return
        counts = ", ".join(f"{count} {ending}" for ending, count in sorted(self._endings.items()))
        text = f"{done} of {self._total} runs" + (f": {counts}" if counts else "")
        with suppress(OSError):
            click.echo(f"\r{text}\x1b[K" if self._is_terminal else text, err=True, nl=not self._is_terminal)


def lab_of(loaded: LoadedExperiment, inventory: Inventory | None) -> tuple[Source, str, Inventory]:
    """The cluster of the inventory, or else the one that the experiment names; its short name, and the settings.

    Raises Refused.
    """
    if inventory is not None:
        if inventory.lab is None:
            raise Refused(
                f"nothing to rehearse on: the inventory {inventory.metadata.name} describes a real cluster",
                hint="take a snapshot of it with nodefall snapshot, and give it with --snapshot",
            )
        name = inventory.metadata.name
        return lab_source(inventory.lab, f"the simulated cluster of the inventory {name}"), name, inventory
    name = loaded.experiment.metadata.annotations.get(_LAB, _DEFAULT_LAB)
    path = bundled_path(f"hosts/{Path(name).name}")
    own = load_inventory(path)
    assert own.lab is not None  # noqa: S101 - the bundled inventories of labs have one
    whose = "that the experiment names" if _LAB in loaded.experiment.metadata.annotations else "that is the default"
    source = lab_source(own.lab, f"the simulated cluster {whose}, hosts/{path.name}")
    return source, path.name, without_limits(own.protected)


@dataclass(frozen=True, slots=True)
class RehearseOptions:
    """The options of the command. ``seeds``: their number, from ``seed`` on; ``each``: node, zone, or ""."""

    experiments: tuple[Path, ...]
    snapshot: Path | None
    seeds: int | None
    seed: int
    changes: tuple[str, ...]
    each: str
    inventory: str | None
    out: Path | None
    jobs: int | None


def rehearse_and_report(options: RehearseOptions, *, quiet: bool, as_json: bool) -> int:
    """Rehearse, write the reports, and print the result on stdout; the exit code. Raises NodefallError."""
    if not options.experiments:
        raise UsageError("missing argument: give an EXPERIMENT", hint="see nodefall rehearse --help")
    if len(options.experiments) > 1 or options.experiments[0].is_dir():
        return _rehearse_several(options, quiet=quiet, as_json=as_json)
    request = _request(options)
    if options.out:
        make_directory(options.out)
    if not quiet and not options.snapshot:
        echo_progress(escape_control(f"no --snapshot: rehearsing on {request.rehearsals.source.name}"))
    with RehearsalProgress(request.total, is_shown=not quiet) as progress:
        rehearsals = replace(request.rehearsals, report=progress.add)
        rehearsal, prediction = rehearse(replace(request, rehearsals=rehearsals))
    if options.out:
        _write_reports(options.out, rehearsal, prediction)
    if as_json:
        return echo_document(render_json(rehearsal), rehearsal.exit_code)
    echo_encodable(*rehearsal_text(rehearsal))
    if options.out:
        echo(f"report: {options.out / 'rehearsal.html'}")
    return rehearsal.exit_code


def _rehearse_several(options: RehearseOptions, *, quiet: bool, as_json: bool) -> int:
    given = {"--snapshot": options.snapshot, "--what-if": options.changes, "--out": options.out}
    for option, value in {**given, f"--each-{options.each}": options.each}.items():
        if value:
            raise UsageError(f"{option} cannot be combined with several experiments", hint="give one experiment")
    seeds = range(options.seed, options.seed + (options.seeds or 1))
    return rehearse_several(options.experiments, seeds, options.inventory, options.jobs, quiet=quiet, as_json=as_json)


def list_changes() -> None:
    """Print the keys of ``--what-if``."""
    echo(*align_columns([(f"{kind.key}={kind.syntax}", kind.summary) for kind in CHANGES.values()]))


def _request(options: RehearseOptions) -> Request:
    loaded = load(options.experiments[0])
    inventory = load_inventory(Path(options.inventory)) if options.inventory else None
    changes = parse_changes(options.changes)
    if changes and not options.snapshot:
        raise UsageError("--what-if needs --snapshot: it changes a copy", hint="take one with nodefall snapshot")
    if options.snapshot:
        source = snapshot_source(options.snapshot, changes)
        without = snapshot_source(options.snapshot) if changes else None
    else:
        (source, _, inventory), without = lab_of(loaded, inventory), None
    jobs = options.jobs or cores()
    rehearsals = Rehearsals(loaded, source, jobs, inventory)
    seeds = options.seeds or (1 if options.each else _SEEDS)
    return Request(rehearsals, tuple(range(options.seed, options.seed + seeds)), without, options.each)


def make_directory(out: Path) -> None:
    """Create the directory of the results, unless it exists. Raises UsageError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}", hint="give another directory") from error


def _write_reports(out: Path, rehearsal: Rehearsal, prediction: Prediction | None) -> None:
    write(out / "rehearsal.json", render_json(rehearsal), private=True)
    write(out / "rehearsal.md", rehearsal_markdown(rehearsal), private=True)
    write(out / "rehearsal.html", rehearsal_page(rehearsal), private=True)
    if prediction:
        write(out / "prediction.json", dump_prediction(prediction).decode(), private=True)


def rehearse_several(
    paths: Sequence[Path], seeds: Sequence[int], inventory: str | None, jobs: int | None, *, quiet: bool, as_json: bool
) -> int:
    """Run every experiment of ``paths``, files and directories, with each seed; the exit code.

    Raises BadInput with the problems of all files, and UsageError for a directory without experiments.
    """
    settings = load_inventory(Path(inventory)) if inventory else None
    parts = []
    for loaded in _load_all([file for path in paths for file in _files(path)]):
        source, lab, allowed = lab_of(loaded, settings)
        parts.append(Part(Rehearsals(loaded, source, 1, allowed), lab))
    with RehearsalProgress(len(parts) * len(seeds), is_shown=not quiet) as progress:
        suite = rehearse_suite(parts, seeds, jobs or cores(), progress.add)
    if as_json:
        return echo_document(render_json(suite), suite.exit_code)
    echo_encodable(*suite_text(suite))
    return suite.exit_code


def _files(path: Path) -> list[Path]:
    """The file, or the experiments of the directory, by name. Raises UsageError, BadInput."""
    if not path.is_dir():
        return [path]
    try:
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="give another directory") from error
    found = [file for file in files if kind_of_document(file, read_document(file)) == "Experiment"]
    if not found:
        raise UsageError(f"{path}: no experiment in this directory", hint="give files or another directory")
    return found


def _load_all(files: Sequence[Path]) -> list[LoadedExperiment]:
    loaded, problems = [], list[Problem]()
    for file in files:
        try:
            loaded.append(load(file))
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(problems)
    return loaded


def compare_and_report(options: CompareOptions, out: Path | None, *, quiet: bool, as_json: bool) -> int:
    """Compare, write the reports, and print the result on stdout; the exit code. Raises NodefallError."""
    _check_sources(options)
    with RehearsalProgress(len(options.seeds), is_shown=not quiet and options.snapshot is not None) as progress:
        comparisons = compare_all(replace(options, report=progress.add))
    code = int(max(each.exit_code for each in comparisons))
    document = json.dumps(comparison_document(comparisons), indent=2) + "\n"
    if out:
        _write_comparisons(out, comparisons, document)
    if as_json:
        return echo_document(document, code)
    echo_encodable(*comparison_text(comparisons))
    if out:
        echo(f"report: {out / 'comparison.html'}")
    return code


def _check_sources(options: CompareOptions) -> None:
    """Raises UsageError for more than one source of comparison, or for one with several runs."""
    sources = {"--snapshot": options.snapshot, "--with": options.other, "--prediction": options.prediction}
    given = [name for name, value in sources.items() if value]
    if len(given) > 1:
        raise UsageError(f"{given[0]} cannot be combined with {given[1]}")
    if given and len(options.names) > 1:
        raise UsageError(f"{given[0]} is for a single RUN, not for {len(options.names)}")


def _write_comparisons(out: Path, comparisons: Sequence[Comparison], document: str) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}", hint="give another directory") from error
    write(out / "comparison.json", document, private=True)
    write(out / "comparison.md", comparison_markdown(comparisons), private=True)
    write(out / "comparison.html", comparison_page(comparisons), private=True)
