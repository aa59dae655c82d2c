"""What the lab predicts from the first lists of a recording, and from what was done to the recorded cluster.

Taken from the recording: its first lists, settings of kubelets and of the control plane, the actions and the writes
through the API at their times, when machines that were powered on had booted, and how containers react to SIGTERM.
Nothing else of what followed: no time of a Lease, no pass of a controller, no choice of the scheduler, no container
that ended by itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.runtime import Behaviour, behaviour_of
from chaos.lab.objects import Object, condition
from chaos.lab.recorded import build, operations
from chaos.lab.recorded.implied import has_lock_initially
from chaos.lab.recorded.recording import Observation, Recording, to_epoch
from chaos.lab.recorded.templates import VOLUME_KINDS
from chaos.lab.recorded.user_operations import apply_user_fields
from chaos.lab.snapshot.restored import owner_of

LEAD = 45.0  # simulated seconds from the lab's start to the recording's, in which the cluster settles
REGISTRATION_TIME = 0.5  # seconds after which nodes are registered, before kubelets sync their pods
TAIL = 25.0  # seconds after the recording's end: its last transitions may be later in the lab, within their tolerance


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


_RESTARTS = (24.0, 12.0)  # seconds before the recording's start between which kubelets start: one period of Leases
_SLOW_START, _OWN_START = 3.0, 1.0  # seconds; the lab takes about one to start a pod
_SHARE_SLOW = 0.5  # of starts, where slow ones were measured


def forecast(recording: Recording, seed: int) -> dict[str, list[Observation]]:
    """Observations of nodes, pods and volumes in one simulated future of the recorded cluster. Raises ReplayError."""
    operations.drop_unsupported(recording)
    session = build.Session(Cluster(build.lab_spec(recording, recording.start - LEAD, seed)), recording)
    _start(session, Random(seed))  # noqa: S311 - chance of a simulation
    cluster = session.cluster
    observations = record_changes(cluster)
    for operation in recording.operations:
        if not operation.is_inferred:
            cluster.sim.run_until(operation.t)
            operations.execute(session, operation)
    cluster.sim.run_until(recording.end + TAIL)
    return observations


def _start(session: build.Session, rng: Random) -> None:
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
