"""``--fleet`` of ``gameday run``, ``status``, ``halt``, ``resume`` and ``report``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from chaos.app.day.report import write_reports
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
from chaos.app.fleet.session import FleetRequest
from chaos.cli.gameday.control import HaltOptions
from chaos.cli.gameday.day_text import to_json
from chaos.cli.gameday.fleet_display import FleetDisplay
from chaos.cli.gameday.fleet_text import Seen, fleet_document, render_fleet
from chaos.cli.gameday.image_warnings import warn_missing, warn_unpinned
from chaos.cli.gameday.run_impl import check_id
from chaos.cli.log_options import is_verbose
from chaos.cli.option_values import seconds_of
from chaos.cli.output import echo
from chaos.core.errors import Exit, NodefallError, UsageError
from chaos.core.text import printable
from chaos.engine.stop import Interrupted
from chaos.gameday.fleet_state import Observation, fleet_exit_code
from chaos.gameday.state import DayState


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
            echo(f"interrupted by {error}: {text} nodefall gameday halt --fleet {options.fleet}", err=True)
            return 128 + error.signum
    seen = {row.name: (row.assessment, row.observation) for row in ended.rows}
    _report(fleet, ended.state, seen, options.reports)
    return _print(ended.state, seen, as_json=options.as_json)


def show_status(path: Path, *, as_json: bool) -> int:
    """Print the fleet; the exit code."""
    state, seen = _begun(load_fleet(path))
    return _print(state, seen, as_json=as_json)


def halt_all(path: Path, options: HaltOptions, *, keep: bool) -> int:
    """Halt the fleet in all clusters at once, and wait for the undo of what runs; the exit code."""
    seconds = seconds_of("--wait", options.wait)
    fleet = load_fleet(path)
    wanted = FleetHalt(options.by, options.reason, seconds, options.for_good, keep)
    problems = halt_fleet(fleet, wanted, lambda text: echo(printable(text), err=True))
    if pending_undo(fleet):
        return int(Exit.UNDO_PENDING)
    return int(Exit.INCONCLUSIVE if problems else Exit.HELD)


def resume_all(path: Path, by: str, reason: str) -> int:
    """Let a halted fleet go on; the exit code."""
    fleet = load_fleet(path)
    problems = resume_fleet(fleet, by, reason, lambda text: echo(printable(text), err=True))
    for name, why in problems.items():
        echo(printable(f"error: {name} is not resumed: {why}"), err=True)
    if problems:
        echo("the fleet stays halted: the same command goes on where it stopped", err=True)
        return int(Exit.INCONCLUSIVE)
    echo(f"nodefall gameday run --fleet {path} goes on with it", err=True)
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
            f"the fleet {fleet.document.metadata.name} has not begun", hint=f"nodefall gameday run --fleet {fleet.path}"
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
        echo(f"the report of the day was not written: {error}", err=True)


def _warn(fleet: LoadedFleet) -> None:
    """What a person must see to before the Jobs can begin, once for all clusters."""
    echo(*warn_unpinned(each.deployment.image for each in fleet.clusters), err=True)
    for cluster in fleet.clusters:
        echo(*warn_missing(cluster.programs, f"the inventory of {cluster.name}"), err=True)
        if cluster.secrets:
            keys = ", ".join(each.key for each in cluster.secrets)
            place = f"{cluster.deployment.namespace}/{cluster.deployment.secret}"
            echo(f"{cluster.name} needs the Secret {place} with {keys}", err=True)
