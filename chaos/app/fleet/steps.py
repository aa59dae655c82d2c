"""One tick of a fleet: what was seen of its clusters decides which end, which are left out and which begin."""

from __future__ import annotations

from functools import partial

from chaos.app.fleet.agent import Agent, FleetSession, Inspection, Wanted
from chaos.core.clock.system import uptime
from chaos.core.duration import parse_duration
from chaos.gameday.deploy.manifests import fleet_job_name
from chaos.gameday.fleet_state import Phase, day_of, day_verdict, end_cluster, find_run, leave_out
from chaos.gameday.state import DayRun, DayState, RunKey, RunStatus, Verdict, describe, startable
from chaos.gameday.transitions import begin, halt, skip_rest

_BY_VIOLATION = "a violation"
_AT_REST = (Phase.FINISHED, Phase.HALTED, Phase.IDLE, Phase.REFUSED)  # no Job is active


def step(session: FleetSession) -> bool:
    """Bring the fleet one tick further; whether there is anything left to wait for. Raises NodefallError."""
    _skip_after_violation(session)  # before its day is seen to be over, so that the reason is the entry
    for run in session.state.runs:
        if run.status is RunStatus.RUNNING:
            _follow(session, run, session.agents[run.key.cluster])
    clean_ended(session)
    _stop_after_violation(session)
    if may_begin(session):
        _begin(session)
    if may_begin(session) and startable(session.state):
        return True
    return any(run.status is RunStatus.RUNNING and _is_awaited(session, run) for run in session.state.runs)


def clean_ended(session: FleetSession) -> None:
    """Delete what was applied in clusters that are over: a former process may have died before it did."""
    for run in session.state.runs:
        agent = session.agents[run.key.cluster]
        if not run.is_open and agent.inspection.assessment.phase in _AT_REST:
            _clean(session, agent)


def may_begin(session: FleetSession) -> bool:
    """Whether further clusters may begin: not in a halted fleet, nor while one is stuck, as its undo may be pending."""
    if session.state.halt or session.stop.is_set:
        return False
    if session.request.fleet.document.spec.on_violated == "continue":
        return True
    return not any(
        run.status is RunStatus.RUNNING and _is_stuck(session.agents[run.key.cluster].inspection)
        for run in session.state.runs
    )


def _follow(session: FleetSession, run: DayRun, agent: Agent) -> None:
    """A cluster whose Job was created, or is about to be."""
    inspection = agent.inspection
    phase, reason = inspection.assessment.phase, inspection.assessment.reason
    state = day_of(inspection.observation, session.state.day)
    if phase is Phase.FINISHED and state is not None:
        _end(session, run, day_verdict(state), describe(state))
    elif session.state.halt:
        _halt(session, agent, inspection)
    elif phase is Phase.HALTED:
        _end(session, run, "interrupted", reason)
    elif why := _why_left_out(session, inspection):
        _leave_out(session, run, why)
    elif phase is Phase.STARTING and _lasts(session, inspection):
        agent.want(Wanted.CANCEL, f"its pod did not start within {_patience(session)}: {reason}".removesuffix(": "))
    else:
        agent.want(Wanted.RUN)


def _halt(session: FleetSession, agent: Agent, inspection: Inspection) -> None:
    """What is under test is undone; then applied objects are deleted, because a resumed fleet applies them again."""
    if inspection.assessment.phase in _AT_REST:
        _clean(session, agent)
    elif session.state.halt:
        agent.want(Wanted.HALT, session.state.halt.reason or f"the fleet was halted by {session.state.halt.by}")


def _why_left_out(session: FleetSession, inspection: Inspection) -> str:
    """Why nothing was run on a cluster, and nothing will be; "" if that is not so."""
    phase, reason = inspection.assessment.phase, inspection.assessment.reason
    if phase in (Phase.FOREIGN, Phase.REFUSED):
        return reason
    if phase is not Phase.IDLE:
        return ""
    if inspection.given_up or inspection.has_created:
        return inspection.given_up or "its Job was deleted before the day began"
    return inspection.problem if _lasts(session, inspection) else ""


