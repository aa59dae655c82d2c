"""Runs a fleet from its stored state to its end. If the process dies, the Jobs go on, and so does the same command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from chaos.app.day.stop import DayStop, watch_day
from chaos.app.day.store import DayStore, day_store, day_time, hold_day_lock
from chaos.app.fleet.agent import Agent, ClusterRow, FleetRequest, FleetSession, Wanted
from chaos.app.fleet.loading import LoadedCluster, LoadedFleet
from chaos.app.fleet.member import Member
from chaos.app.fleet.steps import clean_ended, step
from chaos.app.wiring.connect import connect_cluster
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.clock import SystemClock
from chaos.core.clock.system import uptime
from chaos.core.errors import Exit, NodefallError, Refused
from chaos.core.threads import ContextPool
from chaos.engine.connection import ClusterConnection, refuse_before_side_effects
from chaos.engine.stop import stop_on_signal
from chaos.gameday.fleet_state import fleet_day_name, new_fleet_state
from chaos.gameday.state import DayState, DayStatus, describe
from chaos.gameday.stored_day import open_day

_TICK = 1.0  # wall seconds
_CLEAN_SECONDS = 120.0  # for deleting what was applied, after the end
_JOIN_SECONDS = 5.0
_MAX_CHECKS = 16


@dataclass(frozen=True, slots=True)
class FleetEnd:
    """How a fleet stands at the end of the process's work on it."""

    state: DayState
    rows: tuple[ClusterRow, ...]


def run_fleet(request: FleetRequest) -> FleetEnd:
    """Run the fleet, or continue with it. A finished one is only looked at.

    Raises Refused if nothing may begin, Interrupted (the Jobs continue), Aborted if another process has taken it over.
    """
    fleet = request.fleet
    with refuse_before_side_effects():
        connected = check_members(fleet, request.display.note)
    with ExitStack() as stack:
        home = stack.enter_context(connect_cluster(fleet.home.inventory))
        name = fleet_day_name(fleet.document.metadata.name)
        lock = stack.enter_context(hold_day_lock(home, name, request.display.note))
        store = day_store(home, name)
        clock = stack.enter_context(closing(SystemClock()))
        with refuse_before_side_effects():
            state = _open(request, home, store, lock, connected)
        session = FleetSession(request, home, store, lock, DayStop(clock), state)
        with _supervised(session), _agents(session):
            if state.status is DayStatus.FINISHED:
                request.display.note(f"{describe(state)}; to start another day, name it with --id")
                _await_answers(session)
                clean_ended(session)
                _await_clean(session)
            else:
                _work(session)
            return FleetEnd(session.state, tuple(session.rows))


def _open(
    request: FleetRequest, home: ClusterConnection, store: DayStore, lock: ClusterLock, servers: Mapping[str, str]
) -> DayState:
    """The stored state of the fleet, with this process as its holder. Raises Refused."""
    fleet, now = request.fleet, day_time(home)
    day = request.id or datetime.fromtimestamp(now, UTC).astimezone(fleet.day.zone).date().isoformat()
    fresh = new_fleet_state(fleet.document, fleet.day.document.metadata.name, day, fleet.hash, now)
    fresh = replace(fresh, holder=lock.identity.holder)

    def change(stored: DayState | None) -> DayState:
        opened = open_day(stored, fresh, is_named=bool(request.id), has_seed=False)
        return opened if opened.has_begun else replace(opened, parallel=fresh.parallel)

    stored = store.read()
    if stored is None or stored.status is not DayStatus.FINISHED or (request.id and stored.day != request.id):
        request.confirm(fleet, servers)
    return store.update(change)


@contextmanager
def _supervised(session: FleetSession) -> Iterator[None]:
    """Signals, and the loss of the fleet's lock or state, stop the work in the block; a halt is seen in its state."""
    stop = session.stop
    session.lock.on_loss = lambda _: stop.on_loss("another process has taken or deleted the lock of the fleet")
    session.lock.on_crash = stop.on_crash
    with stop_on_signal(stop.on_signal), watch_day(session.store, session.epoch, stop):
        yield


@contextmanager
def _agents(session: FleetSession) -> Iterator[None]:
    fleet, day = session.request.fleet, session.state.day
    members = (Member(fleet, cluster) for cluster in fleet.clusters)
    session.agents = {member.name: Agent(member, day, session.permit, session.stop.on_crash) for member in members}
    for agent in session.agents.values():
        agent.start()
    try:
        yield
    finally:
        for agent in session.agents.values():
            agent.stop()
        deadline = uptime() + _JOIN_SECONDS
        for agent in session.agents.values():
            agent.join(max(0.0, deadline - uptime()))


