"""Rehearses several experiments from the command line, each on its own lab, and prints their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaos.cli.output import echo_encodable
from chaos.cli.rehearse.labs import lab_of
from chaos.cli.rehearse.progress import RehearsalProgress
from chaos.cli.run.run_impl import echo_document
from chaos.core.errors import BadInput, Problem, UsageError
from chaos.documents.document import kind_of_document, read_document
from chaos.documents.inventory import load_inventory
from chaos.engine.load import LoadedExperiment, load
from chaos.rehearsal.forecast.suite import render_suite, suite_text
from chaos.rehearsal.many import Part, Rehearsals, rehearse_suite
from chaos.rehearsal.rehearsal import cores

_SUFFIXES = (".yaml", ".yml", ".json")


def rehearse_several(
    paths: Sequence[Path], seeds: Sequence[int], inventory: str | None, jobs: int | None, *, quiet: bool, as_json: bool
) -> int:
    """Run every experiment of ``paths``, files and directories, with each seed; the exit code.

    Raises BadInput with the problems of all files, and UsageError for a directory without experiments.
    """
    settings = load_inventory(Path(inventory)) if inventory else None
    parts = []
    for loaded in _load_all([file for path in paths for file in _files(path)]):
        source, lab = lab_of(loaded, settings)
        parts.append(Part(Rehearsals(loaded, source, 1, settings), lab))
    with RehearsalProgress(len(parts) * len(seeds), is_shown=not quiet) as progress:
        suite = rehearse_suite(parts, seeds, jobs or cores(), progress.add)
    if as_json:
        return echo_document(render_suite(suite), suite.exit_code)
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
