"""Options, arguments and completion that the commands on stored runs share."""

# ruff: noqa: PLC0415 - slow imports are deferred until a command runs
from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

DEFAULT_REPORTS = Path("reports")


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """``last``, experiments, and EXPERIMENT/STAMP once the experiment is typed; the newest first."""
    reports, (experiment, slash, _) = _reports(ctx), incomplete.partition("/")
    if slash:
        found = [f"{experiment}/{name}" for name in sorted(_names(reports / experiment), reverse=True)]
    else:
        names = sorted(_names(reports))
        found = ["last", *names, *(f"{name}/" for name in names)]
    return [name for name in found if name.startswith(incomplete)]


def complete_experiment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Names of experiments that have runs."""
    return [name for name in sorted(_names(_reports(ctx))) if name.startswith(incomplete)]


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """An option's time in seconds since the epoch: a date, a date and time (UTC unless it has an offset), or an age."""
    from chaos.core.clock.system import SystemClock
    from chaos.core.duration import parse_duration

    if value is None:
        return None
    with suppress(ValueError):
        return SystemClock().now() - parse_duration(value)
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        message = f"{value!r} is no time; write it like 2026-11-21, 2026-11-21T03:35 or, for an age, 7d"
        raise click.BadParameter(message, ctx, param) from None


def reports_option(command: Any) -> Any:
    """``--reports``, which must be an existing directory where it is given."""
    option = click.option(
        "--reports",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_REPORTS,
        show_default=True,
        help="Where the run directories are.",
    )
    return option(command)


def require_reports(reports: Path) -> None:
    """Raises UsageError for a --reports that is missing. The default one may be: it is made by the first run."""
    from chaos.core.errors import UsageError

    if reports != DEFAULT_REPORTS and not reports.is_dir():
        raise UsageError(f"--reports: no directory {reports}", hint="give the directory that holds EXPERIMENT/STAMP")


def _reports(ctx: click.Context) -> Path:
    return Path(ctx.params.get("reports") or DEFAULT_REPORTS)


def _names(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []
