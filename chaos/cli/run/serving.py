"""The live page of ``nodefall run --serve``."""

# ruff: noqa: PLC0415 - the server is slow to import, and most runs serve nothing
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from chaos.app.run.results import Run
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.core.ports import Progress, RunWatcher
from chaos.core.text import escape_for_encoding
from chaos.engine.load import LoadedExperiment

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