def _end(session: FleetSession, run: DayRun, verdict: Verdict, reason: str) -> None:
    epoch, now = session.epoch, session.now()
    session.update(lambda state: end_cluster(state, run.key, verdict, reason, epoch, now))
    session.note(f"{run.key.cluster} is {verdict}: {reason}")


def _leave_out(session: FleetSession, run: DayRun, reason: str) -> None:
    epoch, now = session.epoch, session.now()
    session.update(lambda state: leave_out(state, run.key, reason, epoch, now))
    session.note(f"{run.key.cluster} is skipped: {reason}")


def _clean(session: FleetSession, agent: Agent) -> None:
    agent.want(Wanted.WATCH if session.request.keep else Wanted.CLEAN)


def _skip_after_violation(session: FleetSession) -> None:
    """By the first violated run that is seen, also before the day of its cluster is over."""
    reason = _violation(session)
    if session.request.fleet.document.spec.on_violated == "continue" or not reason:
        return
    session.violation, now = reason, session.now()
    if any(run.status is RunStatus.PENDING for run in session.state.runs):
        session.update(lambda state: skip_rest(state, f"stopped: {reason}", session.epoch, now))
        session.note(f"no further cluster starts: {reason}")


def _stop_after_violation(session: FleetSession) -> None:
    _skip_after_violation(session)
    reason, now = session.violation, session.now()
    is_known = any(each.reason == reason for each in session.state.halts)
    policy = session.request.fleet.document.spec.on_violated
    if policy == "halt" and reason and not is_known and any(run.is_open for run in session.state.runs):
        session.update(partial(halt, by=_BY_VIOLATION, reason=reason, now=now))
        session.note(f"halting all clusters: {reason}")


def _violation(session: FleetSession) -> str:
    for run in session.state.runs:
        state = day_of(session.agents[run.key.cluster].inspection.observation, session.state.day)
        if state is not None and run.status in (RunStatus.RUNNING, RunStatus.DONE):
            violated = next((str(each.key) for each in state.runs if each.verdict == "violated"), "")
            if violated:
                return f"{violated} on {run.key.cluster} was violated"
    return ""


def _begin(session: FleetSession) -> None:
    """Begin on as many clusters as are free: stored first, so that no other process takes the same places."""
    for key in startable(session.state):
        agent = session.agents[key.cluster]
        phase, reason = agent.inspection.assessment.phase, agent.inspection.assessment.reason
        run = find_run(session.state, key)
        if phase is Phase.UNKNOWN:
            if _lasts(session, agent.inspection):
                _leave_out(session, run, f"unknown: it cannot be read: {reason}")
        elif phase is Phase.FOREIGN:
            _leave_out(session, run, reason)
        else:
            deployment = agent.member.cluster.deployment
            name = fleet_job_name(deployment, session.state.day, agent.member.plan_hash)
            session.update(partial(_begin_run, key=key, job=name, epoch=session.epoch, now=session.now()))
            if session.state.halt:
                return
            session.note(f"{key.cluster} begins: Job {deployment.namespace}/{name}")
            agent.want(Wanted.RUN)


def _begin_run(state: DayState, key: RunKey, job: str, epoch: int, now: float) -> DayState:
    """The cluster begins, unless someone has halted the fleet since this tick began."""
    return state if state.halt else begin(state, key, f"{key.cluster}.{job}", epoch, now)


def _is_awaited(session: FleetSession, run: DayRun) -> bool:
    inspection = session.agents[run.key.cluster].inspection
    phase = inspection.assessment.phase
    if phase is Phase.UNKNOWN:
        return not _lasts(session, inspection)
    if session.state.halt:
        return phase in (Phase.STARTING, Phase.RUNNING)
    return not _is_stuck(inspection) and not (phase is Phase.STUCK and _lasts(session, inspection))


def _is_stuck(inspection: Inspection) -> bool:
    """Whether this process can do no more for a cluster whose day is not over."""
    return inspection.assessment.phase is Phase.STUCK and (inspection.has_created or bool(inspection.given_up))


def _lasts(session: FleetSession, inspection: Inspection) -> bool:
    return uptime() - inspection.since >= parse_duration(_patience(session))


def _patience(session: FleetSession) -> str:
    return session.request.fleet.document.spec.patience
