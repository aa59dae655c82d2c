"""``nodefall report``: render the report of a run again."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click

EPILOG = """\b
Examples:
  nodefall report last
  nodefall report graceful-poweroff --format markdown > report.md
  nodefall report reports/graceful-poweroff/20261121T033533Z --format junit --out junit.xml
"""


@click.command(epilog=EPILOG)
@click.argument("run")
@click.option("--format", "format_", type=click.Choice(["html", "markdown", "junit", "json"]), help="Only this format.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of stdout.")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
def command(run: str, format_: str | None, out: Path | None, reports: Path) -> None:
    """Render RUN again: a run directory, EXPERIMENT/STAMP, EXPERIMENT (its newest run) or last.

    Without --format all formats are written to the run directory.
    """
    import chaos.report
    from chaos.cli.output import write
    from chaos.model.errors import UsageError
    from chaos.model.registry import discover
    from chaos.store import run_directory
    from chaos.store.recording import build_timeline, read_recording

    if out and not format_:
        raise UsageError("--out needs --format")
    directory = run_directory.find(reports, run)
    if not (directory / run_directory.RESULT).exists():
        raise UsageError(
            f"the run {directory} has no result: it was killed, or is still active",
            hint=f"nodefall undo {directory}, then nodefall judge {directory} {directory / run_directory.EXPERIMENT}",
        )
    result = run_directory.load_result(directory)
    timeline = build_timeline(read_recording(directory / run_directory.RECORDING))
    renderers = discover(chaos.report, "RENDERER")
    if format_ is None:
        for renderer in renderers.values():
            write(directory / renderer.file, renderer.render(result, timeline))
        click.echo(str(directory / renderers["html"].file))
        return
    text = renderers[format_].render(result, timeline)
    if out:
        write(out, text)
    else:
        click.echo(text)
