"""``metrics.txt``: verdict and times of a run as metrics, in the OpenMetrics text format.

A verdict is a set of states, of which one is 1 and each other is there as 0: a former value cannot survive in the
database, and a rule can ask for what is missing. Numbers by verdict begin at 0 for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from chaos.core.history import History
from chaos.core.kube import is_ready, pod_condition
from chaos.core.metrics import END, Metric, Sample, exposition
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.reports.run.renderer import Renderer

_VERDICTS = (Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE)
_ENDINGS = ("interrupted", "refused", "skipped")


def render(result: RunResult, timeline: Timeline) -> str:
    """The OpenMetrics document."""
    labels = {"experiment": result.experiment}
    return exposition(metric.with_labels(labels) for metric in run_metrics(result, timeline)) + END


def run_metrics(result: RunResult, timeline: Timeline) -> tuple[Metric, ...]:
    """The metrics of a run, without labels that name it. Times that are unknown are left out."""
    fault = _fault(result)
    shown = [verdict.shown for verdict in (*result.hypothesis, *result.recovery)]
    return (
        *_state(result.ending if result.ending in _ENDINGS else str(result.status), result.started, result.ended),
        _expectations(shown),
        _gauge("duration_seconds", "Duration of the last run in seconds.", result.ended - result.started),
        _gauge(
            "detect_seconds",
            "Seconds from the fault of the last run until a target was observed not to be Ready.",
            _after(fault, _first_not_ready(result, timeline, fault)),
        ),
        _gauge(
            "evict_seconds",
            "Seconds from the fault of the last run until the first pod of a target was seen to be removed.",
            _after(fault, _first_removal(result, timeline, fault)),
        ),
        _gauge(
            "recover_seconds",
            "Seconds from the end of the fault of the last run until the steady state held again.",
            _recovery(result),
        ),
        _pending_undo(sum(not undo.proven for undo in result.undo)),
    )


def entry_metrics(word: str, started: float, ended: float, pending: int) -> tuple[Metric, ...]:
    """The metrics of an entry of a game day without a result: it was skipped, refused or interrupted.

    ``word``: how it ended; what is no verdict and not skipped counts as interrupted. ``pending``: undo operations.
    """
    state = word if word in (*_VERDICTS, *_ENDINGS) else "interrupted"
    return (*_state(state, started, ended), _expectations([]), _pending_undo(pending))


def _state(verdict: str, started: float, ended: float) -> tuple[Metric, ...]:
    """The verdict as a set of states, and the times from which its age follows."""
    verdicts = tuple(Sample(float(verdict == each), {"verdict": str(each)}) for each in (*_VERDICTS, *_ENDINGS))
    return (
        Metric("nodefall_run_verdict", "1 for the verdict of the last run, 0 for each other verdict.", verdicts),
        _gauge("start_timestamp_seconds", "When the last run began, in seconds since the epoch.", started),
        _gauge("end_timestamp_seconds", "When the last run ended, in seconds since the epoch.", ended),
    )


def _pending_undo(number: int) -> Metric:
    return _gauge("pending_undo", "Undo operations of the last run that are pending.", float(number))


def _gauge(name: str, text: str, value: float | None) -> Metric:
    return Metric(f"nodefall_run_{name}", text, () if value is None else (Sample(round(value, 3)),))


def _expectations(shown: Sequence[Status]) -> Metric:
    """Those that were left pending are inconclusive."""
    counts: Counter[Status] = Counter(Status.INCONCLUSIVE if status is Status.PENDING else status for status in shown)
    samples = tuple(Sample(float(counts[status]), {"verdict": str(status)}) for status in (*_VERDICTS, Status.KNOWN))
    return Metric("nodefall_run_expectations", "Expectations of the last run, by verdict.", samples)


def _fault(result: RunResult) -> float | None:
    """When the first step was sent."""
    sent = [step.begin if step.phases.fired is None else step.phases.fired for step in result.steps]
    return min((t for t in sent if t is not None), default=None)


def _after(fault: float | None, t: float | None) -> float | None:
    return None if fault is None or t is None else max(t - fault, 0.0)


def _first_not_ready(result: RunResult, timeline: Timeline, fault: float | None) -> float | None:
    """When the first target that was Ready at the fault was seen not to be."""
    nodes = {node for nodes in result.targets.values() for node in nodes}
    found = (
        _first_change(timeline.nodes[node], fault, lambda node: not is_ready(node))
        for node in nodes & timeline.nodes.keys()
    )
    return min((t for t in found if t is not None), default=None)


def _first_removal(result: RunResult, timeline: Timeline, fault: float | None) -> float | None:
    """When the first pod of a target was observed to be deleted, or about to be disrupted."""
    nodes = {node for nodes in result.targets.values() for node in nodes}
    found = (_first_change(history, fault, _is_removed) for history in timeline.pods.on_nodes(nodes))
    return min((t for t in found if t is not None), default=None)


def _is_removed(pod: Any) -> bool:
    condition = pod_condition(pod, "DisruptionTarget")
    return pod.metadata.deletion_timestamp is not None or bool(condition and condition.status == "True")


def _first_change(history: History[Any], since: float | None, is_changed: Any) -> float | None:
    """When an object that was not changed at ``since`` was first seen to be; a deletion is a change."""
    before = history.at(since) if since is not None else None
    if since is None or before is None or before.is_deleted or is_changed(before.object):
        return None
    later = (version for version in history if version.t > since)
    return next((version.t for version in later if version.is_deleted or is_changed(version.object)), None)


def _recovery(result: RunResult) -> float | None:
    """None unless all of the steady state held again."""
    times = list(_recovery_times(result))
    return max(times) if times and len(times) == len(result.recovery) else None


def _recovery_times(result: RunResult) -> Iterator[float]:
    for verdict in result.recovery:
        if verdict.status is Status.HELD and verdict.at is not None and verdict.start is not None:
            yield max(verdict.at - verdict.start, 0.0)


RENDERER = Renderer("openmetrics", "metrics.txt", "verdict and times as metrics, in OpenMetrics text", render)
