"""The outcome of a fault, from a timeline. Pure."""

from __future__ import annotations

from itertools import chain

from chaos.core.recording import ActionPhase
from chaos.core.timeline import Timeline
from chaos.verdicts.outcome.measure import Outcome
from chaos.verdicts.outcome.names import Names
from chaos.verdicts.outcome.nodes import node_measures
from chaos.verdicts.outcome.pods import pod_measures
from chaos.verdicts.outcome.volumes import volume_measures
from chaos.verdicts.outcome.workloads import workload_measures


def fault_time(timeline: Timeline) -> float | None:
    """Time at which the first action began, in epoch seconds; None without one."""
    begins = (entry.t for entry, record in timeline.actions if record.phase == ActionPhase.BEGIN)
    return min(begins, default=None)


def outcome_of(timeline: Timeline, start: float, end: float | None = None) -> Outcome:
    """Measures of what happened from ``start`` to ``end`` (epoch seconds; default: the end of the timeline).

    Targets and the namespace of the experiment's workload have the names of :meth:`Names.of_run`.
    """
    until = timeline.end if end is None else min(end, timeline.end)
    names = Names.of_run(timeline.meta)
    measures = (node_measures, pod_measures, workload_measures, volume_measures)
    found = chain.from_iterable(measure(timeline, start, names) for measure in measures)
    return Outcome(until - start, {measure: round(t - start, 3) for measure, t in found if t <= until})
