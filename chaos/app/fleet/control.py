"""Looks at all clusters of a fleet, halts them and lets them go on: from any machine, whether a coordinator lives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from chaos.app.day.document import cluster_name, current_time
from chaos.app.day.report import record_of, store_record
from chaos.app.day.store import DayStore, day_store, existing, hold_day_lock, unless_finished
from chaos.app.fleet.loading import LoadedCluster, LoadedFleet
from chaos.app.fleet.member import Member
from chaos.app.wiring.connect import connect_cluster
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.threads import ContextPool
from chaos.engine.connection import ClusterConnection
from chaos.gameday.fleet_document import MAX_CLUSTERS
from chaos.gameday.fleet_state import Assessment, Observation, assess, day_of, fleet_day_name
from chaos.gameday.state import DayRun, DayState, DayStatus, RunStatus, runs_on
from chaos.gameday.transitions import end, halt, resume

T = TypeVar("T")
_POLL = 1.0  # wall seconds


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet as it stands. ``state``: that in its home, None if nothing of it has begun; ``clusters``: by name."""

    state: DayState | None
    clusters: dict[str, tuple[Assessment, Observation]]


@dataclass(frozen=True, slots=True)
class FleetHalt:
    """Who halts the fleet and why. ``seconds``: how long to wait. ``for_good``: nothing of it ever begins.

    ``keep``: what was applied is not deleted.
    """

    by: str
    reason: str
    seconds: float
    for_good: bool = False
    keep: bool = False


def view_fleet(fleet: LoadedFleet) -> FleetView:
    """Look at every cluster at the same time. Raises NodefallError if the home cannot be read."""
    state = read_home(fleet)
    day = state.day if state else ""

    def collect(member: Member) -> tuple[Assessment, Observation]:
        observation = member.observe(day or _last_day(member))
        seen = observation.state.day if observation.state else ""
        return assess(observation, day or seen, member.plan_hash), observation

    return FleetView(state, _each(fleet, collect))


def read_home(fleet: LoadedFleet) -> DayState | None:
    """The state of the fleet, None if nothing of it has begun. Raises NodefallError."""
    with connect_cluster(fleet.home.inventory) as home:
        return _home_store(fleet, home).read()


def halt_fleet(fleet: LoadedFleet, wanted: FleetHalt, note: Callable[[str], object]) -> dict[str, str]:
    """Halt the fleet and all its clusters at the same time; what is not proven to be at rest, by cluster, and why.

    No cluster waits for another one, nor for the home.
    """

    def at_home() -> str:
        with connect_cluster(fleet.home.inventory) as home:
            store = _home_store(fleet, home)
            state = store.read()
            if state is None or state.status is DayStatus.FINISHED:
                return ""
            act = partial(end if wanted.for_good else halt, by=wanted.by, reason=wanted.reason, now=store.now())
            store.update(unless_finished(act))
        note(f"the fleet {fleet.document.metadata.name} is halted")
        return ""

    def at_cluster(member: Member) -> str:
        left = _halt_member(member, wanted)
        note(f"{member.name}: {left or 'nothing runs'}")
        return left

    with ContextPool(1) as pool:
        home = pool.submit(_describe_error, at_home)
        left = _each(fleet, lambda member: _describe_error(partial(at_cluster, member)))
        problem = home.result()
    if problem:
        note(f"the fleet itself is not halted: {problem}")
        left[f"home {fleet.home.name}"] = problem
    return {name: why for name, why in left.items() if why}


def pending_undo(fleet: LoadedFleet) -> tuple[str, ...]:
    """The runs whose undo is pending in any cluster that can be read."""
    found = _each(fleet, lambda member: member.observe(_last_day(member)).pending_undo)
    return tuple(run for runs in found.values() for run in runs)


def resume_fleet(fleet: LoadedFleet, by: str, reason: str, note: Callable[[str], object]) -> dict[str, str]:
    """Let a halted fleet continue, its clusters first; those that could not be resumed, and why.

    Then the fleet stays halted. Raises UsageError if it is not halted, Refused while a process still halts it: that one
    would halt the clusters again.
    """
    name = fleet_day_name(fleet.document.metadata.name)
    with connect_cluster(fleet.home.inventory) as home, hold_day_lock(home, name, note):
        return _resume_unwatched(fleet, _home_store(fleet, home), by, reason, note)


