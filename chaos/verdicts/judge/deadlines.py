"""Deadlines on slow machines: the slack of the inventory, and the baseline of the run.

A deadline only becomes later, never earlier. If something becomes true after the written deadline, and after a
further step or an undo has begun, it may be an effect of that and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from chaos.core.duration import Bound
from chaos.core.experiment import Expectation
from chaos.core.kube import Pod
from chaos.core.recording import SLACK, ActionPhase
from chaos.core.signal import Sample, Signal
from chaos.core.timeline import History, Timeline
from chaos.core.verdict import Status
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.pods import is_ready, node_of
from chaos.verdicts.judge.temporal import Answer, within

_INTERVENTIONS = (ActionPhase.BEGIN, ActionPhase.UNDO)


@dataclass(frozen=True, slots=True)
class Deadline:
    """``written``: without slack and baseline; ``at``: with them. ``limit``: first step or undo between the two."""

    written: float
    at: float
    limit: float = math.inf
    limited_by: str = ""


@dataclass(frozen=True, slots=True)
class Extension:
    """Extension of the deadlines of one expectation. ``slack``: 1 without; ``factor``: of the baseline."""

    timeline: Timeline
    slack: float = 1.0
    factor: float | None = None
    slowest: Start | None = None

    def deadline(self, anchor: float, time: Bound, seconds: Callable[[Bound], float | None]) -> Deadline | None:
        """The deadline of ``time`` after ``anchor``; None if a fact in it is unknown to ``seconds``."""
        written, with_slack = seconds(time), seconds(time.scaled(self.slack))
        if written is None or with_slack is None:
            return None
        deadline = Deadline(anchor + written, anchor + max(written, with_slack, self._baseline_seconds))
        limit, limited_by = self._limit(deadline)
        return replace(deadline, limit=limit, limited_by=limited_by)

    def reason(self, time: Bound) -> str:
        """`` (10s, with slack 2)``: why the deadline of ``time`` is what it is; "" if it is the one written."""
        parts = [f"slack {self.slack:g}"] if self.slack > 1 else []
        if self.factor is not None:
            parts.append(self._describe_baseline(self.factor))
        return f" ({time.text}, with {' and '.join(parts)})" if parts else ""

    @property
    def _baseline_seconds(self) -> float:
        return self.factor * self.slowest.seconds if self.factor and self.slowest else 0.0

    def _describe_baseline(self, factor: float) -> str:
        if self.slowest is None:
            return "no baseline, because no pod of the workload was observed to start before the first step"
        return f"baseline {factor:g} x {self.slowest.seconds:.1f} s, the slowest start of the workload"

    def _limit(self, deadline: Deadline) -> tuple[float, str]:
        """Begin and name of the first step or undo after the written deadline and before the later one."""
        between = (
            (entry.t, f"the {'undo of ' if record.phase == ActionPhase.UNDO else ''}step {record.step}")
            for entry, record in self.timeline.actions
            if record.phase in _INTERVENTIONS and deadline.written < entry.t < deadline.at
        )
        return min(between, default=(math.inf, ""))


def recorded_slack(timeline: Timeline) -> float:
    """The slack that the run recorded, or 1."""
    slack = timeline.meta.get(SLACK, 1.0)
    return float(slack) if isinstance(slack, int | float) and 1 <= slack < math.inf else 1.0


def extension_of(expectation: Expectation, context: JudgeContext) -> Extension:
    """Slack and baseline of an expectation. Raises NotYetDecidable before the first step."""
    slack = recorded_slack(context.timeline) if expectation.timing == "loose" else 1.0
    slowest = slowest_start(context) if expectation.baseline is not None else None
    return Extension(context.timeline, slack, expectation.baseline, slowest)


def within_deadline(signal: Signal, start: float, deadline: Deadline, hold: float, horizon: float) -> Answer:
    """``within`` up to the later deadline. What holds by the written one holds."""
    answer = within(signal, start, deadline.written, hold, horizon)
    if answer.status is Status.HELD or deadline.at <= deadline.written:
        return answer
    answer = within(signal, start, deadline.at, hold, min(horizon, deadline.limit))
    if answer.status is not Status.PENDING or horizon < deadline.limit:
        return answer
    why = f"not true before {deadline.limited_by} began; after that it may be an effect of that step"
    return Answer(Status.INCONCLUSIVE, deadline.limit, Sample(deadline.limit, None, answer.sample.seq, why))


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
