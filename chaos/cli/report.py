"""``nodefall report``: render the report of a run again."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click

from chaos.cli.history_options import complete_run

EPILOG = """\b
Examples:
  nodefall report last --open
  nodefall report graceful-poweroff --format markdown > report.md
  nodefall report reports/graceful-poweroff/20261121T033533Z --format junit --out junit.xml
"""


def _complete_format(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from chaos.reports.run.renderer import load_renderers

    return [name for name in load_renderers() if name.startswith(incomplete)]


@click.command(epilog=EPILOG)
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    shell_complete=_complete_format,
    help="Only this format: html, markdown, junit, json, openmetrics or a plug-in.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of stdout.")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--open", "open_", is_flag=True, help="Open report.html in the browser.")
def command(run: str, format_: str | None, out: Path | None, reports: Path, open_: bool) -> None:
    """Render RUN again: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run) or last.

    Without --format all formats are written to the run directory.
    """
    from chaos.cli.output import write
    from chaos.core.errors import UsageError
    from chaos.core.store import run_directory
    from chaos.core.store.recording import build_timeline, read_recording
    from chaos.reports.run.renderer import load_renderers

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
            hint=f"nodefall undo {directory}, then nodefall judge {directory} {directory / run_directory.EXPERIMENT}",
        )
    result = run_directory.load_result(directory)
    timeline = build_timeline(read_recording(directory / run_directory.RECORDING))
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
    from chaos.cli.output import open_page
    from chaos.core.errors import UsageError

    if not open_page(page):
        raise UsageError("no browser found to open the report with", hint=f"set BROWSER, or open {page} yourself")
