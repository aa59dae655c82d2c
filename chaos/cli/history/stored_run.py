"""One stored run or recording: judged again, rendered again, shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from chaos.api import judge
from chaos.cli.lazy import require_reports
from chaos.cli.output import echo, echo_encodable, open_page, wants_color, write
from chaos.core.errors import UsageError
from chaos.core.result import RunResult, RunState, StepResult, StoredRun
from chaos.core.store import run_directory
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.store.run_directory import RESULT, load
from chaos.core.store.run_history import read_run
from chaos.core.text import printable, shell_word
from chaos.reports.run import json_
from chaos.reports.run.outline import unnoticed_text
from chaos.reports.run.renderer import load_renderers
from chaos.reports.run.summary import summary
from chaos.reports.run.verdicts import Row, notes, rows


def find_recording(path: Path, reports: Path) -> Path:
    """A recording or a run directory by its path, or a run by its name. Raises UsageError."""
    is_path = path.exists() or path.suffix or path.is_absolute()
    return path if is_path else run_directory.find(reports, str(path))


def judge_recording(
    recording: Path,
    experiment: str | None,
    bind: tuple[str, ...],
    steps: tuple[str, ...],
    fact: tuple[str, ...],
    as_json: bool,
    report: Path | None,
) -> int:
    """Judge an EXPERIMENT, by default that of the run, on a RECORDING: a file or a run."""
    mapped, facts = dict(_pairs("--map", steps)), dict(_pairs("--fact", fact))
    judged = judge(recording, experiment, bind=_lists("--bind", bind), steps=mapped, facts=facts)
    result = judged.result
    if report:
        report.mkdir(parents=True, exist_ok=True)
        judged.write(report)
        click.echo(f"report: {report}", err=True)
    if as_json:
        click.echo(json_.render(result, judged.timeline), nl=False)
    else:
        echo(*_result_lines(result))
    return result.exit_code


def _lists(option: str, values: tuple[str, ...]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for name, value in _pairs(option, values):
        lists.setdefault(name, []).append(value)
    return lists


def _pairs(option: str, values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text}: not of the form NAME=VALUE")
        yield name, value


def _result_lines(result: RunResult) -> Iterator[str]:
    """The headline, the steps with their proofs, and every verdict."""
    yield printable(result.headline) + (" (simulated cluster)" if result.simulated else "")
    yield from ("", "steps")
    yield from (_step(step) for step in result.steps)
    titles = {"steady": "steady state", "abort": "abort conditions"}
    for key, section in rows(result).items():
        yield from ("", titles.get(key, key))
        yield from (_verdict(row) for row in section)
    found = [unnoticed_text(each) for each in result.unnoticed] + [f"note: {note}" for note in notes(result)]
    if found:
        yield from ("", *map(printable, found))


def _step(step: StepResult) -> str:
    shown = f"weakly {step.proof_status.value}" if step.weak else step.proof_status.value
    where = f" on {step.node}" if step.node else ""
    return f"  {shown:<12} {step.step}: {step.action}{where}: {printable(step.because)}"


def _verdict(row: Row) -> str:
    verdict = row.verdict
    line = f"  {verdict.shown.words:<12} {printable(verdict.name)}: {printable(row.because)}"
    return line + (f" (assumed: {', '.join(verdict.assumed_facts)})" if verdict.assumed_facts else "")


def render_report(run: str, format_: str | None, out: Path | None, reports: Path, open_: bool) -> None:
    """Render RUN again: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run) or last."""
    renderers = load_renderers()
    if format_ is not None and format_ not in renderers:
        raise UsageError(f"--format: unknown format {format_!r}", hint=f"use one of {', '.join(renderers)}")
    if out and not format_:
        raise UsageError("--out needs --format")
    if open_ and format_:
        raise UsageError("--open is for all formats: leave out --format")
    directory = run_directory.find(reports, run)
    if not (directory / run_directory.RESULT).exists():
        raise UsageError(
            f"the run {directory} has no result: it was killed, or is still active",
            hint=_finish(directory),
        )
    result = run_directory.load_result(directory)
    recording = read_recording(directory / run_directory.RECORDING) if run_directory.has_begun(directory) else ()
    timeline = build_timeline(recording)
    if format_ is None:
        for renderer in renderers.values():
            write(directory / renderer.file, renderer.render(result, timeline), private=True)
        page = directory / renderers["html"].file
        click.echo(str(page))
        if open_:
            _open(page)
        return
    text = renderers[format_].render(result, timeline)
    if out:
        write(out, text)
    else:
        click.echo(text)


def _open(page: Path) -> None:
    if not open_page(page):
        raise UsageError("no browser found to open the report with", hint=f"set BROWSER, or open {page} yourself")


def show_run(run: str, reports: Path, as_json: bool) -> None:
    """Show the verdicts of RUN: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run), last or a run ID."""
    require_reports(reports)
    directory = run_directory.find(reports, run)
    stored = read_run(directory)
    result = _require_result(stored)
    if as_json:
        click.echo(_document(directory, result), nl=False)
        return
    report = directory / "report.html"
    text = summary(
        result,
        report=str(report) if report.exists() else "",
        color=wants_color(sys.stdout),
        is_undone=stored.pending is False,
    )
    echo_encodable(text.rstrip("\n"))


def _require_result(run: StoredRun) -> RunResult:
    """The result of a run. Raises UsageError without one, with what to do."""
    if run.result:
        return run.result
    directory = run.directory
    if run.state is RunState.RUNNING:
        raise UsageError(f"the run {directory} has no result yet: it is going on", hint="wait for its end")
    if run.state is RunState.DAMAGED:
        raise UsageError(f"the run {directory} is damaged: {run.problem}")
    why = f"the run {directory} has no result: it was killed, or is running on another machine"
    raise UsageError(why, hint=_finish(directory))


def _finish(directory: Path) -> str:
    run = shell_word(directory)
    return f"nodefall undo {run}, then nodefall judge {run}"


def _document(directory: Path, result: RunResult) -> str:
    """The stored result, completed by the keys of this version."""
    stored = load(directory, RESULT, dict[str, Any])
    return json.dumps({**stored, **to_builtins(result, str_keys=True)}, indent=2, sort_keys=True) + "\n"
