"""Options that several commands have, and checks of their values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from chaos.cli.bundled import ExperimentPath
from chaos.cli.complete import DEFAULT_REPORTS, complete_experiment_file, complete_inventory_file
from chaos.core.duration import parse_duration
from chaos.core.errors import UsageError

_F = TypeVar("_F", bound=Callable[..., Any])
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
result_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
plain_option = click.option("--plain", is_flag=True, help="Plain progress lines, also on a terminal.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress: print the result only.")
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes at a time. [default: one for each core]"
)
first_seed_option = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The first one; the others follow."
)
reports_option = click.option("--reports", type=click.Path(path_type=Path), default=DEFAULT_REPORTS, show_default=True)
stored_runs_option = click.option(
    "--reports",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_REPORTS,
    show_default=True,
    help="Where the run directories are.",
)
experiment_argument = partial(click.argument, shell_complete=complete_experiment_file, type=ExperimentPath())


def file_option(name: str, help_: str, **settings: Any) -> Callable[[_F], _F]:
    """An option that names a file."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=False), help=help_, **settings)


def inventory_option(text: str, **settings: Any) -> Callable[[_F], _F]:
    """``--inventory`` and ``-i``, completed in a shell. ``text``: its help."""
    return click.option("--inventory", "-i", shell_complete=complete_inventory_file, help=text, **settings)


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """An option's time in seconds since the epoch: a date, a date and time (UTC unless it has an offset), or an age."""
    from chaos.core.clock.system import SystemClock  # noqa: PLC0415 - slow, and seldom needed

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


def require_reports(reports: Path) -> None:
    """Raises UsageError for a --reports that is missing. The default one may be: it is made by the first run."""
    if reports != DEFAULT_REPORTS and not reports.is_dir():
        raise UsageError(f"--reports: no directory {reports}", hint="give the directory that holds EXPERIMENT/STAMP")


def out_option(help_: str) -> Callable[[_F], _F]:
    """``--out DIR``."""
    return click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help=help_)


cluster_option = inventory_option("The cluster; there is no default. [env: NODEFALL_INVENTORY]")


def seconds_of(option: str, text: str) -> float:
    """The seconds of a duration. ``option``: its name, as ``--wait``. Raises UsageError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def refuse_with_fleet(**given: object) -> None:
    """Raises UsageError for the first argument or option that is given besides --fleet. Upper case: an argument."""
    name = next((name for name, value in given.items() if value is not None and value is not False), "")
    if name:
        shown = name if name.isupper() else f"--{name}"
        raise UsageError(f"{shown} does not go with --fleet", hint="the fleet names its game day and its clusters")
