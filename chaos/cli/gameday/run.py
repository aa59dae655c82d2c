"""Runs a game day from the command line: its lines, its questions, and its end."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from chaos.app.day.document import LoadedGameDay, cluster_name, load_game_day, only_inventory
from chaos.app.day.gates import GateEvaluator
from chaos.app.day.runner import run_day
from chaos.app.day.session import DayRequest
from chaos.app.run.experiment import ClusterInfo
from chaos.app.undo.replica_entries import ResolvedReplica
from chaos.app.wiring.connect import ENV_INVENTORY, inventory_path
from chaos.cli.gameday.plan import render, to_document
from chaos.cli.lazy import is_verbose
from chaos.cli.output import echo, echo_progress, to_json, tune_gc
from chaos.cli.run.live import BestEffortProgress, make_progress
from chaos.cli.run.plan import ask, confirm_entries
from chaos.cluster.replica import PendingRun
from chaos.core.errors import UsageError
from chaos.core.plan import Plan
from chaos.core.text import escape_for_encoding, printable
from chaos.documents.inventory import load_inventory
from chaos.engine.connection import login
from chaos.engine.stop import Interrupted, stop_on_signal
from chaos.gameday.fleet_document import REPORT_URL
from chaos.gameday.state import DAY_NAME, exit_code


class DayTerminal:
    """Lines and questions on stderr. ``yes``: confirm without asking."""

    def __init__(self, *, force_plain: bool, yes: bool) -> None:
        self._force_plain, self._yes = force_plain, yes
        self._progress = BestEffortProgress(make_progress(sys.stderr, force_plain=True))

    def note(self, text: str) -> None:
        """Print one line; a closed stderr stops nothing."""
        echo_progress(escape_for_encoding(printable(text), sys.stderr.encoding))

    def open_progress(self) -> BestEffortProgress:
        """The progress of one run."""
        self._progress = BestEffortProgress(make_progress(sys.stderr, force_plain=self._force_plain))
        return self._progress

    def confirm(self, plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:
        """Confirm that machines of a real cluster go down. Raises Refused, Interrupted."""
        with _interruptible():
            ask(plan, cluster, nodes, progress=self._progress, yes=self._yes)

    def confirm_undo(self, replica: PendingRun, resolved: ResolvedReplica) -> None:
        """Confirm an undo that only the cluster describes. Raises Refused, Interrupted."""
        with _interruptible():
            confirm_entries(replica, resolved, progress=self._progress, yes=self._yes)

    def ask_approval(self, persons: Sequence[str], what: str, plan_hash: str) -> str:
        """Who approves, "" if no one does or there is no terminal. Raises Interrupted."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return ""
        question = f"{what} (plan {plan_hash[:12]}) must be approved by {' or '.join(persons)}. Who approves? [no one]"
        with _interruptible():
            name = str(click.prompt(printable(question), default="", show_default=False, err=True)).strip()
        if name and name not in persons:
            self.note(f"not approved: {name} is not among {', '.join(persons)}")
            return ""
        return name


@contextmanager
def _interruptible() -> Iterator[None]:
    """A signal ends a question immediately. Raises Interrupted."""

    def stop(number: int) -> None:
        raise Interrupted(number)

    with stop_on_signal(stop):
        yield


@dataclass(frozen=True, slots=True)
class DayOptions:
    """The options of the command."""

    gameday: Path
    inventory: str | None
    reports: Path
    seed: int | None = None
    id: str = ""
    scheduled: bool = False
    yes: bool = False
    plain: bool = False
    as_json: bool = False
    report_url: str = ""


def run_and_report(options: DayOptions) -> int:
    """Run the day, print how it ended, and return the exit code. Raises NodefallError."""
    tune_gc()
    check_id(options.id)
    check_report_url(options.report_url)
    day = load_game_day(options.gameday)
    path = day_inventory(day, options.inventory)
    inventory = load_inventory(path)
    terminal = DayTerminal(force_plain=options.plain or is_verbose(), yes=options.yes)
    if inventory.lab:
        terminal.note("starting the lab, a simulated cluster")
    request = DayRequest(
        day=day,
        reports=options.reports,
        display=terminal,
        confirm=terminal.confirm,
        confirm_undo=terminal.confirm_undo,
        by=who(),
        ask_approval=terminal.ask_approval,
        cluster=cluster_name(day, path),
        id=options.id,
        seed=options.seed,
        scheduled=options.scheduled,
        report_url=options.report_url,
    )
    try:
        state = run_day(request, inventory, GateEvaluator())
    except Interrupted as error:
        echo(f"interrupted by {error}: run the same command again to continue the day", err=True)
        return 128 + error.signum
    if options.as_json:
        click.echo(to_json(to_document(state)))
    else:
        echo(*render(state))
    return int(exit_code(state))


def day_inventory(day: LoadedGameDay, option: str | None) -> Path:
    """The inventory of the option, the environment, or of the day's only cluster. Raises UsageError."""
    if option or os.environ.get(ENV_INVENTORY):
        return inventory_path(option)
    if only := only_inventory(day):
        return only
    names = ", ".join(f"{name} ({path})" for name, path in day.inventories.items())
    hint = f"one of {names}" if names else f"or set {ENV_INVENTORY}"
    raise UsageError("no inventory: give --inventory FILE", hint=hint)


def check_id(day: str) -> None:
    """Raises UsageError for an ID that is no name."""
    if day and not re.fullmatch(DAY_NAME, day):
        raise UsageError(f"--id {day!r}: use letters, digits, dots and dashes, at most 63 of them")


def check_report_url(url: str) -> None:
    """Raises UsageError if links to reports cannot begin with this URL."""
    if url and not re.fullmatch(REPORT_URL, url):
        raise UsageError(f"--report-url {url!r}: not a URL of http or https without a query")


def who() -> str:
    """Who works here, as login@machine."""
    return f"{login()}@{os.uname().nodename}"
