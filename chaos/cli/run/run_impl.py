"""Runs an experiment from the command line, and prints its result."""

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

from chaos.api import load, run
from chaos.app.connect import inventory_path
from chaos.app.run import Run
from chaos.cli.log_options import is_verbose
from chaos.cli.run.confirm import ask
from chaos.cli.run.gc_tuning import tune_gc
from chaos.cli.run.progress import BestEffortProgress, make_progress
from chaos.load.inventory import load_inventory
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit, UsageError, bad_input
from chaos.model.file_trust import refuse_writable_by_others
from chaos.model.legacy import decode_plan
from chaos.model.plan import RUN_ID, Plan
from chaos.model.text import escape_for_encoding
from chaos.report import json_
from chaos.report.summary import summary


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of the command; ``plan`` is the file of a saved plan, instead of an experiment."""

    experiment: Path | None
    inventory: str | None
    reports: Path
    seed: int | None = None
    max_duration: str | None = None
    record: Path | None = None
    plan: Path | None = None
    yes: bool = False
    anyway: bool = False


def run_and_report(options: RunOptions, plain: bool, as_json: bool) -> int:
    """Run, print the result, and return the exit code. Raises NodefallError."""
    tune_gc()
    if options.max_duration:
        try:
            parse_duration(options.max_duration)
        except ValueError as error:
            raise UsageError(f"--max-duration: {error}") from error
    if options.record and not options.record.parent.is_dir():
        raise UsageError(f"--record: no directory {options.record.parent}")
    plan = _load_plan(options)
    experiment = plan or load(_experiment(options)).with_max_duration(options.max_duration)
    inventory = load_inventory(inventory_path(options.inventory))
    progress = BestEffortProgress(make_progress(sys.stderr, force_plain=plain or is_verbose()))
    try:
        if inventory.lab:
            progress.note("starting the lab, a simulated cluster")
        done = run(
            experiment,
            inventory,
            seed=options.seed,
            reports=options.reports,
            agree=partial(ask, progress=progress, yes=options.yes),
            progress=progress,
            record=options.record,
            anyway=options.anyway,
        )
    finally:
        progress.close()
    result = done.result
    text = summary(result, report=str(done.report), color=wants_color(sys.stderr))
    with suppress(OSError):  # stderr is closed, or the disk is full: the exit code still reports the result
        click.echo(escape_for_encoding(text, sys.stderr.encoding), err=True, nl=False)
    return _echo_json(done) if as_json else result.exit_code


def _echo_json(done: Run) -> int:
    """Print the result; the exit code, which is not 0 if the write fails."""
    document = json_.render(done.result, done.timeline)
    try:
        click.echo(document, nl=False)
    except BrokenPipeError:  # stdout was closed
        return done.result.exit_code
    except OSError:
        return done.result.exit_code or Exit.INCONCLUSIVE
    return done.result.exit_code


def wants_color(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal with colors, and NO_COLOR is unset or empty (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def _experiment(options: RunOptions) -> Path:
    if options.experiment is None:
        raise UsageError("missing argument: give an EXPERIMENT or --plan FILE", hint="see nodefall run --help")
    return options.experiment


def _load_plan(options: RunOptions) -> Plan | None:
    """The saved plan of --plan, None without it. Raises UsageError, BadInput."""
    if options.plan is None:
        return None
    if options.experiment is not None or options.seed is not None or options.max_duration:
        raise UsageError("--plan cannot be combined with EXPERIMENT, --seed or --max-duration")
    try:
        refuse_writable_by_others(str(options.plan), options.plan.stat())
        plan = decode_plan(options.plan.read_bytes())
    except OSError as error:
        raise bad_input(str(options.plan), f"cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = "make one with nodefall plan --out FILE"
        raise bad_input(str(options.plan), f"invalid plan: {error}", hint) from error
    if not re.fullmatch(RUN_ID, plan.run):  # used in paths
        raise bad_input(str(options.plan), f"invalid plan: {plan.run!r} is not a valid run ID")
    return plan
