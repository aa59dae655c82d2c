"""A fleet on the terminal: a table of all clusters that is renewed, or a line for each change."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table

from chaos.app.fleet.loading import LoadedFleet
from chaos.app.fleet.session import ClusterRow
from chaos.cli.confirm_name import confirm_name
from chaos.cli.output import echo_progress
from chaos.cli.run.progress import can_redraw
from chaos.core.text import escape_for_encoding, printable
from chaos.gameday.state import DayState, RunStatus, describe

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
