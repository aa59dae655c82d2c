"""Run the operations of a recording, as fast as possible, on a lab that starts with its first objects.

Verify that the lab reproduces a recording.
What the lab predicts from the first lists of a recording, and from what was done to the recorded cluster.
Taken from the recording: its first lists, settings of kubelets and of the control plane, the actions and the writes
through the API at their times, when machines that were powered on had booted, and how containers react to SIGTERM.
Nothing else of what followed: no time of a Lease, no pass of a controller, no choice of the scheduler, no container
that ended by itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import msgspec

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.runtime import Behaviour, behaviour_of
from chaos.lab.objects import Object, condition
from chaos.lab.replay import build, operations, recorded_choices
from chaos.lab.replay.build import lab_spec
from chaos.lab.replay.compare import Difference, Result, compare
from chaos.lab.replay.implied import has_lock_initially
from chaos.lab.replay.initial_objects import VOLUME_KINDS
from chaos.lab.replay.recorded_choices import misplaced_bindings
from chaos.lab.replay.recording import Observation, Recording, to_epoch
from chaos.lab.replay.session import ReplaySession, StallingCluster, follow_containers, follow_registrations
from chaos.lab.replay.stalls import controller_writes, still_times
from chaos.lab.replay.user_operations import apply_user_fields
from chaos.lab.snapshot.restored import owner_of
from chaos.lab.spec import LabSpec

LEAD = 45.0  # simulated seconds from the lab's start to the recording's, in which the cluster settles
REGISTRATION_TIME = 0.5  # seconds after which nodes are registered, before kubelets sync their pods
_FIRST_RENEWAL_DELAY = 0.325  # mean seconds from a kubelet's restart to its first renewal
_RENEWAL_PERIOD = 10.2  # mean seconds between two renewals (facts 5.1)
_PASS_DURATION = 0.0175  # mean seconds of a pass of the node lifecycle controller
TAIL = 25.0  # seconds after the recording's end: its last transitions may be later in the lab, within their tolerance


def play(recording: Recording, seed: int = 1) -> dict[str, list[Observation]]:
    """Observations of nodes, pods and volumes in the lab. Raises ReplayError."""
    spec = build.lab_spec(recording, recording.start - LEAD, seed)
    operations.drop_unsupported(recording)
    monitor = recording.monitor_pass()
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
    session = ReplaySession(
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
        operations.execute(session, operation)
    cluster.sim.run_until(recording.end + TAIL)
    return observations


def _first_pass(recording: Recording, seed: int) -> float:
    """Time of the node lifecycle controller's first pass in a lab with this seed: of the event RegisteredNode."""
    spec = build.lab_spec(recording, recording.start - LEAD, seed)
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


def record_changes(cluster: Cluster) -> dict[str, list[Observation]]:
    """Observations from now on, starting with a list, as in a recording."""
    observations = {
        plural: [Observation(cluster.sim.now, "LIST", obj) for obj in cluster.store.list(plural)]
        for plural in ("nodes", "pods", *VOLUME_KINDS)
    }

    def on_change(change: Change) -> None:
        if change.plural in observations:
            observations[change.plural].append(Observation(cluster.sim.now, change.type, change.object))

    cluster.store.subscribe(on_change)
    return observations


SEEDS = 5


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


_RESTARTS = (24.0, 12.0)  # seconds before the recording's start between which kubelets start: one period of Leases
_SLOW_START, _OWN_START = 3.0, 1.0  # seconds; the lab takes about one to start a pod
_SHARE_SLOW = 0.5  # of starts, where slow ones were measured


def forecast(recording: Recording, seed: int) -> dict[str, list[Observation]]:
    """Observations of nodes, pods and volumes in one simulated future of the recorded cluster. Raises ReplayError."""
    operations.drop_unsupported(recording)
    session = ReplaySession(Cluster(_spec(recording, seed)), recording, follows_chance=False)
    _start(session, Random(seed))  # noqa: S311 - chance of a simulation
    cluster = session.cluster
    observations = record_changes(cluster)
    for operation in recording.operations:
        if not operation.is_inferred:
            cluster.sim.run_until(operation.t)
            operations.execute(session, operation)
    cluster.sim.run_until(recording.end + TAIL)
    return observations


def _start(session: ReplaySession, rng: Random) -> None:
    """Start the cluster with the first lists, in any phase of its periodic work."""
    cluster, recording = session.cluster, session.recording
    cluster.start()
    cluster.sim.run_until(cluster.spec.start + REGISTRATION_TIME)
    starts = _measured_starts(recording)
    for machine in cluster.machines.values():
        machine.runtime.behaviour = partial(_behaviour, starts, rng)
        first, last = _RESTARTS
        cluster.sim.at(recording.start - rng.uniform(last, first), machine.kubelet.restart)
    build.load_objects(cluster, recording)
    for node in recording.initial_objects("nodes"):
        apply_user_fields(session, node)
    build.resume_deletions(cluster, recording)
    cluster.sim.run_until(recording.start)
    for name, machine in cluster.machines.items():
        if has_lock_initially(recording, name) is False:
            machine.kubelet.lose_lock()


def _spec(recording: Recording, seed: int) -> LabSpec:
    """The LabSpec without what only the recorded future shows."""
    spec = build.lab_spec(recording, recording.start - LEAD, seed)
    flags = recording.meta.get("controllerManager") or {}
    is_disabled = bool(flags.get("disableForceDetachOnTimeout"))
    settings = msgspec.structs.replace(spec.controllers, disable_force_detach_on_timeout=is_disabled)
    nodes = [
        msgspec.structs.replace(node, logind=has_lock_initially(recording, node.name) is not False)
        for node in spec.nodes
    ]
    return msgspec.structs.replace(spec, nodes=nodes, controllers=settings, inhibitor_lost_after_cancel="seeded")


def _measured_starts(recording: Recording) -> dict[str, list[float]]:
    """Seconds from scheduled to Ready of the pods of the first list that were slow, by owner."""
    times: dict[str, list[float]] = {}
    for pod in recording.initial_objects("pods"):
        bound, ready = (condition(pod, type_) or {} for type_ in ("PodScheduled", "Ready"))
        statuses = pod.get("status", {}).get("containerStatuses") or []
        if ready.get("status") != "True" or any(item.get("restartCount") for item in statuses):
            continue
        begin, end = (item.get("lastTransitionTime") for item in (bound, ready))
        if begin and end and to_epoch(end) - to_epoch(begin) >= _SLOW_START:
            times.setdefault(owner_of(pod), []).append(to_epoch(end) - to_epoch(begin))
    return times


def _behaviour(starts: dict[str, list[float]], rng: Random, pod: Object) -> Behaviour:
    """A slow start may have been one with a pull: the next one has it, or not."""
    found, measured = behaviour_of(pod), starts.get(owner_of(pod))
    if measured and not found.starts_after and rng.random() < _SHARE_SLOW:
        return replace(found, starts_after=rng.choice(measured) - _OWN_START)
    return found
