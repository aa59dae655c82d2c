"""Run the operations of a recording, as fast as possible, on a lab that starts with its first objects, and compare."""

from __future__ import annotations

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.objects import NOT_READY, UNREACHABLE, Object, condition, condition_status, has_taint, name_of
from chaos.lab.recorded import build, operations
from chaos.lab.recorded.forecast import LEAD, REGISTRATION_TIME, TAIL, record_changes
from chaos.lab.recorded.implied import has_lock_initially
from chaos.lab.recorded.recording import HALF_SECOND, Observation, Recording, event_time, to_epoch
from chaos.lab.recorded.user_operations import apply_user_fields
from tools.replay import recorded_choices
from tools.replay.compare import Difference, Result, compare
from tools.replay.containers import follow_containers, follow_registrations
from tools.replay.operations import REPEATED
from tools.replay.recorded_choices import misplaced_bindings
from tools.replay.settings import lab_spec
from tools.replay.stalled import StallingCluster, controller_writes, still_times

SEEDS = 5
_FIRST_RENEWAL_DELAY = 0.325  # mean seconds from a kubelet's restart to its first renewal
_RENEWAL_PERIOD = 10.2  # mean seconds between two renewals (facts 5.1)
_PASS_DURATION = 0.0175  # mean seconds of a pass of the node lifecycle controller


def play(recording: Recording, seed: int = 1) -> dict[str, list[Observation]]:
    """Observations of nodes, pods and volumes in the lab. Raises ReplayError."""
    spec = lab_spec(recording, recording.start - LEAD, seed)
    operations.drop_unsupported(recording)
    monitor = monitor_pass(recording)
    if monitor is not None:
        period = spec.controllers.node_monitor_period + _PASS_DURATION
        first = _first_pass(recording, seed)
        spec.start -= (first - monitor) % period
    for stall in recording.stalls:
        begin, end = (t - recording.first_operation_time() for t in (stall.begin, stall.end))
        recording.add_finding(
            f"the API server stood still from {begin:.1f} to {end:.1f} s: times within are not compared"
        )
    stalls = still_times(recording)
    session = build.Session(
        StallingCluster(spec, stalls, controller_writes(recording)) if stalls else Cluster(spec), recording
    )
    cluster = session.cluster
    cluster.start()
    cluster.sim.run_until(spec.start + REGISTRATION_TIME)
    follow_containers(cluster, recording)
    follow_registrations(cluster, recording)
    build.load_objects(cluster, recording)
    for node in recording.initial_objects("nodes"):
        apply_user_fields(session, node)
    _align_heartbeats(cluster, recording)
    build.resume_deletions(cluster, recording)
    recorded_choices.apply_choices(cluster, recording)
    cluster.sim.run_until(recording.start)
    for name, machine in cluster.machines.items():
        if has_lock_initially(recording, name) is False:
            machine.kubelet.lose_lock()
    observations = record_changes(cluster)
    for operation in recording.operations:
        cluster.sim.run_until(operation.t)
        operations.execute(session, operation, REPEATED)
    cluster.sim.run_until(recording.end + TAIL)
    return observations


def _first_pass(recording: Recording, seed: int) -> float:
    """Time of the node lifecycle controller's first pass in a lab with this seed: of the event RegisteredNode."""
    spec = lab_spec(recording, recording.start - LEAD, seed)
    cluster, times = Cluster(spec), []

    def on_change(change: Change) -> None:
        if change.plural == "events" and change.object["reason"] == "RegisteredNode":
            times.append(cluster.sim.now)

    cluster.store.subscribe(on_change)
    cluster.start()
    while not times:
        cluster.sim.run_until(cluster.sim.now + 0.1)
    return times[0]


def _align_heartbeats(cluster: Cluster, recording: Recording) -> None:
    """Align Lease renewals with the last ones before the first operation, by a restart of each kubelet before."""
    for name, machine in cluster.machines.items():
        before = [at for at in recording.renewals(name) if at <= recording.first_operation_time()]
        if not before:
            machine.kubelet.restart()  # it reads the manifests of its static pods
        else:
            done = recording.answers.get((name, before[-1]), before[-1])
            at = done - _FIRST_RENEWAL_DELAY - _RENEWAL_PERIOD
            while at > recording.start - _RENEWAL_PERIOD:
                at -= _RENEWAL_PERIOD
            cluster.sim.at(at, machine.kubelet.restart)


