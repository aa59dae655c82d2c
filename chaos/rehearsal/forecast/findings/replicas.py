"""Workloads without a serving pod, and pods that nothing replaces."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.kube import Pod, controller_of, is_finished, is_static, phase
from chaos.core.timeline import History
from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind
from chaos.rehearsal.forecast.serving import outages


def find(case: Case) -> Iterator[Finding]:
    """One finding for each workload, and for each pod without a controller."""
    for outage in outages(case):
        if not outage.none:
            continue
        kind = FindingKind.SINGLE_REPLICA if outage.before == 1 else FindingKind.NO_REPLICA_LEFT
        pods = "the one serving pod" if outage.before == 1 else f"all {outage.before} serving pods"
        detail = f"{pods} of the {outage.kind} ended, or its machine was off or unreachable"
        yield Finding(kind, outage.name, outage.before, outage.none, outage.lasts, detail)
    for history in case.timeline.pods.values():
        if _is_lost(history, case):
            name = case.owners.of(history.last.object)[1]
            yield Finding(FindingKind.POD_LOST, name, 1, None, True, "no controller replaces it")


def _is_lost(history: History[Pod], case: Case) -> bool:
    """Whether a pod without a controller ran before the fault, and was removed or failed after it.

    One that ends by itself, as it may on a machine that stays up, is not lost.
    """
    before, last = history.at(case.fault), history.last
    if before is None or before.is_deleted or is_finished(before.object):
        return False
    if controller_of(last.object) is not None or is_static(last.object):
        return False
    node = last.object.spec.node_name if last.object.spec else ""
    return last.is_deleted or phase(last.object) == "Failed" or (node in case.down and is_finished(last.object))
