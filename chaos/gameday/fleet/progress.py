"""The state of a fleet: that of a day with one run for each cluster, named after the fleet.

A run of it is a whole game day on its cluster, and its ID is the name of the Job.
"""

from __future__ import annotations

from chaos.gameday.document import OnViolated
from chaos.gameday.fleet.document import DAY_SUFFIX, Fleet
from chaos.gameday.state import DayRun, DayState, RunKey, Verdict
from chaos.gameday.transitions import StateConflict, finish, give_back, skip, skip_rest


def fleet_day_name(fleet: str) -> str:
    """The name of the fleet's day among the game days of its home."""
    return f"{fleet}{DAY_SUFFIX}"


def new_fleet_state(fleet: Fleet, gameday: str, day: str, plan_hash: str, now: float) -> DayState:
    """A fleet of which nothing has begun, without a holder."""
    spec = fleet.spec
    on_violated: OnViolated = "continue" if spec.on_violated == "continue" else "stop"
    return DayState(
        day=day,
        gameday=fleet_day_name(fleet.metadata.name),
        plan_hash=plan_hash,
        seed=0,
        created=now,
        order="by-cluster",
        parallel=spec.max_clusters,
        holder="",
        epoch=0,
        runs=tuple(DayRun(RunKey(gameday, cluster.name, 1), 0, on_violated) for cluster in spec.clusters),
    )


def end_cluster(state: DayState, key: RunKey, verdict: Verdict, reason: str, epoch: int, now: float) -> DayState:
    """The day of a cluster is over. After a violation, or a halt of that cluster alone, the rest may be skipped."""
    run = find_run(state, key)
    state = finish(state, key, run.run, verdict, epoch, now, reason)
    if verdict == "interrupted" and run.on_violated == "stop":
        return skip_rest(state, f"stopped: {key} was halted", epoch, now)
    return state


def leave_out(state: DayState, key: RunKey, reason: str, epoch: int, now: float) -> DayState:
    """Nothing was run on a cluster, and nothing will be."""
    run = find_run(state, key)
    if run.run:
        state = give_back(state, key, run.run, epoch)
    return skip(state, key, reason, epoch, now)


def find_run(state: DayState, key: RunKey) -> DayRun:
    """The run of a cluster. Raises StateConflict if the fleet has no such cluster."""
    run = state.find(key)
    if run is None:
        raise StateConflict(f"the fleet has no cluster {key.cluster}")
    return run
