"""Nodes whose pods were evicted late, or not at all, by the limits of their zone (facts 5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.kube import Node, Taint, is_ready
from chaos.core.timeline import History, Version
from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind, seconds_between

_AT_ONCE = 5.0  # seconds; the first node of a zone is tainted with its condition
_PATIENCE = 60.0  # seconds without a taint after which it is said to be withheld
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def find(case: Case) -> Iterator[Finding]:
    """One finding for each node."""
    for name, history in sorted(case.timeline.nodes.items()):
        lost = next((v for v in history.after(case.fault) if not v.is_deleted and not is_ready(v.object)), None)
        if lost is None:
            continue
        ended, is_tainted = _taint_or_end(history, lost, case)
        seconds = seconds_between(lost.t, ended)
        if is_tainted and seconds > _AT_ONCE:
            detail = "tainted NoExecute late: the rate of its zone is limited"
            yield Finding(FindingKind.EVICTION_DELAYED, name, 1, seconds, False, detail)
        elif not is_tainted and seconds > _PATIENCE:
            detail = "not tainted NoExecute while it was lost: its pods stay, as most nodes of the zone are lost"
            yield Finding(FindingKind.EVICTION_DELAYED, name, 1, seconds, ended == case.end, detail)


def _taint_or_end(history: History[Node], lost: Version[Node], case: Case) -> tuple[float, bool]:
    """When the lost node was tainted, or was no longer lost; and whether it was the taint."""
    for version in history.versions:
        if version.t < lost.t:
            continue
        if any(taint.key in _KEYS and taint.effect == "NoExecute" for taint in _taints(version.object)):
            return version.t, True
        if version.is_deleted or is_ready(version.object):
            return version.t, False
    return case.end, False


def _taints(node: Node) -> list[Taint]:
    return (node.spec.taints if node.spec else None) or []
