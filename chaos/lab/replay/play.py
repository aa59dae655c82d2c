"""Run the operations of a recording, as fast as possible, on a lab that starts with its first objects."""

from __future__ import annotations

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.replay import build, locks, operations, recorded_choices
from chaos.lab.replay.recorded_containers import follow_containers
from chaos.lab.replay.recorded_registrations import follow_registrations
from chaos.lab.replay.recording import Observation, Recording
from chaos.lab.replay.session import ReplaySession, StallingCluster
from chaos.lab.replay.stalls import controller_writes, still_times
from chaos.lab.replay.user_operations import apply_user_fields
from chaos.lab.replay.volumes import VOLUME_KINDS

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
        if locks.has_lock_initially(recording, name) is False:
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
