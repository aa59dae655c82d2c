"""Game days of a fleet: run, shown, halted, resumed and reported; and the report of a day, rendered again."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console
from rich.live import Live
from rich.table import Table

from chaos.app.day.report import load_day, write_reports
from chaos.app.fleet.agent import ClusterRow, FleetRequest
from chaos.app.fleet.control import (
    FleetHalt,
    FleetView,
    halt_fleet,
    pending_undo,
    resume_fleet,
    store_records,
    view_fleet,
)
from chaos.app.fleet.coordinator import run_fleet
from chaos.app.fleet.loading import LoadedFleet, load_fleet
from chaos.cli.gameday.control import HaltOptions
from chaos.cli.gameday.deploy import warn_missing, warn_unpinned
from chaos.cli.gameday.plan import Seen, fleet_document, render_fleet
from chaos.cli.gameday.run import check_id
from chaos.cli.lazy import is_verbose, refuse_with_fleet, seconds_of
from chaos.cli.output import can_redraw, confirm_name, echo, echo_progress, to_json, write
from chaos.core.errors import Exit, NodefallError, UsageError
from chaos.core.store import day_directory
from chaos.core.text import escape_for_encoding, printable, shell_word
from chaos.engine.stop import Interrupted
from chaos.gameday.fleet_state import Observation, fleet_exit_code
from chaos.gameday.state import DayState, RunStatus, describe
from chaos.reports.day.formats import FORMATS

_HEAD = ("cluster", "status", "phase", "now")
_SHOWN = 20  # clusters in the summary before the confirmation


class FleetDisplay:
    """What people see of a fleet, on stderr. Context manager: a live table is closed at its end."""

    def __init__(self, *, force_plain: bool, yes: bool) -> None:
        self._yes = yes
        self._console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._live = None if force_plain or not can_redraw(sys.stderr) else Live(console=self._console, transient=True)
        self._last: dict[str, str] = {}

    def __enter__(self) -> FleetDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def note(self, text: str) -> None:
        """Print one line; a closed stderr stops nothing."""
        line = escape_for_encoding(printable(text), sys.stderr.encoding)
        if self._live and self._live.is_started:
            self._console.print(line, soft_wrap=True)
        else:
            echo_progress(line)

    def show(self, state: DayState, rows: Sequence[ClusterRow]) -> None:
        """The table; without a terminal, a line for each cluster whose phase has changed."""
        if self._live:
            with suppress(OSError):  # a lost terminal stops nothing
                self._live.update(_table(state, rows))
                self._live.start()
            return
        for row in rows:
            phase = str(row.assessment.phase)
            if self._last.get(row.name, "idle") != phase and row.run.status is RunStatus.RUNNING:
                self.note(f"  {row.name} is {phase}" + (f": {row.assessment.reason}" if row.assessment.reason else ""))
            self._last[row.name] = phase

    def confirm(self, fleet: LoadedFleet, servers: Mapping[str, str]) -> None:
        """Confirm that real machines may go down in these clusters. Raises Refused."""
        spec, day = fleet.document.spec, fleet.day
        real = [each for each in fleet.clusters if not (each.inventory.cluster and each.inventory.cluster.simulated)]
        rows = [
            ("fleet", f"{fleet.document.metadata.name}: {len(fleet.clusters)} clusters, {spec.max_clusters} at once"),
            ("game day", f"{day.document.spec.title}, plan {day.hash[:12]}"),
            ("entries", ", ".join(entry.name for entry in day.entries)),
            *((each.name, servers.get(each.name, "cannot be reached now")) for each in fleet.clusters[:_SHOWN]),
        ]
        if len(fleet.clusters) > _SHOWN:
            rows.append(("", f"and {len(fleet.clusters) - _SHOWN} more"))
        for label, text in rows:
            self.note(f"{label:<11} {text}")
        if real and not self._yes:
            confirm_name("fleet", fleet.document.metadata.name, "fleet", f"machines of {len(real)} real clusters")


def _table(state: DayState, rows: Sequence[ClusterRow]) -> Table:
    table = Table(title=printable(describe(state)), title_justify="left", box=None)
    for name in _HEAD:
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    for row in rows:
        status = row.run.verdict or str(row.run.status)
        why = row.run.reason or row.assessment.reason
        table.add_row(row.name, status, str(row.assessment.phase), printable(why))
    return table


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The options of ``gameday run --fleet``."""

    fleet: Path
    reports: Path
    id: str = ""
    yes: bool = False
    plain: bool = False
    keep: bool = False
    as_json: bool = False


