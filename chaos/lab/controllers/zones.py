"""Zone states and eviction rates of the node lifecycle controller: pure. Facts 5.5."""

from __future__ import annotations

from typing import Literal

from chaos.lab.objects.accessors import Object, labels_of
from chaos.lab.spec import ControllerSpec

ZoneState = Literal["Normal", "PartialDisruption", "FullDisruption"]
_FULL = 1.0 - 1e-9  # tokens are added in many small steps
_EXCLUDED = "node.kubernetes.io/exclude-disruption"


def zone_of(node: Object) -> str:
    """Key of the node's region and zone; empty without labels."""
    labels = labels_of(node)
    region = labels.get("failure-domain.beta.kubernetes.io/region") or labels.get("topology.kubernetes.io/region", "")
    zone = labels.get("failure-domain.beta.kubernetes.io/zone") or labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def is_counted(node: Object) -> bool:
    """Whether the node counts for the state of its zone."""
    return _EXCLUDED not in labels_of(node)


def zone_state(ready: int, not_ready: int, threshold: float) -> ZoneState:
    """State of a zone; partial disruption needs more than two unready nodes. NLC ComputeZoneState."""
    if ready == 0 and not_ready > 0:
        return "FullDisruption"
    if not_ready > 2 and not_ready / (ready + not_ready) >= threshold:
        return "PartialDisruption"
    return "Normal"


def zone_rate(state: ZoneState, size: int, settings: ControllerSpec) -> float:
    """Nodes per second that may be tainted NoExecute in a zone of this size."""
    if state != "PartialDisruption":
        return settings.node_eviction_rate
    return settings.secondary_node_eviction_rate if size > settings.large_cluster_size_threshold else 0.0


class Limiter:
    """Token bucket with burst 1. A replacement of an empty bucket starts empty (RLQ SwapLimiter)."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate, self._tokens, self._at = rate, 1.0, now

    def take(self, now: float) -> bool:
        """Take a token. Whether there was one."""
        self._refill(now)
        if self.rate == 0 or self._tokens < _FULL:
            return False
        self._tokens = max(0.0, self._tokens - 1.0)
        return True

    def set_rate(self, rate: float, now: float) -> None:
        if rate == self.rate:
            return
        self._refill(now)
        saturated = self.rate == 0 or self._tokens < _FULL
        self.rate, self._tokens, self._at = rate, 0.0 if saturated else 1.0, now

    def _refill(self, now: float) -> None:
        self._tokens = min(1.0, self._tokens + (now - self._at) * self.rate)
        self._at = now
