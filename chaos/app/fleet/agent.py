"""A thread for each cluster of a fleet: it looks at the cluster, and brings it to what is wanted of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from chaos.app.fleet.member import Member
from chaos.core.clock.system import uptime
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.threads import ContextThread
from chaos.gameday.fleet_state import Assessment, Observation, Phase, assess

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
