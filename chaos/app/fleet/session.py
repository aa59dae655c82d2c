"""The work of one process on a fleet: its state in the home, and an agent for each cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from chaos.app.day.stop import DayStop
from chaos.app.day.store import DayStore, day_time, existing
from chaos.app.fleet.agent import Agent
from chaos.app.fleet.loading import LoadedFleet
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.duration import timestamp
from chaos.core.errors import Aborted, Refused
from chaos.engine.connection import ClusterConnection
from chaos.gameday.fleet_state import Assessment, Observation
from chaos.gameday.state import DayRun, DayState

PATIENCE = 60.0  # wall seconds for the API server of the home
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster as it stands. ``run``: of the fleet's state."""

    name: str
    run: DayRun
    assessment: Assessment
    observation: Observation


class FleetDisplay(Protocol):
    """What people see of a fleet."""

    def note(self, text: str) -> None:
        """One line."""

    def show(self, state: DayState, rows: Sequence[ClusterRow]) -> None:
        """How all clusters stand now."""


ConfirmFleet = Callable[[LoadedFleet, Mapping[str, str]], None]
"""Called with the fleet, and the server of each cluster that was reached, before the first Job. Raises Refused."""


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """What to run. ``id``: names the day in every cluster, "" for the date.

    ``keep``: what was applied is not deleted.
    """

    fleet: LoadedFleet
    reports: Path
    display: FleetDisplay
    confirm: ConfirmFleet
    id: str = ""
    keep: bool = False


@dataclass
class FleetSession:
    """``state`` is what was read or written last; ``epoch`` is that of this process, whatever others have stored.

    ``violation``: why no further cluster begins, "" if nothing was violated.
    """

    request: FleetRequest
    home: ClusterConnection
    store: DayStore
    lock: ClusterLock
    stop: DayStop
    state: DayState
    agents: Mapping[str, Agent] = field(default_factory=dict)  # by the name of the cluster
    epoch: int = field(init=False)
    violation: str = ""

    def __post_init__(self) -> None:
        self.epoch = self.state.epoch

    @property
    def rows(self) -> list[ClusterRow]:
        """All clusters, in the order of the document."""
        found = []
        for run in self.state.runs:
            inspection = self.agents[run.key.cluster].inspection
            found.append(ClusterRow(run.key.cluster, run, inspection.assessment, inspection.observation))
        return found

    def now(self) -> float:
        """Seconds since the epoch, by the clock of the home."""
        return day_time(self.home)

    def update(self, change: Callable[[DayState], DayState]) -> None:
        """Change the stored state. Raises NodefallError, StateConflict if another process has taken the fleet over."""
        self.state = self.store.update(existing(change, self.epoch), PATIENCE, lambda: self.stop.signum is not None)

    def permit(self, is_first: bool) -> None:
        """The last check before a Job is created. Raises Aborted, and Refused after a violation.

        ``is_first``: the day has not begun there; otherwise an undo may be pending, which a violation must not keep.
        """
        if self.stop.is_set:
            raise Aborted("the fleet stops")
        if is_first and self.violation:
            raise Refused(f"stopped: {self.violation}")
        self.lock.check()

    def note(self, text: str) -> None:
        """Show a line with the time, and log it."""
        logger.info("%s", text)
        self.request.display.note(f"{timestamp(self.now())}  {text}")
