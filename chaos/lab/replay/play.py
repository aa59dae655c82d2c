"""Run a recording's actions on a lab made of its beginning, as fast as possible; what the lab's API showed."""

from __future__ import annotations

from chaos.lab.cluster import Cluster
from chaos.lab.replay import build, chances, deeds, locks
from chaos.lab.replay.recording import Recording, Seen
from chaos.lab.replay.stage import Stage
from chaos.lab.replay.user_deeds import shape_node
from chaos.lab.store import Change

_LEAD = 45.0  # simulated seconds before the recording's first line: everything that runs has settled by then
_REGISTERED = 0.5  # nodes have registered, kubelets have not yet looked at their pods
_RENEWS_AFTER = 0.325  # the middle of a kubelet's restart and its first renewal
_PERIOD = 10.2  # the middle of two renewals (facts 5.1)
_PASS_TAKES = 0.0175  # the middle of how long a pass of the node lifecycle controller takes
_AFTER_END = 25.0  # what the recording saw at its end may come later here, within its window


def play(recording: Recording, seed: int = 1) -> dict[str, list[Seen]]:
    """What the lab's API showed of nodes and pods. Raises ReplayError if the lab cannot do what was done."""
    spec = build.lab_spec(recording, recording.begin - _LEAD, seed)
    recording.fault()
    deeds.check(recording)
    monitor = recording.monitor_pass()
    if monitor is not None:
        period = spec.controllers.node_monitor_period + _PASS_TAKES
        first = _first_pass(recording, seed)
        spec.start -= (first - monitor) % period
    stage = Stage(Cluster(spec), recording)
    cluster = stage.cluster
    cluster.start()
    cluster.sim.run_until(spec.start + _REGISTERED)
    build.fill(cluster, recording)
    for node in recording.first("nodes"):
        shape_node(stage, node)
    _align_heartbeats(cluster, recording)
    build.resume_deletions(cluster, recording)
    chances.load(cluster, recording)
    cluster.sim.run_until(recording.begin)
    for name, machine in cluster.machines.items():
        if locks.held_at_first(recording, name) is False:
            machine.kubelet.lose_lock()
    seen = _watch(cluster)
    for deed in recording.deeds:
        cluster.sim.run_until(deed.t)
        deeds.do(stage, deed)
    cluster.sim.run_until(recording.end + _AFTER_END)
    return seen


def _first_pass(recording: Recording, seed: int) -> float:
    """When the node lifecycle controller of a lab of this seed makes its first pass: it then tells of new nodes."""
    spec = build.lab_spec(recording, recording.begin - _LEAD, seed)
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
        before = [at for at in recording.renewals(name) if at <= recording.fault()]
        if before:
            at = before[-1] - _RENEWS_AFTER - _PERIOD
            while at > recording.begin - _PERIOD:
                at -= _PERIOD
            cluster.sim.at(at, machine.kubelet.restart)


def _watch(cluster: Cluster) -> dict[str, list[Seen]]:
    """Begins with a list, as a recording does."""
    seen = {
        plural: [Seen(cluster.sim.now, "LIST", obj) for obj in cluster.store.list(plural)]
        for plural in ("nodes", "pods")
    }

    def changed(change: Change) -> None:
        if change.plural in seen:
            seen[change.plural].append(Seen(cluster.sim.now, change.type, change.object))

    cluster.store.subscribe(changed)
    return seen
