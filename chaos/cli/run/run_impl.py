"""Starting a run from the command line, and telling how it ended."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

import click
import msgspec

import chaos.report
from chaos.api import load, run
from chaos.app.connect import inventory_path
from chaos.cli.run.confirm import ask
from chaos.cli.run.progress import BestEffortProgress, make_progress
from chaos.load.inventory import load_inventory
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit, UsageError, bad_input
from chaos.model.plan import RUN_ID, Plan
from chaos.model.registry import discover
from chaos.model.text import escape_for_encoding
from chaos.report.summary import summary


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command line's wishes; ``plan`` is the file of one that was made before, instead of an experiment."""

    experiment: Path | None
    inventory: str | None
    reports: Path
    seed: int | None = None
    max_duration: str | None = None
    record: Path | None = None
    plan: Path | None = None
    yes: bool = False
    anyway: bool = False


def run_and_report(wish: RunOptions, plain: bool, as_json: bool) -> int:
    """Run, report, and return the exit code. Raises NodefallError before anything was touched."""
    if wish.max_duration:
        try:
            parse_duration(wish.max_duration)
        except ValueError as error:
            raise UsageError(f"--max-duration: {error}") from error
    if wish.record and not wish.record.parent.is_dir():
        raise UsageError(f"--record: there is no directory {wish.record.parent}")
    kept = _load_plan(wish)
    experiment = kept or load(_experiment(wish)).with_max_duration(wish.max_duration)
    inventory = load_inventory(inventory_path(wish.inventory))
    progress = BestEffortProgress(make_progress(sys.stderr, force_plain=plain))
    try:
        if inventory.lab:
            progress.note("starting the lab, a simulated cluster")
        done = run(
            experiment,
            inventory,
            seed=wish.seed,
            reports=wish.reports,
            agree=partial(ask, progress=progress, yes=wish.yes),
            progress=progress,
            record=wish.record,
            anyway=wish.anyway,
        )
    finally:
        progress.close()
    result = done.result
    words = summary(result, report=str(done.report), color=wants_color(sys.stderr))
    with suppress(OSError):  # nobody reads it, or the disk is full: the exit code still tells
        click.echo(escape_for_encoding(words, sys.stderr.encoding), err=True, nl=False)
    if as_json:
        told = discover(chaos.report, "RENDERER")["json"].render(result, done.timeline)
        try:
            click.echo(told, nl=False)
        except BrokenPipeError:  # nobody wants it
            return result.exit_code
        except OSError:
            return result.exit_code or Exit.INCONCLUSIVE
    return result.exit_code


def wants_color(stream: TextIO) -> bool:
    """True for a terminal that shows colours, unless NO_COLOR is set (no-color.org: to anything but "")."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def _experiment(wish: RunOptions) -> Path:
    if wish.experiment is None:
        raise UsageError("give an EXPERIMENT or --plan FILE", hint="nodefall run --help")
    return wish.experiment


def _load_plan(wish: RunOptions) -> Plan | None:
    """The plan of --plan. Raises UsageError, BadInput."""
    if wish.plan is None:
        return None
    if wish.experiment is not None or wish.seed is not None or wish.max_duration:
        raise UsageError("--plan says it all: give neither EXPERIMENT nor --seed nor --max-duration with it")
    try:
        kept = msgspec.json.decode(wish.plan.read_bytes(), type=Plan)
    except OSError as error:
        raise bad_input(str(wish.plan), f"cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise bad_input(
            str(wish.plan), f"this is no plan: {error}", "make one with nodefall plan --out FILE"
        ) from error
    if not re.fullmatch(RUN_ID, kept.run):  # paths are made of it
        raise bad_input(str(wish.plan), f"this is no plan: no run is called {kept.run!r}")
    return kept