def _resume_unwatched(
    fleet: LoadedFleet, store: DayStore, by: str, reason: str, note: Callable[[str], object]
) -> dict[str, str]:
    state = store.read()
    if state is None or state.halt is None:
        raise UsageError(f"the fleet {fleet.document.metadata.name} is not halted")
    begun = {run.key.cluster for run in state.runs if run.status is RunStatus.RUNNING}

    def at_cluster(member: Member) -> str:
        if member.name in begun and member.resume(state.day, by, reason):
            note(f"{member.name} may go on")
        return ""

    results = _each(fleet, lambda member: _describe_error(partial(at_cluster, member)))
    problems = {name: why for name, why in results.items() if why}
    if not problems:
        store.update(existing(lambda day: resume(day, by, reason, store.now())))
    return problems


def _halt_member(member: Member, wanted: FleetHalt) -> str:
    """Halt a cluster and wait until nothing runs; what still does, "" for nothing. Raises NodefallError.

    An API server that does not answer is read again: a fault may have stopped it.
    """
    with closing(SystemClock()) as clock:
        deadline = clock.now() + wanted.seconds
        while left := _try_halt(member, wanted):
            if clock.now() >= deadline:
                return left
            clock.sleep(_POLL)
    if not wanted.keep:
        member.clean()
    return ""


def _try_halt(member: Member, wanted: FleetHalt) -> str:
    try:
        return member.halt(wanted.by, wanted.reason, for_good=wanted.for_good)
    except Refused:
        raise
    except NodefallError as error:
        return error.message


def _last_day(member: Member) -> str:
    """The ID of the last day there; "" for none, or if it cannot be read, which the look reports."""
    try:
        state = member.read_day()
    except NodefallError:
        return ""
    return state.day if state else ""


def _each(fleet: LoadedFleet, act: Callable[[Member], T]) -> dict[str, T]:
    """Do the same to every cluster at the same time."""

    def on(member: Member) -> T:
        with closing(member):
            return act(member)

    members = [Member(fleet, cluster) for cluster in fleet.clusters]
    with ContextPool(MAX_CLUSTERS) as pool:  # none waits for another one, as a halt waits for the undo
        results = list(pool.map(on, members))
    return {member.name: result for member, result in zip(members, results, strict=True)}


def _describe_error(act: Callable[[], str]) -> str:
    """What ``act`` returns, or the message of its error."""
    try:
        return act()
    except NodefallError as error:
        return error.message


def _home_store(fleet: LoadedFleet, home: ClusterConnection) -> DayStore:
    return day_store(home, fleet_day_name(fleet.document.metadata.name))


def store_records(
    fleet: LoadedFleet, state: DayState, seen: Mapping[str, tuple[Assessment, Observation]], reports: Path
) -> Path:
    """Write a record for each cluster; the directory of the day. Raises NodefallError, OSError.

    ``state``: that of the fleet. A cluster that could not be read is in the report, with runs that are pending.
    """
    directory = reports
    for cluster in fleet.clusters:
        assessment, observation = seen[cluster.name]
        day = day_of(observation, state.day) or _unread(fleet, cluster, state, assessment)
        record = record_of(fleet.day, cluster.name, day, current_time().timestamp())
        simulated = bool(cluster.inventory.cluster and cluster.inventory.cluster.simulated)
        directory = store_record(reports, replace(record, simulated=simulated))
    return directory


def _unread(fleet: LoadedFleet, cluster: LoadedCluster, state: DayState, assessment: Assessment) -> DayState:
    """The day on a cluster of which there is no state: skipped if the fleet has left it out, else still open."""
    own = next(run for run in state.runs if run.key.cluster == cluster.name)
    is_over = own.status is RunStatus.SKIPPED
    reason = own.reason or f"{assessment.phase}: {assessment.reason}".removesuffix(": ")

    def change(run: DayRun) -> DayRun:
        if is_over:
            return replace(run, status=RunStatus.SKIPPED, reason=reason, ended=own.ended)
        return replace(run, reason=reason)

    day = fleet.day.document
    names = [entry.name for entry in fleet.day.entries]
    runs = runs_on(day, names, 0, cluster_name(fleet.day, cluster.path))
    return replace(
        state,
        gameday=day.metadata.name,
        plan_hash=fleet.day.hash,
        runs=tuple(map(change, runs)),
        halts=(),
        parallel=1,
        order="by-entry",
    )
