"""Runs a game day from the command line, and prints its end."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import click

from chaos.app.day.document import LoadedGameDay, cluster_name, load_game_day, only_inventory
from chaos.app.day.gates import GateEvaluator
from chaos.app.day.runner import run_day
from chaos.app.day.session import DayRequest
from chaos.app.wiring.connect import ENV_INVENTORY, inventory_path
from chaos.cli.gameday.day_text import render, to_document, to_json
from chaos.cli.gameday.terminal import DayTerminal
from chaos.cli.log_options import is_verbose
from chaos.cli.output import echo
from chaos.cli.run.gc_tuning import tune_gc
from chaos.core.errors import UsageError
from chaos.documents.inventory import load_inventory
from chaos.engine.connection import login
from chaos.engine.stop import Interrupted
from chaos.gameday.state import DAY_NAME, exit_code


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


def run_and_report(options: DayOptions) -> int:
    """Run the day, print how it ended, and return the exit code. Raises NodefallError."""
    tune_gc()
    check_id(options.id)
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
    )
    try:
        state = run_day(request, inventory, GateEvaluator())
    except Interrupted as error:
        echo(f"interrupted by {error}: the same command goes on with the day", err=True)
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


def who() -> str:
    """Who works here, as login@machine."""
    return f"{login()}@{os.uname().nodename}"
