"""Run a recording's actions on a lab made of its beginning, as fast as possible; what the lab's API showed."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.lab.cluster import Cluster
from chaos.lab.controllers.scheduling import matches_node
from chaos.lab.objects import Object, is_deleting, name_of, node_of, taints_of, untolerated
from chaos.lab.replay import build, deeds
from chaos.lab.replay.recording import Recording, ReplayError, Seen
from chaos.lab.store import Change

_LEAD = 45.0  # simulated seconds before the recording's first line: everything that runs has settled by then
_REGISTERED = 0.5  # nodes have registered, kubelets have not yet looked at their pods
_RENEWS_AFTER = 0.325  # the middle of a kubelet's restart and its first renewal
_PERIOD = 10.2  # the middle of two renewals (facts 5.1)
_PASS_TAKES = 0.0175  # the middle of how long a pass of the node lifecycle controller takes
_AFTER_END = 3.0  # what the recording saw at its very end may come a little later here


@dataclass
class Played:
    """``seen`` as in a recording, by plural; ``misplaced``: pods that the lab bound where they may not be."""

    seen: dict[str, list[Seen]] = field(default_factory=lambda: {"nodes": [], "pods": []})
    misplaced: list[str] = field(default_factory=list)


def play(recording: Recording, seed: int = 1) -> Played:
    """Raises ReplayError if the lab cannot do what was done."""
    spec = build.lab_spec(recording, recording.begin - _LEAD, seed)
    if not recording.first("pods"):
        raise ReplayError("no pods in its first list: a workload that came later is not replayed")
    recording.fault()
    deeds.check(recording.deeds, set(recording_nodes(recording)))
    monitor = recording.monitor_pass()
    if monitor is not None:
        period = spec.controllers.node_monitor_period + _PASS_TAKES
        first = _first_pass(recording, seed)
        spec.start -= (first - monitor) % period
    cluster = Cluster(spec)
    cluster.start()
    cluster.sim.run_until(spec.start + _REGISTERED)
    build.fill(cluster, recording)
    _align_heartbeats(cluster, recording)
    build.resume_deletions(cluster, recording)
    cluster.sim.run_until(recording.begin)
    watch = _Watch(cluster)
    for deed in recording.deeds:
        cluster.sim.run_until(deed.t)
        deeds.do(cluster, deed)
    cluster.sim.run_until(recording.end + _AFTER_END)
    return watch.played


def recording_nodes(recording: Recording) -> list[str]:
    """Names of the nodes of the first list."""
    return [name_of(node) for node in recording.first("nodes")]


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


class _Watch:
    """Begins with a list, as a recording does."""

    def __init__(self, cluster: Cluster) -> None:
        self.played = Played()
        self._cluster = cluster
        for plural, seen in self.played.seen.items():
            seen += [Seen(cluster.sim.now, "LIST", obj) for obj in cluster.store.list(plural)]
        cluster.store.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if change.plural not in self.played.seen:
            return
        self.played.seen[change.plural].append(Seen(self._cluster.sim.now, change.type, change.object))
        before = change.before
        if change.plural == "pods" and before is not None and node_of(change.object) and not node_of(before):
            self._bound(change.object)

    def _bound(self, pod: Object) -> None:
        """A new node must be one that the scheduler may choose (facts 12)."""
        node = self._cluster.store.get("nodes", "", node_of(pod))
        bad = "does not exist" if node is None else ""
        if node is not None:
            if untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
                bad = "has taints that it does not tolerate"
            elif not matches_node(pod, node):
                bad = "is not one that it selects"
        if bad and not is_deleting(pod):
            self.played.misplaced.append(f"pod {name_of(pod)} was bound to {node_of(pod)}, which {bad}")
