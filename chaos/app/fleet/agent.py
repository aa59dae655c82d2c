"""The work of one process on a fleet: its state in the home, and a thread for each cluster, which acts on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from chaos.app.day.stop import DayStop
from chaos.app.day.store import DayStore, day_time, existing
from chaos.app.fleet.loading import LoadedFleet
from chaos.app.fleet.member import Member
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.clock.system import uptime
from chaos.core.duration import timestamp
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.threads import ContextThread
from chaos.engine.connection import ClusterConnection
from chaos.gameday.fleet_state import Assessment, Observation, Phase, assess
from chaos.gameday.state import DayRun, DayState

PERIOD = 2.0  # wall seconds between two looks
STALE = 45.0  # wall seconds after which a look is too old: longer than a request may take
_BY = "the fleet"
_log = logging.getLogger(__name__)


class Wanted(StrEnum):
    """What is wanted of a cluster. ``cancel``: its Job is deleted, as its pod does not begin."""

    WATCH = "watch"
    RUN = "run"
    HALT = "halt"
    CANCEL = "cancel"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Inspection:
    """A look at a cluster. ``since``: when it was first seen in this phase; both in seconds of uptime.

    ``has_created``: whether this process had created a Job before it looked. ``problem``: of what it tried last.
    ``given_up``: why no Job is created, "" if that was not refused. ``is_clean``: what was applied is deleted.
    """

    at: float
    since: float
    observation: Observation
    assessment: Assessment
    has_created: bool = False
    problem: str = ""
    given_up: str = ""
    is_clean: bool = False


class Agent:
    """The thread of one cluster; it creates at most one Job.

    ``permit`` raises NodefallError if none may begin now; it is called with whether the day has not begun there.
    """

    def __init__(
        self, member: Member, day: str, permit: Callable[[bool], None], on_crash: Callable[[BaseException], None]
    ) -> None:
        self.member = member
        self._has_created = self._is_clean = False
        self._problem = self._given_up = ""
        self._day, self._permit, self._on_crash = day, permit, on_crash
        self._wanted, self._why = Wanted.WATCH, ""
        self._inspection: Inspection | None = None
        self._begun = uptime()
        self._ended, self._woken = threading.Event(), threading.Event()
        self._thread = ContextThread(self._run, f"fleet {member.name}")

    def start(self) -> None:
        self._thread.start()

    def want(self, wanted: Wanted, why: str = "") -> None:
        """Set what is wanted; ``why``: the reason of a halt."""
        if wanted is not self._wanted:
            self._wanted, self._why = wanted, why
            self._woken.set()

    @property
    def wanted(self) -> Wanted:
        return self._wanted

    @property
    def is_waiting(self) -> bool:
        """Whether it has not seen its cluster yet."""
        return self._inspection is None

    def stop(self) -> None:
        """Begin to stop; :meth:`join` waits for it."""
        self._ended.set()
        self._woken.set()

    def join(self, seconds: float) -> None:
        """Wait at most this long: a request may hang, and nothing is lost with it."""
        self._thread.join(seconds)

    @property
    def inspection(self) -> Inspection:
        """The last look; unknown if there was none, or it is too old."""
        inspection, now = self._inspection, uptime()
        if inspection is not None and now - inspection.at <= STALE:
            return inspection
        since = self._begun if inspection is None else inspection.at
        why = (
            "it has not answered yet" if inspection is None else f"it has not answered for {now - inspection.at:.0f} s"
        )
        return Inspection(now, since, Observation(error=why), Assessment(Phase.UNKNOWN, why))

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._collect()
                self._reconcile()
                self._woken.wait(PERIOD)
                self._woken.clear()
            self.member.close()
        except Exception as error:  # noqa: BLE001 - a cluster that is not watched must end the fleet
            _log.exception("the watch of %s crashed", self.member.name)
            self._on_crash(error)

    def _collect(self) -> None:
        known = (self._has_created, self._problem, self._given_up, self._is_clean)
        observation = self.member.observe(self._day)
        assessment = assess(observation, self._day, self.member.plan_hash)
        now, before = uptime(), self._inspection
        is_same = before is not None and before.assessment.phase is assessment.phase
        since = before.since if is_same and before else now
        self._inspection = Inspection(now, since, observation, assessment, *known)

    def _reconcile(self) -> None:
        """One attempt; a problem is tried again after the next look."""
        inspection = self._inspection
        if inspection is None or inspection.assessment.phase is Phase.UNKNOWN:
            return
        try:
            self._change(inspection)
            self._problem = ""
        except NodefallError as error:
            self._problem = error.message
            _log.info("%s: %s: %s", self.member.name, self._wanted, error.message)

    def _change(self, inspection: Inspection) -> None:
        phase = inspection.assessment.phase
        if (
            self._wanted is Wanted.RUN
            and phase in (Phase.IDLE, Phase.STUCK)
            and not (self._has_created or self._given_up)
        ):
            self._create(is_first=phase is Phase.IDLE)
            self._woken.set()  # look at once
        elif self._wanted is Wanted.HALT:
            self.member.halt(_BY, self._why)
        elif self._wanted is Wanted.CANCEL and phase is Phase.STARTING and inspection.observation.job:
            self.member.delete(inspection.observation.job)
            self._given_up = self._why
            self._woken.set()
        elif self._wanted is Wanted.CLEAN and not self._is_clean:
            self.member.clean()
            self._is_clean = True

    def _create(self, *, is_first: bool) -> None:
        def permit() -> None:
            if self._ended.is_set():
                raise Aborted("the fleet is no longer watched from here")
            self._permit(is_first)

        try:
            permit()
            self.member.check()
            self.member.start(self._day, permit)
        except Refused as error:
            self._given_up = error.message
            raise
        self._has_created = True


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
