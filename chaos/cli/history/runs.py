"""The stored runs: listed, pruned, and the trend of their durations."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from chaos import __version__
from chaos.cli.lazy import require_reports, seconds_of
from chaos.cli.output import as_output, echo, echo_encodable, print_document, write
from chaos.core.clock.system import SystemClock
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.files import open_regular
from chaos.core.result import StoredRun
from chaos.core.store.prune import PruneDecision, PruneRules, prune, select
from chaos.core.store.run_history import read_runs
from chaos.core.text import count_of
from chaos.reports.history.trend import Trend, trend
from chaos.reports.history.trend_page import trend_page
from chaos.reports.history.trend_text import trend_document, trend_text
from chaos.reports.run.markdown import RENDERER
from chaos.reports.run.summary import run_row, runs_markdown, runs_table

_MAX_REPORT = 1 << 20  # bytes of a report.md that are read


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are listed; None and an empty set leave everything in. Times in seconds since the epoch."""

    experiment: str | None = None
    verdicts: frozenset[str] = frozenset()
    cluster: str | None = None
    since: float | None = None
    until: float | None = None

    def admits(self, run: StoredRun) -> bool:
        """Whether the run is listed. One whose start is unknown is in no range of times."""
        if self.since is not None and (run.started is None or run.started < self.since):
            return False
        if self.until is not None and (run.started is None or run.started >= self.until):
            return False
        return (
            self.experiment in (None, run.experiment)
            and (not self.verdicts or run.verdict in self.verdicts)
            and (self.cluster is None or run.is_on(self.cluster))
        )


def list_runs(reports: Path, run_filter: RunFilter, as_json: bool, markdown: bool = False) -> None:
    """Print the runs."""
    runs = read_runs(reports)
    listed = [run for run in runs if run_filter.admits(run)]
    if as_json:
        print_document({"runs": [run_row(run) for run in listed]})
    elif listed and markdown:
        click.echo(runs_markdown(listed, _report_of), nl=False)
    elif listed:
        echo_encodable(*runs_table(listed, __version__))
    else:
        click.echo(
            f"no runs in {reports}" if not runs else f"none of {count_of(len(runs), 'run')} in {reports} matches",
            err=True,
        )


