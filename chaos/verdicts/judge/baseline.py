"""Baseline of a run: how long the pods of its workload took to start before the first step."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.kube import Pod
from chaos.core.timeline import History, Timeline
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.pods import is_ready, node_of


@dataclass(frozen=True, slots=True)
class Start:
    """A pod that became Ready ``seconds`` after it was bound to its node; both were observed."""

    seconds: float
    pod: str


def slowest_start(context: JudgeContext) -> Start | None:
    """The slowest start of a pod of the workload before the first step, None if no start was observed.

    It is measured by the run's clock, as timestamps of Kubernetes have whole seconds. Not counted are pods that were
    already Ready when first seen, and pods whose start a blind window or a late watch may have lengthened. Raises
    NotYetDecidable.
    """
    if not context.namespace:
        return None
    before = context.start
    histories = context.timeline.pods.in_namespace(context.namespace)
    starts = (_start_of(context.timeline, history, before) for history in histories)
    return max(filter(None, starts), key=lambda start: start.seconds, default=None)


def _start_of(timeline: Timeline, history: History[Pod], before: float) -> Start | None:
    """The start of one pod; None if it was not observed before the moment ``before``."""
    versions = [version for version in history if version.t < before and not version.is_deleted]
    ready = next((version for version in versions if is_ready(version.object)), None)
    bound = next((version for version in versions if node_of(version.object)), None)
    if ready is None or bound is None or ready is versions[0]:
        return None
    windows = timeline.uncertain_windows("pods")
    if any(w.start <= ready.t and (w.end is None or w.end > bound.t) for w in windows):
        return None
    return Start(ready.t - bound.t, ready.object.metadata.name)
