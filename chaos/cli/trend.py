"""``nodefall trend``: measured durations of each expectation over the runs of an experiment."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.history_options import complete_experiment, parse_time, reports_option, require_reports
from chaos.cli.lazy import examples

if TYPE_CHECKING:
    from chaos.core.stored_run import StoredRun
    from chaos.reports.history.trend import Trend


@click.command(
    epilog=examples(
        "nodefall trend graceful-poweroff",
        "nodefall trend graceful-poweroff --since 90d --cluster staging",
        "nodefall trend graceful-poweroff --format html --out trend.html",
        "nodefall trend graceful-poweroff --mix experiments --format json",
    )
)
@click.argument("experiment", shell_complete=complete_experiment)
@click.option("--cluster", metavar="NAME", help="Only runs on this cluster: the inventory's name, or its UID's begin.")
@click.option("--experiment-hash", metavar="SHA256", help="Only runs of the file whose hash begins so.")
@click.option(
    "--since", callback=parse_time, metavar="TIME", help="Only runs that started then or later: 2026-11-21, or 7d."
)
@click.option("--until", callback=parse_time, metavar="TIME", help="Only runs that started before then.")
@click.option(
    "--mix",
    type=click.Choice(["clusters", "experiments"]),
    multiple=True,
    help="Also runs on other clusters, or of other versions of the experiment's file. Can be repeated.",
)
@click.option("--format", "format_", type=click.Choice(["text", "html", "json"]), default="text", show_default=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of stdout.")
@reports_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout: --format json.")
def command(  # noqa: PLR0913, PLR0917 - one per option
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
    """Show the durations that the runs of EXPERIMENT measured: median, middle half of the values, change points.

    A duration is the time until an expectation came true (within) or failed (never, always). Runs count that are
    comparable with the newest one: of the same file, on the same cluster, simulated or not; the others are named.
    docs/history.md describes the method.
    """
    from chaos.cli.output import echo_encodable, write
    from chaos.cli.runs.list_impl import RunFilter
    from chaos.core.store.run_history import read_runs

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
    from chaos.core.errors import UsageError

    if Path(experiment).name != experiment or experiment in ("", "..", "*"):
        raise UsageError(f"{experiment!r} is not the name of an experiment", hint="list the runs with nodefall runs")
    return experiment


def _trend(
    reports: Path, experiment: str, runs: Sequence[StoredRun], listed: Sequence[StoredRun], mix: tuple[str, ...]
) -> Trend:
    """The trend. Raises UsageError if there is no run with a result."""
    from chaos.core.errors import UsageError
    from chaos.reports.history.trend import trend

    found = trend(experiment, listed, mix)
    if found is None:
        why = f"none of its {len(runs)} runs" if runs else "it has no runs, so none"
        raise UsageError(
            f"no trend of {experiment!r} in {reports}: {why} has a result and fits the options",
            hint="list the runs with nodefall runs",
        )
    return found


def _render(found: Trend, format_: str, encoding: str) -> str:
    if format_ == "html":
        from chaos.reports.history.trend_page import trend_page

        return trend_page(found).rstrip("\n")
    if format_ == "json":
        import json

        from chaos.reports.history.trend_text import trend_document

        return json.dumps(trend_document(found), indent=2)
    from chaos.reports.history.trend_text import trend_text

    return "\n".join(trend_text(found, encoding))
