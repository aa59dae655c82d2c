"""The work of one process on a game day: what all its parts share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from chaos.app.day.document import LoadedEntry, LoadedGameDay
from chaos.app.day.stop import DayStop
from chaos.app.day.store import DayStore, day_time, existing
from chaos.app.run.experiment import Confirm
from chaos.app.undo.finish import ConfirmEntries
from chaos.core.duration import timestamp
from chaos.core.errors import NodefallError
from chaos.core.ports import Progress
from chaos.engine.connection import ClusterConnection
from chaos.gameday.calendar import Calendar
from chaos.gameday.events import NoNotifier, Notifier
from chaos.gameday.outline import planned_moment
from chaos.gameday.state import DayRun, DayState, RunKey
from chaos.gameday.transitions import halt

logger = logging.getLogger(__name__)
# An API server that a fault has stopped may take this long to answer again; wall seconds.
PATIENCE = 300.0
BY_ABORT_CONDITION = "an abort condition"


class RunProgress(Progress, Protocol):
    """Progress that is closed at the end of its run."""

    def close(self) -> None: ...


class DayDisplay(Protocol):
    """What people see of a day."""

    def note(self, text: str) -> None:
        """One line."""

    def open_progress(self) -> RunProgress:
        """The progress of one run."""


AskApproval = Callable[[Sequence[str], str, str], str]
"""Called with the persons who may approve, what is to be approved and the plan's hash; who approves, "" for no one."""


def ask_no_one(persons: Sequence[str], what: str, plan_hash: str) -> str:  # noqa: ARG001 - an AskApproval
    """There is no terminal to ask on."""
    return ""


@dataclass(frozen=True, slots=True)
class DayRequest:
    """What to run. ``cluster``: its name in the document, "" for one that the document does not list.

    ``id``: names the day, "" for the date. ``scheduled``: go on with a day that is not finished, else begin one only if
    a start of its schedule is due. ``confirm``: of each run's plan. ``confirm_undo``: of operations for which
    only the cluster's journal vouches. ``by``: login@machine of who runs it. ``report_url``: where people find
    ``reports``, "" if nowhere.
    """

    day: LoadedGameDay
    reports: Path
    display: DayDisplay
    confirm: Confirm
    confirm_undo: ConfirmEntries
    by: str
    ask_approval: AskApproval = ask_no_one
    cluster: str = ""
    id: str = ""
    seed: int | None = None
    scheduled: bool = False
    report_url: str = ""


@dataclass
class DaySession:
    """``state`` is what was read or written last. Every change of it goes through :meth:`update`.

    ``epoch`` is that of this process, which took the day over in ``state``: it stays when a successor raises that of
    the stored state. ``violated``: which abort condition of the day is violated now, between two runs, and why; "" for
    none.
    """

    request: DayRequest
    connection: ClusterConnection
    store: DayStore
    stop: DayStop
    state: DayState
    notifier: Notifier = field(default_factory=NoNotifier)
    violated: Callable[[], str] = lambda: ""
    epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.epoch = self.state.epoch

    @property
    def calendar(self) -> Calendar:
        return Calendar(self.request.day.document.spec.window)

    @property
    def has_abort(self) -> bool:
        """Whether the day has abort conditions."""
        return bool(self.request.day.document.spec.abort)

    @property
    def entries(self) -> Mapping[str, LoadedEntry]:
        """By name."""
        return {entry.name: entry for entry in self.request.day.entries}

    def now(self) -> float:
        """Seconds since the epoch, in cluster time."""
        return day_time(self.connection)

    def moment(self) -> datetime:
        """Now."""
        return datetime.fromtimestamp(self.now(), UTC)

    def find(self, key: RunKey) -> DayRun:
        """A run of the day in the last known state."""
        return next(run for run in self.state.runs if run.key == key)

    def update(self, change: Callable[[DayState], DayState], patience: float = PATIENCE) -> DayState:
        """Change the stored state. Raises NodefallError, StateConflict if another process has taken the day over.

        A halt that is found in it stops the work, as one that the watch finds.
        After a signal it does not wait for an API server: the same command recovers the day from any state.
        """
        self.state = self.store.update(existing(change, self.epoch), patience, lambda: self.stop.signum is not None)
        if self.state.halt and not self.stop.halt:
            self.stop.on_halt(self.state.halt)
        return self.state

    def refresh(self, patience: float = PATIENCE) -> None:
        """Read the state again: others may have halted the day, or approved it. Raises as :meth:`update`."""
        self.update(lambda state: state, patience)

    def halt(self, by: str, reason: str) -> None:
        """Halt the day. Raises DayHalted."""
        self.update(partial(halt, by=by, reason=reason, now=self.now()))
        self.stop.check()

    def check_abort(self) -> None:
        """Halt the day if an abort condition is violated. Raises DayHalted."""
        try:
            why = self.violated()
        except NodefallError as error:
            logger.warning("the abort conditions could not be judged: %s", error.message)
            return
        if why:
            self.halt(BY_ABORT_CONDITION, why)

    def note(self, text: str) -> None:
        """Show a line with the cluster's time, and log it."""
        logger.info("%s", text)
        self.request.display.note(f"{timestamp(self.now())}  {text}")

    def describe(self, moment: datetime) -> str:
        """A moment in the zone of the window, and in UTC."""
        planned = planned_moment(moment, self.calendar)
        return planned.utc if planned.local.endswith("+00:00") else f"{planned.local} ({planned.utc})"