def run_and_show(options: FleetOptions) -> int:
    """Run the fleet, print how it ended, and return the exit code. Raises NodefallError."""
    check_id(options.id)
    fleet = load_fleet(options.fleet)
    _warn(fleet)
    with FleetDisplay(force_plain=options.plain or is_verbose(), yes=options.yes) as display:
        request = FleetRequest(fleet, options.reports, display, display.confirm, options.id, options.keep)
        try:
            ended = run_fleet(request)
        except Interrupted as error:
            text = "the Jobs go on by themselves, and the same command goes on watching; to stop them:"
            echo(f"interrupted by {error}: {text} nodefall gameday halt --fleet {shell_word(options.fleet)}", err=True)
            return 128 + error.signum
    seen = {row.name: (row.assessment, row.observation) for row in ended.rows}
    _report(fleet, ended.state, seen, options.reports)
    return _print(ended.state, seen, as_json=options.as_json)


def show_status(path: Path, *, as_json: bool) -> int:
    """Print the fleet; the exit code."""
    state, seen = _begun(load_fleet(path))
    return _print(state, seen, as_json=as_json)


def halt_all(path: Path, options: HaltOptions, *, keep: bool) -> int:
    """Halt the fleet in all clusters immediately, and wait for the undo of what runs; the exit code."""
    seconds = seconds_of("--wait", options.wait)
    fleet = load_fleet(path)
    wanted = FleetHalt(options.by, options.reason, seconds, options.for_good, keep)
    problems = halt_fleet(fleet, wanted, lambda text: echo(printable(text), err=True))
    if pending_undo(fleet):
        return int(Exit.UNDO_PENDING)
    return int(Exit.INCONCLUSIVE if problems else Exit.HELD)


def resume_all(path: Path, by: str, reason: str) -> int:
    """Let a halted fleet continue; the exit code."""
    fleet = load_fleet(path)
    problems = resume_fleet(fleet, by, reason, lambda text: echo(printable(text), err=True))
    for name, why in problems.items():
        echo(printable(f"error: {name} is not resumed: {why}"), err=True)
    if problems:
        echo("the fleet stays halted: run the same command again to continue", err=True)
        return int(Exit.INCONCLUSIVE)
    echo(f"nodefall gameday run --fleet {shell_word(path)} goes on with it", err=True)
    return int(Exit.HELD)


def gather_report(path: Path, reports: Path) -> tuple[Path, int]:
    """Read all clusters and write their records; the directory of the day, and the exit code. Raises NodefallError."""
    fleet = load_fleet(path)
    state, seen = _begun(fleet)
    return store_records(fleet, state, seen, reports), _exit_code(state, seen)


def _begun(fleet: LoadedFleet) -> tuple[DayState, Seen]:
    view: FleetView = view_fleet(fleet)
    if view.state is None:
        raise UsageError(
            f"the fleet {fleet.document.metadata.name} has not begun",
            hint=f"nodefall gameday run --fleet {shell_word(fleet.path)}",
        )
    return view.state, view.clusters


def _print(state: DayState, seen: Seen, *, as_json: bool) -> int:
    if as_json:
        click.echo(to_json(fleet_document(state, seen)))
    else:
        echo(*render_fleet(state, seen))
    return _exit_code(state, seen)


def _exit_code(state: DayState, seen: Seen) -> int:
    observations: list[Observation] = [observation for _, observation in seen.values()]
    return int(fleet_exit_code(state, observations))


def _report(fleet: LoadedFleet, state: DayState, seen: Seen, reports: Path) -> None:
    """Write the report; what cannot be written is only noted."""
    try:
        echo(f"report of the day: {write_reports(store_records(fleet, state, seen, reports))}", err=True)
    except (NodefallError, OSError) as error:
        echo(f"cannot write the report of the day: {error}", err=True)


def _warn(fleet: LoadedFleet) -> None:
    """What a person must see to before the Jobs can begin, once for all clusters."""
    echo(*warn_unpinned(each.deployment.image for each in fleet.clusters), err=True)
    for cluster in fleet.clusters:
        echo(*warn_missing(cluster.programs, f"the inventory of {cluster.name}"), err=True)
        if cluster.secrets:
            keys = ", ".join(each.key for each in cluster.secrets)
            place = f"{cluster.deployment.namespace}/{cluster.deployment.secret}"
            echo(f"{cluster.name} needs the Secret {place} with {keys}", err=True)


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
