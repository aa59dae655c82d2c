"""Lists the stored runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click

from chaos import __version__
from chaos.cli.output import echo_encodable
from chaos.core.store.run_history import read_runs
from chaos.core.stored_run import StoredRun
from chaos.reports.run.summary import run_row, runs_table


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are listed; None and an empty set leave everything in. Times in seconds since the epoch."""

    experiment: str | None = None
    verdicts: frozenset[str] = frozenset()
    cluster: str | None = None
    since: float | None = None
    until: float | None = None

    def admits(self, run: StoredRun) -> bool:
        """Whether the run is listed. One whose start is unknown is in no range of times."""
        if self.since is not None and (run.started is None or run.started < self.since):
            return False
        if self.until is not None and (run.started is None or run.started >= self.until):
            return False
        return (
            self.experiment in (None, run.experiment)
            and (not self.verdicts or run.verdict in self.verdicts)
            and (self.cluster is None or run.is_on(self.cluster))
        )


def list_runs(reports: Path, run_filter: RunFilter, as_json: bool) -> None:
    """Print the runs."""
    runs = read_runs(reports)
    listed = [run for run in runs if run_filter.admits(run)]
    if as_json:
        click.echo(json.dumps({"runs": [run_row(run) for run in listed]}, indent=2))
    elif listed:
        echo_encodable(*runs_table(listed, __version__))
    else:
        click.echo(
            f"no runs in {reports}" if not runs else f"none of the {len(runs)} runs in {reports} matches", err=True
        )
