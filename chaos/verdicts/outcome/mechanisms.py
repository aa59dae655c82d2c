"""The mechanism of Kubernetes behind each measure: where it is described, and how far its phase may move it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.verdicts.outcome.measure import Kind, Measure
from chaos.verdicts.outcome.nodes import READY_AGAIN, SHUTDOWN_SEEN
from chaos.verdicts.outcome.pods import CREATED, READY, SCHEDULED, UNREADY, UNSCHEDULABLE

SYNC = 10.4  # seconds; period of a kubelet's Lease renewals and status syncs, with jitter (facts 5.1)
_PASS = 5.2  # seconds between two passes of the node lifecycle controller (facts 5.2)
_ORPHANS = 40.0  # seconds; period of pod GC, twice for pods of a deleted Node (facts 6 and 11)
REJECTED, _DISRUPTED = "Failed (NodeShutdown)", "disrupted by "


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``facts``: section of docs/kubernetes-facts.md. ``period``: seconds of the periodic work that it waits for."""

    text: str
    facts: str
    period: float

    @property
    def link(self) -> str:
        """Page and section, such as ``kubernetes-facts.md (5.2)``."""
        return f"kubernetes-facts.md ({self.facts})"


_UNKNOWN = Mechanism(
    "grace period after the last Lease, at a pass of the node lifecycle controller", "5.2", SYNC + _PASS
)
_SHUTDOWN = Mechanism("the kubelet reports its shutdown", "1.4", SYNC)
_RETURN = Mechanism("the kubelet's first status after its return", "5.1", SYNC)
_TAINTS = Mechanism("taints follow Ready, at once or with the next pass", "5.4", SYNC + _PASS)
_ZONES = Mechanism("nodes are tainted one after the other, by the limits of their zone", "5.5", SYNC + _PASS)
_UNREADY = Mechanism("pods of a lost node are marked not Ready; else the kubelet reports them", "5.3", SYNC + _PASS)
_TAINT_EVICTION = Mechanism("tolerationSeconds after the taint", "5.6", SYNC + _PASS)
_BUCKETS = Mechanism("the kubelet ends pods by priority, each within its grace period", "1.3", SYNC)
_POD_GC = Mechanism("pod garbage collection", "11", _ORPHANS)
_EVICTION = Mechanism("the eviction API and its budgets", "8.1", SYNC)
_DISRUPTION = Mechanism("a disruption", "9", SYNC)
_END = Mechanism("containers end within their grace period, and the kubelet reports it", "1.6", SYNC + _PASS)
_REJECTION = Mechanism("a kubelet that shuts down rejects pods until it is stopped", "1.6", SYNC)
_REPLACED = Mechanism("a controller replaces the pod once it is terminal, deleted or gone", "5.7", SYNC + _PASS)
_BOUND = Mechanism("the scheduler finds a node", "12", SYNC + _PASS)
_START = Mechanism("containers start: images, volumes and probes of the pod", "12", SYNC + _PASS)
_VOLUMES = Mechanism(
    "volumes are detached when the kubelet no longer reports them in use, or after six minutes", "7", SYNC
)
_READY_PODS = Mechanism("ready pods of a workload", "5.7", SYNC + _PASS)
_BY_REASON = {
    "DeletionByTaintManager": _TAINT_EVICTION,
    "TerminationByKubelet": _BUCKETS,
    "DeletionByPodGC": _POD_GC,
    "EvictionByEvictionAPI": _EVICTION,
}
_BY_KIND = {Kind.ZONE: _ZONES, Kind.VOLUME: _VOLUMES, Kind.WORKLOAD: _READY_PODS}
_PODS = {UNREADY: _UNREADY, CREATED: _REPLACED, SCHEDULED: _BOUND, UNSCHEDULABLE: _BOUND, READY: _START}


def mechanism_of(measure: Measure) -> Mechanism:
    """The mechanism that decides when it comes true."""
    if measure.kind is Kind.NODE:
        return _of_node(measure.what)
    return _BY_KIND.get(measure.kind) or _of_pod(measure.what)


def _of_pod(what: str) -> Mechanism:
    if what == REJECTED:
        return _REJECTION
    if what.startswith(_DISRUPTED):
        return _BY_REASON.get(what.removeprefix(_DISRUPTED), _DISRUPTION)
    return _PODS.get(what, _END)


def _of_node(what: str) -> Mechanism:
    if what.startswith("Ready=Unknown"):
        return _UNKNOWN
    if what.startswith(READY_AGAIN):
        return _RETURN
    if what.startswith((SHUTDOWN_SEEN, "Ready=")):
        return _SHUTDOWN
    return _TAINTS
