"""The report of a game day, rendered again."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from chaos.app.day.report import load_day, write_reports
from chaos.cli.gameday.fleet import gather_report
from chaos.cli.options import refuse_with_fleet
from chaos.cli.output import echo, write
from chaos.core.errors import Exit, UsageError
from chaos.core.store import day_directory
from chaos.reports.day.formats import FORMATS


def render_report(
    context: click.Context, directory: str, format_: str | None, out: Path | None, reports: Path, fleet: Path | None
) -> int:
    """Render the report of a day again: its DIRECTORY, GAMEDAY/DAY, GAMEDAY (its newest day) or last, the default."""
    if format_ is not None and format_ not in FORMATS:
        raise UsageError(f"--format: unknown format {format_!r}", hint=f"use one of {', '.join(FORMATS)}")
    if out and not format_:
        raise UsageError("--out needs --format")
    if fleet is None:
        _render(day_directory.find(reports, directory), format_, out)
        return Exit.HELD
    if context.get_parameter_source("directory") is not ParameterSource.DEFAULT:
        refuse_with_fleet(DIRECTORY=directory)
    found, code = gather_report(fleet, reports)
    _render(found, format_, out)
    return code


def _render(directory: Path, format_: str | None, out: Path | None) -> None:
    if format_ is None:
        echo(str(write_reports(directory)))
        return
    text = FORMATS[format_].render(load_day(directory))
    if out:
        write(out, text)
    else:
        click.echo(text, nl=False)
