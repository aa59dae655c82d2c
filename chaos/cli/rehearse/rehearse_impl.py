"""Rehearses from the command line, and prints and writes the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from chaos.cli.output import echo, echo_encodable, echo_progress, write
from chaos.cli.rehearse.labs import lab_of
from chaos.cli.rehearse.progress import RehearsalProgress
from chaos.cli.rehearse.suite_impl import rehearse_several
from chaos.cli.run.run_impl import echo_document
from chaos.cluster.snapshot.whatif.changes import CHANGES
from chaos.core.errors import UsageError
from chaos.core.text import align_columns, escape_control
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from chaos.rehearsal.copies import parse_changes, snapshot_source
from chaos.rehearsal.forecast.document import Rehearsal, render_json
from chaos.rehearsal.forecast.formats import rehearsal_markdown, rehearsal_page, rehearsal_text
from chaos.rehearsal.many import Rehearsals
from chaos.rehearsal.rehearsal import Request, cores, rehearse
from chaos.verdicts.outcome.prediction import Prediction, dump_prediction

_SEEDS = 20


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
        _make_directory(options.out)
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
        (source, _), without = lab_of(loaded, inventory), None
    jobs = options.jobs or cores()
    rehearsals = Rehearsals(loaded, source, jobs, inventory)
    seeds = options.seeds or (1 if options.each else _SEEDS)
    return Request(rehearsals, tuple(range(options.seed, options.seed + seeds)), without, options.each)


def _make_directory(out: Path) -> None:
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
