"""``nodefall show``: the summary of a stored run, as ``run`` printed it."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chaos.cli.history_options import complete_run, reports_option, require_reports
from chaos.cli.lazy import examples

if TYPE_CHECKING:
    from chaos.core.result import RunResult
    from chaos.core.stored_run import StoredRun


@click.command(
    epilog=examples(
        "nodefall show last",
        "nodefall show graceful-poweroff",
        "nodefall show graceful-poweroff/20261121T033533Z --json",
    )
)
@click.argument("run", shell_complete=complete_run)
@reports_option
@click.option("--json", "as_json", is_flag=True, help="Print the stored result as one JSON object on stdout.")
def command(run: str, reports: Path, as_json: bool) -> None:
    """Show the verdicts of RUN: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run), last or a run ID.

    Exit code 0 whatever the verdict is; 64 for a run without a result.
    """
    from chaos.cli.output import echo_encodable, wants_color
    from chaos.core.store import run_directory
    from chaos.core.store.run_history import read_run
    from chaos.reports.run.summary import summary

    require_reports(reports)
    directory = run_directory.find(reports, run)
    result = _require_result(read_run(directory))
    if as_json:
        click.echo(_document(directory, result), nl=False)
        return
    report = directory / "report.html"
    text = summary(result, report=str(report) if report.exists() else "", color=wants_color(sys.stdout))
    echo_encodable(text.rstrip("\n"))


def _require_result(run: StoredRun) -> RunResult:
    """The result of a run. Raises UsageError without one, with what to do."""
    from chaos.core.errors import UsageError
    from chaos.core.stored_run import RunState

    if run.result:
        return run.result
    directory = run.directory
    if run.state is RunState.RUNNING:
        raise UsageError(f"the run {directory} has no result yet: it is going on", hint="wait for its end")
    if run.state is RunState.DAMAGED:
        raise UsageError(f"the run {directory} is damaged: {run.problem}")
    hint = f"nodefall undo {directory}, then nodefall judge {directory} {directory / 'experiment.yaml'}"
    raise UsageError(f"the run {directory} has no result: it was killed, or goes on on another machine", hint=hint)


def _document(directory: Path, result: RunResult) -> str:
    """The stored result, whose keys of 0.1.0 are completed by those of this version."""
    import json

    from msgspec import to_builtins

    from chaos.core.store.run_directory import RESULT, load

    stored = load(directory, RESULT, dict[str, Any])
    return json.dumps({**stored, **to_builtins(result, str_keys=True)}, indent=2, sort_keys=True) + "\n"
