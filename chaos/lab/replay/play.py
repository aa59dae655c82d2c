"""Run a recording's actions on a lab made of its beginning, as fast as possible; what the lab's API showed."""

from __future__ import annotations

from chaos.lab.apiserver.store.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.replay import build, locks, operations, recorded_choices
from chaos.lab.replay.recording import Observation, Recording
from chaos.lab.replay.session import ReplaySession
from chaos.lab.replay.user_operations import apply_user_fields

_LEAD = 45.0  # simulated seconds before the recording's first line: everything that runs has settled by then
_REGISTRATION_TIME = 0.5  # nodes have registered, kubelets have not yet looked at their pods
_FIRST_RENEWAL_DELAY = 0.325  # the middle of a kubelet's restart and its first renewal
_RENEWAL_PERIOD = 10.2  # the middle of two renewals (facts 5.1)
_PASS_DURATION = 0.0175  # the middle of how long a pass of the node lifecycle controller takes
_TAIL = 25.0  # what the recording saw at its end may come later here, within its window


def play(recording: Recording, seed: int = 1) -> dict[str, list[Observation]]:
    """What the lab's API showed of nodes and pods. Raises ReplayError if the lab cannot do what was done."""
    spec = build.lab_spec(recording, recording.start - _LEAD, seed)
    recording.first_operation_time()
    operations.check_operations(recording)
    monitor = recording.monitor_pass()
    if monitor is not None:
        period = spec.controllers.node_monitor_period + _PASS_DURATION
        first = _first_pass(recording, seed)
        spec.start -= (first - monitor) % period
    stage = ReplaySession(Cluster(spec), recording)
    cluster = stage.cluster
    cluster.start()
    cluster.sim.run_until(spec.start + _REGISTRATION_TIME)
    build.load_objects(cluster, recording)
    for node in recording.initial_objects("nodes"):
        apply_user_fields(stage, node)
    _align_heartbeats(cluster, recording)
    build.resume_deletions(cluster, recording)
    recorded_choices.apply_choices(cluster, recording)
    cluster.sim.run_until(recording.start)
    for name, machine in cluster.machines.items():
        if locks.has_lock_initially(recording, name) is False:
            machine.kubelet.lose_lock()
    seen = _record_changes(cluster)
    for deed in recording.operations:
        cluster.sim.run_until(deed.t)
        operations.execute(stage, deed)
    cluster.sim.run_until(recording.end + _TAIL)
    return seen


def _first_pass(recording: Recording, seed: int) -> float:
    """When the node lifecycle controller of a lab of this seed makes its first pass: it then tells of new nodes."""
    spec = build.lab_spec(recording, recording.start - _LEAD, seed)
    cluster, found = Cluster(spec), []

    def look(change: Change) -> None:
        if change.plural == "events" and change.object["reason"] == "RegisteredNode":
            found.append(cluster.sim.now)

    cluster.store.subscribe(look)
    cluster.start()
    while not found:
        cluster.sim.run_until(cluster.sim.now + 0.1)
    return found[0]


def _align_heartbeats(cluster: Cluster, recording: Recording) -> None:
    """Each kubelet renews its Lease as it did last before the first action: it is restarted a period before."""
    for name, machine in cluster.machines.items():
        before = [at for at in recording.renewals(name) if at <= recording.first_operation_time()]
        if before:
            at = before[-1] - _FIRST_RENEWAL_DELAY - _RENEWAL_PERIOD
            while at > recording.start - _RENEWAL_PERIOD:
                at -= _RENEWAL_PERIOD
            cluster.sim.at(at, machine.kubelet.restart)


def _record_changes(cluster: Cluster) -> dict[str, list[Observation]]:
    """Begins with a list, as a recording does."""
    seen = {
        plural: [Observation(cluster.sim.now, "LIST", obj) for obj in cluster.store.list(plural)]
        for plural in ("nodes", "pods")
    }

    def changed(change: Change) -> None:
        if change.plural in seen:
            seen[change.plural].append(Observation(cluster.sim.now, change.type, change.object))

    cluster.store.subscribe(changed)
    return seen
