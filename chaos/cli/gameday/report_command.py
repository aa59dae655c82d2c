"""``nodefall gameday report``: the report of a day, rendered again."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from chaos.cli.gameday.fleet_option import refuse_with_fleet
from chaos.cli.lazy import examples
from chaos.cli.output import echo
from chaos.core.errors import Exit


def _complete_format(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from chaos.reports.day.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def _complete_day(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from chaos.core.store.day_directory import names

    return [name for name in names(Path(context.params.get("reports") or "reports")) if name.startswith(incomplete)]


@click.command(
    "report",
    epilog=examples(
        "nodefall gameday report",
        "nodefall gameday report monthly --format md > day.md",
        "nodefall gameday report monthly/2026-12-01 --format review --out review.md",
        "nodefall gameday report --fleet fleet.yaml --format md",
    ),
)
@click.argument("directory", default="last", shell_complete=_complete_day)
@click.option(
    "--format", "format_", metavar="NAME", shell_complete=_complete_format, help="html, md, junit, json or review."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of stdout.")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option(
    "--fleet", type=click.Path(path_type=Path, dir_okay=False), help="Of this fleet, from what its clusters say now."
)
@click.pass_context
def report(
    context: click.Context, directory: str, format_: str | None, out: Path | None, reports: Path, fleet: Path | None
) -> int:
    """Render the report of a day again: its DIRECTORY, GAMEDAY/DAY, GAMEDAY (its newest day) or last, the default.

    gameday run writes it into reports/gamedays: verdicts of all entries by cluster, what was learned, calendar and
    timeline, with links to the reports of the runs. Runs on other clusters on the same day are part of it if they were
    written to the same place. The format review is a template for the written review.

    With --fleet the states of all its clusters are read, side by side in one report; recordings stay where they are.

    Without --format all formats are written to the directory, but a review that is there is kept.

    Exit code: 0 rendered; with --fleet that of the worst cluster, as of gameday status.
    """
    from chaos.core.errors import UsageError
    from chaos.reports.day.formats import FORMATS

    if format_ is not None and format_ not in FORMATS:
        raise UsageError(f"--format: unknown format {format_!r}", hint=f"use one of {', '.join(FORMATS)}")
    if out and not format_:
        raise UsageError("--out needs --format")
    if fleet is None:
        from chaos.core.store import day_directory

        _render(day_directory.find(reports, directory), format_, out)
        return Exit.HELD
    if context.get_parameter_source("directory") is not ParameterSource.DEFAULT:
        refuse_with_fleet(DIRECTORY=directory)
    from chaos.cli.gameday.fleet_impl import gather_report

    found, code = gather_report(fleet, reports)
    _render(found, format_, out)
    return code


def _render(directory: Path, format_: str | None, out: Path | None) -> None:
    from chaos.app.day.report import load_day, write_reports
    from chaos.cli.output import write
    from chaos.reports.day.formats import FORMATS

    if format_ is None:
        echo(str(write_reports(directory)))
        return
    text = FORMATS[format_].render(load_day(directory))
    if out:
        write(out, text)
    else:
        click.echo(text, nl=False)
