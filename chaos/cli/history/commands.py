"""Declarations of commands on stored runs."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from chaos.cli.complete import (
    complete_experiment,
    complete_format,
    complete_run,
    complete_target,
)
from chaos.cli.lazy import (
    command,
    document_option,
    examples,
    experiment_argument,
    file_option,
    json_option,
    parse_time,
    reports_option,
    require_reports,
    result_option,
    stored_runs_option,
)

VERDICTS = ("held", "violated", "inconclusive", "aborted", "refused", "interrupted", "running", "no-result", "damaged")

_of_cluster = click.option(
    "--cluster",
    metavar="NAME",
    help="Only runs on this cluster: the name of its inventory, or the first characters of its UID.",
)
_since = click.option(
    "--since",
    callback=parse_time,
    metavar="TIME",
    help="Only runs that started at this time or later: 2026-11-21, or 7d.",
)
_until = click.option("--until", callback=parse_time, metavar="TIME", help="Only runs that started before this time.")


@command(
    "nodefall judge recording.jsonl.gz experiments/graceful-poweroff.yaml",
    "nodefall judge reports/graceful-poweroff/20261121T033533Z --json",
    "nodefall judge last",
    "nodefall judge power-cut.jsonl.gz experiments/graceful-poweroff.yaml --map power-off=power-cut",
    "nodefall judge rec.jsonl.gz my.yaml --bind victim=worker-1 --bind workload=demo "
    "--fact kubelet.shutdownGracePeriod=30s",
)
@click.argument("recording", type=click.Path(path_type=Path))
@experiment_argument("experiment", required=False)
@stored_runs_option
@click.option(
    "--bind",
    multiple=True,
    metavar="TARGET=NODE",
    shell_complete=complete_target,
    help="Bind a target to a node, or the workload to a namespace: workload=NAMESPACE.",
)
@click.option("--map", "steps", multiple=True, metavar="STEP=ACTION", help="Match a step with the recorded ACTION.")
@click.option("--fact", multiple=True, metavar="NAME=VALUE", help="Use this value for a fact.")
@result_option
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="Write all reports to this directory.")
def judge_command(recording: Path, reports: Path, **options: Any) -> int:
    """Judge an EXPERIMENT on a RECORDING: a file, or a run directory, EXPERIMENT/STAMP, last or a run ID.

    Without EXPERIMENT, a run is judged by the experiment and the workload that its directory has.

    Exit code: 0 every expectation held, 1 one was violated, 2 inconclusive.
    """
    from chaos.cli.history import stored_run

    return stored_run.judge_recording(stored_run.find_recording(recording, reports), **options)


@command(
    "nodefall report last --open",
    "nodefall report graceful-poweroff --format markdown > report.md",
    "nodefall report reports/graceful-poweroff/20261121T033533Z --format junit --out junit.xml",
)
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    shell_complete=complete_format,
    help="Print one format instead: html, markdown, junit, json, openmetrics or a plug-in.",
)
@file_option("--out", "Write to this file instead of stdout.")
@reports_option
@click.option("--open", "open_", is_flag=True, help="Open report.html in the browser.")
def report_command(**options: Any) -> None:
    """Render RUN again: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run) or last.

    Without --format all formats are written to the run directory.
    """
    from chaos.cli.history import stored_run

    stored_run.render_report(**options)


@command(
    "nodefall show last",
    "nodefall show graceful-poweroff",
    "nodefall show graceful-poweroff/20261121T033533Z --json",
)
@click.argument("run", shell_complete=complete_run)
@stored_runs_option
@document_option("Print the stored result as one JSON object on stdout.")
def show_command(**options: Any) -> None:
    """Show the verdicts of RUN: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run), last or a run ID.

    Exit code 0 whatever the verdict is; 64 for a run without a result.
    """
    from chaos.cli.history import stored_run

    stored_run.show_run(**options)


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "nodefall runs",
        "nodefall runs --experiment graceful-poweroff --verdict violated --since 7d",
        "nodefall runs --cluster staging --since 2026-11-01 --until 2026-12-01 --json",
        'nodefall runs --markdown >> "$GITHUB_STEP_SUMMARY"',
        "nodefall runs prune --keep 20 --older-than 30d --dry-run",
    ),
)
@click.option("--experiment", metavar="NAME", shell_complete=complete_experiment, help="Only runs of this experiment.")
@click.option(
    "--verdict",
    type=click.Choice(VERDICTS),
    multiple=True,
    metavar="VERDICT",
    help=f"Only runs with this verdict: {', '.join(VERDICTS)}. Can be repeated.",
)
@_of_cluster
@_since
@_until
@stored_runs_option
@click.option(
    "--markdown", is_flag=True, help="A table in Markdown, and the reports of runs that did not hold: for CI summaries."
)
@json_option
@click.pass_context
def runs_command(
    ctx: click.Context, /, verdict: tuple[str, ...], reports: Path, as_json: bool, markdown: bool, **options: Any
) -> None:
    """List the runs in the reports directory, the newest first.

    Runs that are in progress, that were killed or whose files are damaged are listed as such. Times are those of the
    cluster's clock; --since and --until leave out runs whose start is unknown.
    """
    if ctx.invoked_subcommand:
        _refuse_options(ctx)
        return
    from chaos.cli.history.runs import RunFilter, list_runs

    require_reports(reports)
    list_runs(reports, RunFilter(verdicts=frozenset(verdict), **options), as_json, markdown)


def _refuse_options(ctx: click.Context) -> None:
    """Raises UsageError for an option of the list before a subcommand, which would not see it: --reports, say."""
    for parameter in ctx.command.params:
        if parameter.expose_value and ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
            message = f"{parameter.opts[0]} before {ctx.invoked_subcommand!r} has no effect; give options after it"
            raise click.UsageError(message, ctx)


@command(
    "nodefall runs prune --keep 20",
    "nodefall runs prune --older-than 30d --dry-run",
    "nodefall runs prune --keep 5 --older-than 90d --yes --json",
    of=runs_command,
    name="prune",
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs of each experiment.")
@click.option("--older-than", metavar="DURATION", help="Delete only runs that are older than this, such as 30d.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@stored_runs_option
@json_option
def prune_command(**options: Any) -> int:
    """Delete run directories. With --keep and --older-than, delete only runs that both options allow.

    A run is kept if it is in progress, if an undo is or may be pending, if the cluster may have a copy of its journal,
    if it is damaged, or if its directory contains foreign files. Once its recording is deleted, a run can no longer be
    judged or reported again.
    """
    from chaos.cli.history.runs import PruneOptions, prune_runs

    require_reports(options["reports"])
    return prune_runs(PruneOptions(**options))


@command(
    "nodefall trend graceful-poweroff",
    "nodefall trend graceful-poweroff --since 90d --cluster staging",
    "nodefall trend graceful-poweroff --format html --out trend.html",
    "nodefall trend graceful-poweroff --mix experiments --format json",
)
@click.argument("experiment", shell_complete=complete_experiment)
@_of_cluster
@click.option(
    "--experiment-hash", metavar="SHA256", help="Only runs of the file whose hash begins with these characters."
)
@_since
@_until
@click.option(
    "--mix",
    type=click.Choice(["clusters", "experiments"]),
    multiple=True,
    help="Also include runs on other clusters, or of other versions of the experiment's file. Can be repeated.",
)
@click.option("--format", "format_", type=click.Choice(["text", "html", "json"]), default="text", show_default=True)
@file_option("--out", "Write to this file instead of stdout.")
@stored_runs_option
@document_option("Print one JSON object on stdout, as --format json does.")
def trend_command(**options: Any) -> None:
    """Show the durations that the runs of EXPERIMENT measured: median, middle half of the values, change points.

    A duration is the time until an expectation became true (within) or failed (never, always). Only runs that are
    comparable with the newest run count: with the same file and on the same cluster. The command names the others.
    docs/history.md describes the method.
    """
    from chaos.cli.history import runs

    runs.show_trend(**options)