def _report_of(run: StoredRun) -> str:
    """The run's report in Markdown, "" if it cannot be read."""
    try:
        with open_regular(run.directory / RENDERER.file) as file:
            return file.read(_MAX_REPORT).decode("utf-8", "replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class PruneOptions:
    reports: Path
    keep: int | None
    older_than: str | None
    dry_run: bool
    yes: bool
    as_json: bool


def prune_runs(options: PruneOptions) -> int:
    """Delete what the options select; the exit code, that of the first run that could not be deleted.

    Raises UsageError, and Refused without a confirmation.
    """
    decisions = select(read_runs(options.reports), _rules(options), SystemClock().now())
    doomed, staying = [d for d in decisions if not d.reason], [(d, d.reason) for d in decisions if d.reason]
    if not options.as_json:
        _describe(doomed, staying)
    deleted: list[PruneDecision] = []
    failures: list[tuple[PruneDecision, NodefallError]] = []
    if doomed and not options.dry_run:
        _confirm(doomed, options)
        for decision in doomed:
            try:
                prune(decision)
                deleted.append(decision)
            except NodefallError as error:
                failures.append((decision, error))
    if options.as_json:
        staying += [(decision, failure.message) for decision, failure in failures]
        print_document(_document(doomed if options.dry_run else deleted, staying, options.dry_run))
    else:
        _conclude(doomed, deleted, options)
    echo(*(f"error: {failure.message}" for _, failure in failures), err=True)
    return int(failures[0][1].code) if failures else 0


def _rules(options: PruneOptions) -> PruneRules:
    if options.keep is None and options.older_than is None:
        raise UsageError("give --keep N, --older-than DURATION or both", hint="see nodefall runs prune --help")
    older_than = None if options.older_than is None else seconds_of("--older-than", options.older_than)
    return PruneRules(options.keep, older_than)


def _describe(doomed: Sequence[PruneDecision], staying: Sequence[tuple[PruneDecision, str]]) -> None:
    echo(*(f"{decision.run.directory}  {decision.size:,} bytes" for decision in doomed))
    echo(*(f"stays: {decision.run.directory}: {reason}" for decision, reason in staying), err=True)


def _confirm(doomed: Sequence[PruneDecision], options: PruneOptions) -> None:
    """Ask unless --yes. Raises Refused if not confirmed."""
    if options.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused("not confirmed: there is no terminal to ask", hint="pass --yes, or --dry-run to delete nothing")
    if not click.confirm(f"Delete {_total(doomed)} for good?", err=True):
        raise Refused("not confirmed: nothing was deleted")


def _conclude(doomed: Sequence[PruneDecision], deleted: Sequence[PruneDecision], options: PruneOptions) -> None:
    if options.dry_run:
        echo(f"would delete {_total(doomed)}")
    else:
        echo(f"deleted {_total(deleted)}")


def _total(decisions: Sequence[PruneDecision]) -> str:
    return f"{count_of(len(decisions), 'run')}, {sum(decision.size for decision in decisions):,} bytes"


def _document(
    doomed: Sequence[PruneDecision], staying: Sequence[tuple[PruneDecision, str]], dry_run: bool
) -> dict[str, Any]:
    """``deleted``: with --dry-run, what would be."""
    return {
        "dry_run": dry_run,
        "deleted": [_row(decision) for decision in doomed],
        "bytes": sum(decision.size for decision in doomed),
        "staying": [{**_row(decision), "reason": reason} for decision, reason in staying],
    }


def _row(decision: PruneDecision) -> dict[str, Any]:
    run = decision.run
    return {"name": run.name, "run": run.run, "directory": str(run.directory), "bytes": decision.size}


def show_trend(  # noqa: PLR0913, PLR0917 - one per option
    experiment: str,
    cluster: str | None,
    experiment_hash: str | None,
    since: float | None,
    until: float | None,
    mix: tuple[str, ...],
    format_: str,
    out: Path | None,
    reports: Path,
    as_json: bool,
) -> None:
    """Show the durations that the runs of EXPERIMENT measured: median, middle half of the values, change points."""
    require_reports(reports)
    run_filter = RunFilter(experiment, frozenset(), cluster, since, until)
    runs = read_runs(reports, _one_name(experiment)) if reports.is_dir() else []
    listed = [run for run in runs if run_filter.admits(run) and run.experiment_hash.startswith(experiment_hash or "")]
    found = _trend(reports, experiment, runs, listed, mix)
    text = _render(found, "json" if as_json else format_, "utf-8" if out else sys.stdout.encoding or "utf-8")
    if out:
        write(out, text + "\n")
    else:
        echo_encodable(text)


def _one_name(experiment: str) -> str:
    """Raises UsageError for a path."""
    if Path(experiment).name != experiment or experiment in ("", "..", "*"):
        raise UsageError(f"{experiment!r} is not the name of an experiment", hint="list the runs with nodefall runs")
    return experiment


def _trend(
    reports: Path, experiment: str, runs: Sequence[StoredRun], listed: Sequence[StoredRun], mix: tuple[str, ...]
) -> Trend:
    """The trend. Raises UsageError if there is no run with a result."""
    found = trend(experiment, listed, mix)
    if found is None:
        why = f"none of its {count_of(len(runs), 'run')}" if runs else "it has no runs, so none"
        raise UsageError(
            f"no trend of {experiment!r} in {reports}: {why} has a result and fits the options",
            hint="list the runs with nodefall runs",
        )
    return found


def _render(found: Trend, format_: str, encoding: str) -> str:
    if format_ == "html":
        return trend_page(found).rstrip("\n")
    if format_ == "json":
        return as_output(json.dumps(trend_document(found), indent=2))
    return "\n".join(trend_text(found, encoding))