def _work(session: FleetSession) -> None:
    session.note(f"{describe(session.state)}, plan {session.request.fleet.day.hash[:12]}")
    _await_answers(session)
    while True:
        _check(session)
        _refresh(session)
        is_awaited = step(session)
        session.request.display.show(session.state, session.rows)
        if not is_awaited:
            break
        _pause(session)
    _await_clean(session)
    session.note(describe(session.state))


def _await_answers(session: FleetSession) -> None:
    """Wait until each cluster has answered, or for a moment."""
    deadline = uptime() + 10 * _TICK
    while uptime() < deadline and any(agent.is_waiting for agent in session.agents.values()):
        _check(session)
        _pause(session, _TICK / 4)


def _await_clean(session: FleetSession) -> None:
    """Wait until what was applied is deleted; what is not is named."""
    deadline = uptime() + _CLEAN_SECONDS
    cleaning = [
        agent for agent in session.agents.values() if agent.wanted is Wanted.CLEAN and not agent.inspection.is_clean
    ]
    while uptime() < deadline and any(not agent.inspection.is_clean for agent in cleaning):
        _check(session)
        _pause(session, _TICK / 4)
    for agent in cleaning:
        if not agent.inspection.is_clean:
            why = agent.inspection.problem or agent.inspection.assessment.reason
            session.note(f"{agent.member.name}: applied objects were not deleted: {why}")


def _refresh(session: FleetSession) -> None:
    """Read the state again: others may have halted the fleet. While its home does not answer, nothing begins."""
    try:
        session.update(lambda state: state)
    except Refused:
        raise
    except NodefallError as error:
        _check(session)
        raise NodefallError(
            f"the fleet's home cluster does not respond: {error.message}",
            hint="the Jobs keep running; run the same command again to continue the fleet",
        ) from error


def _check(session: FleetSession) -> None:
    """Raises Interrupted, Aborted, or what a thread crashed with; a halt is no reason to stop looking."""
    stop = session.stop
    if stop.crash or stop.signum or stop.loss:
        stop.check()


def _pause(session: FleetSession, seconds: float = _TICK) -> None:
    session.stop.clock.sleep(seconds)
    if session.stop.signum is None and not session.stop.loss:
        session.stop.clock.resume()  # a halt has woken it


@dataclass(frozen=True, slots=True)
class _Checked:
    """``identity``: what distinguishes the cluster; "" if it could not be checked, because of ``error``."""

    name: str
    identity: str = ""
    server: str = ""
    error: NodefallError | None = None


def check_members(fleet: LoadedFleet, note: Callable[[str], object]) -> dict[str, str]:
    """The servers of the clusters, by name. A cluster that cannot be reached is only noted; it may be, later.

    Raises Refused for the wrong cluster, one that is listed twice, missing rights, or a home that cannot be reached.
    """
    with ContextPool(_MAX_CHECKS) as pool:
        checked = list(pool.map(lambda cluster: _check_member(fleet, cluster), fleet.clusters))
    problems = [f"{each.name}: {each.error.message}" for each in checked if each.error and _is_final(each, fleet)]
    names: dict[str, str] = {}
    problems += [
        f"{each.name}: it is the same cluster as {names[each.identity]}"
        for each in checked
        if each.identity and names.setdefault(each.identity, each.name) != each.name
    ]
    if problems:
        raise Refused("the fleet cannot begin:\n  " + "\n  ".join(problems), hint="nothing was changed")
    for each in checked:
        if each.error:
            note(f"{each.name} cannot be reached: {each.error.message}")
    return {each.name: each.server for each in checked if each.server}


def _check_member(fleet: LoadedFleet, cluster: LoadedCluster) -> _Checked:
    lease = fleet_day_name(fleet.document.metadata.name) if cluster.name == fleet.home.name else ""
    with closing(Member(fleet, cluster)) as member:
        try:
            identity = member.check(lease)
            return _Checked(cluster.name, identity, member.connection.kube.server)
        except NodefallError as error:
            return _Checked(cluster.name, error=error)


def _is_final(checked: _Checked, fleet: LoadedFleet) -> bool:
    """Whether waiting cannot help."""
    is_unreachable = checked.error is not None and checked.error.code is Exit.INCONCLUSIVE
    return not is_unreachable or checked.name == fleet.home.name
