"""Runs an experiment from the command line, with its live page, and prints its result."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from chaos.api import load, run
from chaos.app.run.results import Run
from chaos.cli.inventory import command_inventory
from chaos.cli.lazy import is_verbose, seconds_of
from chaos.cli.output import echo_document, open_page, print_error, tune_gc, wants_color
from chaos.cli.run.live import BestEffortProgress, make_progress
from chaos.cli.run.plan import ask
from chaos.core.errors import UsageError, bad_input
from chaos.core.files import MAX_BYTES, missing_file_hint
from chaos.core.inventory import Inventory
from chaos.core.plan import RUN_ID, Plan
from chaos.core.ports import Progress, RunWatcher
from chaos.core.text import escape_for_encoding
from chaos.core.trusted_files import read_trusted
from chaos.engine.load import LoadedExperiment
from chaos.reports.run import json_
from chaos.reports.run.summary import summary

if TYPE_CHECKING:
    from chaos.reports.live.feed import LiveFeed
    from chaos.reports.live.server import LiveServer


@dataclass(frozen=True, slots=True)
class RunPage:
    """The live page of a run, if it has one."""

    feed: LiveFeed | None = None
    server: LiveServer | None = None

    @property
    def watcher(self) -> RunWatcher | None:
        return self.feed

    def progress(self, progress: Progress) -> Progress:
        """Progress that is shown on the page, too."""
        return self.feed.progress(progress) if self.feed else progress

    def finish(self, run: Run) -> None:
        """Let the page become the report of the finished run."""
        if self.server is None:
            return
        report = ""
        with suppress(OSError):  # a note of the result says that it could not be written
            report = run.report.read_text(encoding="utf-8")
        self.server.finish(report, f"The run has ended without a report: {run.result.headline}")


NO_PAGE = RunPage()


@contextmanager
def live_page(address: str | None, experiment: Plan | LoadedExperiment, inventory: Inventory) -> Iterator[RunPage]:
    """Serve the live page of a run for the block. Raises UsageError for an address that cannot be had."""
    if address is None:
        yield NO_PAGE
        return
    from chaos.reports.live.access import parse_address
    from chaos.reports.live.feed import LiveFeed
    from chaos.reports.live.server import LiveServer

    name, title = _names(experiment)
    feed = LiveFeed(name, inventory.metadata.name)
    with LiveServer(parse_address(address), feed, title) as server:
        announce(server)
        yield RunPage(feed, server)


def announce(server: LiveServer) -> None:
    """Print where the page is, once: the address has the token."""
    lines = [f"live page: {server.url}"]
    if not server.is_private:
        lines.append("whoever has this address can watch the run and stop it; it is not encrypted on the way")
    with suppress(OSError):
        for line in lines:
            click.echo(escape_for_encoding(line, sys.stderr.encoding), err=True)


def _names(experiment: Plan | LoadedExperiment) -> tuple[str, str]:
    """Name and title; a saved plan has no title."""
    if isinstance(experiment, Plan):
        return experiment.experiment, experiment.experiment
    return experiment.experiment.metadata.name, experiment.experiment.spec.title


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
    serve: str | None = None


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How a run is shown: lines on a terminal, too; the result as JSON; no progress."""

    plain: bool = False
    as_json: bool = False
    quiet: bool = False


def run_and_report(options: RunOptions, output: OutputOptions) -> int:
    """Run, print the result on stdout, and return the exit code. Raises NodefallError.

    With JSON on stdout, the summary for people is on stderr, and left out if ``quiet``.
    """
    tune_gc()
    experiment, inventory = load_inputs(options)
    with live_page(options.serve, experiment, inventory) as page:
        done = run_once(options, experiment, inventory, options.seed, output, page)
        exit_code = print_result(done, output)
        with suppress(KeyboardInterrupt):  # the run is over, and its exit code stays; only the wait for pages ends
            page.finish(done)
    return exit_code


def print_result(done: Run, output: OutputOptions) -> int:
    """Print the result on stdout; the exit code."""
    exit_code = done.result.exit_code
    stream = sys.stderr if output.as_json else sys.stdout
    text = summary(done.result, report=str(done.report), color=wants_color(stream))
    if not output.as_json:
        return echo_document(escape_for_encoding(text, sys.stdout.encoding or "utf-8"), exit_code)
    if not output.quiet:
        print_error(text)
    return echo_document(json_.render(done.result, done.timeline), exit_code)


def load_inputs(options: RunOptions) -> tuple[Plan | LoadedExperiment, Inventory]:
    """The saved plan or the experiment, and the inventory. Raises NodefallError."""
    if options.max_duration:
        seconds_of("--max-duration", options.max_duration)
    if options.record and not options.record.parent.is_dir():
        raise UsageError(f"--record: no directory {options.record.parent}")
    plan = _load_plan(options)
    experiment = plan or load(_experiment(options)).with_max_duration(options.max_duration)
    return experiment, command_inventory(options.inventory)


def run_once(
    options: RunOptions,
    experiment: Plan | LoadedExperiment,
    inventory: Inventory,
    seed: int | None,
    output: OutputOptions,
    page: RunPage = NO_PAGE,
    series: str = "",
) -> Run:
    """One run, with its progress on stderr and on ``page``; its report is opened if a person asked for it.

    Raises NodefallError.
    """
    plain = output.plain or is_verbose()
    progress = BestEffortProgress(make_progress(sys.stderr, force_plain=plain, quiet=output.quiet))
    try:
        if inventory.lab:
            progress.note("starting the lab, a simulated cluster")
        done = run(
            experiment,
            inventory,
            seed=seed,
            reports=options.reports,
            agree=partial(ask, progress=progress, yes=options.yes),
            progress=page.progress(progress),
            record=options.record,
            anyway=options.anyway,
            watcher=page.watcher,
            series=series,
        )
    finally:
        progress.close()
    open_report(progress, done)
    return done


def open_report(progress: BestEffortProgress, done: Run) -> None:
    """Open the report if a person asked for it."""
    if progress.opens_report and not open_page(done.report):
        print_error(f"no browser found to open the report with: set BROWSER, or open {done.report} yourself\n")


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
        plan = msgspec.json.decode(read_trusted(options.plan, MAX_BYTES), type=Plan)
    except FileNotFoundError as error:
        raise bad_input(str(options.plan), "file not found", missing_file_hint(options.plan)) from error
    except OSError as error:
        raise bad_input(str(options.plan), f"cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = "make one with nodefall plan --out FILE"
        raise bad_input(str(options.plan), f"invalid plan: {error}", hint) from error
    if not re.fullmatch(RUN_ID, plan.run):  # used in paths
        raise bad_input(str(options.plan), f"invalid plan: {plan.run!r} is not a valid run ID")
    return plan