def replay(recording: Recording, seeds: int = SEEDS) -> Result:
    """Best result of up to ``seeds`` seeds; a complete match ends the search. Raises ReplayError.

    Heartbeats and random choices follow the recording (module ``recorded_choices``). A seed only decides what leaves no
    trace, such as the order of goroutines; nearly every seed matches.
    """
    best: Result | None = None
    for seed in range(1, seeds + 1):
        result = _replay_once(recording, seed)
        if best is None or _rank(result) > _rank(best):
            best = result
        if best.is_match:
            break
    if best is None:
        raise ValueError("seeds must be at least 1")
    return best


def _rank(result: Result) -> tuple[int, int]:
    return result.matched, -len(result.differences)


def _replay_once(recording: Recording, seed: int) -> Result:
    observations = play(recording, seed)
    result = compare(recording, observations, lab_spec(recording, recording.start, seed).controllers)
    result.seed, result.findings = seed, list(recording.findings)
    for side, history in (("recording", recording.observations), ("lab", observations)):
        for t, text in misplaced_bindings(history):
            result.matched = max(0, result.matched - 1)
            result.differences.append(
                Difference(f"scheduler of the {side}", round(t - recording.first_operation_time(), 3), text)
            )
    return result


_LATE_PASS = 1.0  # seconds from a pass to the receipt of what it wrote
_QUEUE_DELAY = 0.05  # seconds; mean delay of a node in the NoExecute queue
_CENSUS = ("RegisteredNode", "RemovingNode")


def monitor_pass(recording: Recording) -> float | None:
    """Time of a pass of the node lifecycle controller; None if the recording shows none.

    Only its passes make a node Unknown or remove NoExecute taints (facts 5.2, 5.4). The next best sign is a taint
    added to a node that is not Ready, delayed by a queue that is polled every 100 ms. Else it is the event of a
    node that came or went.
    """
    before: dict[str, Object] = {}
    queued: float | None = None
    for item in recording.observations["nodes"]:
        new, old = item.object, before.get(name_of(item.object))
        if old is not None and _is_monitor_write(old, new):
            return _pass_time(item)
        if old is not None and queued is None and _has_no_execute_taint(new) and not _has_no_execute_taint(old):
            queued = item.t - _QUEUE_DELAY
        before[name_of(new)] = new
    return queued if queued is not None else _first_census(recording)


def _first_census(recording: Recording) -> float | None:
    """Time of the first pass that found a node new or gone; None if none was."""
    changed = {name_of(item.object) for item in recording.observations["nodes"] if item.type in ("ADDED", "DELETED")}
    for item in recording.observations["events"]:
        about = item.object.get("involvedObject") or {}
        if item.type == "ADDED" and item.object.get("reason") in _CENSUS and about.get("name") in changed:
            return event_time(item)
    return None


def _pass_time(item: Observation) -> float:
    """Time of the pass that wrote this: of receipt, or that which the pass itself wrote, if it came late."""
    ready = condition(item.object, "Ready") or {}
    if ready.get("status") != "Unknown" or not ready.get("lastTransitionTime"):
        return item.t
    own = to_epoch(ready["lastTransitionTime"]) + HALF_SECOND
    return own if item.t - own > _LATE_PASS else item.t


def _is_monitor_write(old: Object, new: Object) -> bool:
    statuses = [condition_status(node, "Ready") for node in (old, new)]
    if statuses[0] != "Unknown" and statuses[1] == "Unknown":
        return True
    return statuses[1] == "True" and _has_no_execute_taint(old) and not _has_no_execute_taint(new)


def _has_no_execute_taint(node: Object) -> bool:
    """Whether the node has a NoExecute taint for its condition."""
    return any(has_taint(node, key, "NoExecute") for key in (NOT_READY, UNREACHABLE))
