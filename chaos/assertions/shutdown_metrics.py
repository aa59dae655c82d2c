"""What do the kubelet's own metrics tell of its graceful shutdown?"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.judge.signals import Observation, mask
from chaos.model.assertion import View
from chaos.model.duration import parse_duration
from chaos.model.experiment import DurationText, Model
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import Scrape

START = "kubelet_graceful_shutdown_start_time_seconds"
END = "kubelet_graceful_shutdown_end_time_seconds"
_RESOLUTION = 1.0  # seconds: the metrics are whole seconds
_LOAD_SECONDS = 5.0  # seconds after a gap in which 0 and 0 may only not have been loaded yet (seen: one second)


class Params(Model):
    """What the metrics must tell; ``since``: the shutdown meant began no earlier than this step."""

    node: str = Field(description="a target, a node's name, or all")
    started: bool | None = None
    ended: bool | None = None
    duration_at_most: DurationText | None = Field(None, alias="duration-at-most")
    since: str | None = Field(None, description="a step; default: when judging starts")

    def describe(self) -> str:
        """The statement in words."""
        parts = [
            f"{'a' if self.started else 'no'} shutdown began" if self.started is not None else "",
            f"{'it' if self.ended else 'none'} ended" if self.ended is not None else "",
            f"it took at most {self.duration_at_most}" if self.duration_at_most else "",
        ]
        return " and ".join(p for p in parts if p) or "a shutdown began and ended"


def _evaluate(scrape: Scrape, params: Params, since: float) -> Observation:
    start, end = scrape.values.get(START), scrape.values.get(END)
    if start is None or end is None:
        return None, "the kubelet has no such metrics"
    started = start >= since - _RESOLUTION
    ended = started and end >= start
    longest = parse_duration(params.duration_at_most) + _RESOLUTION if params.duration_at_most else None
    both = params.started is None and params.ended is None and longest is None
    value = (
        (params.started is None or params.started is started)
        and (params.ended is None or params.ended is ended)
        and (longest is None or (ended and end - start <= longest))
        and (not both or ended)
    )
    return value, _describe(start, end, started, ended)


def _describe(start: float, end: float, started: bool, ended: bool) -> str:
    if not started:
        return "the kubelet's metrics tell of no shutdown" + (" but an earlier one" if start else "")
    took = f"and ended {end - start:.0f}s later" if ended else "and did not end"
    return f"the kubelet's metrics tell that a shutdown began {took}"


def _samples(scrapes: list[Scrape], params: Params, since: float) -> Iterator[Sample]:
    """A scrape is good until the next; after a gap 0 and 0 may only not have been loaded yet."""
    gap, back = False, float("-inf")
    for scrape in scrapes:
        if scrape.status != 200:
            gap = True
            yield Sample(scrape.t, None, scrape.seq, "the kubelet's metrics could not be read")
            continue
        if gap:
            gap, back = False, scrape.t
        value, seen = _evaluate(scrape, params, since)
        if scrape.t - back < _LOAD_SECONDS and not scrape.values.get(START) and not scrape.values.get(END):
            value, seen = None, "the kubelet has just begun to answer, and its metrics may not be loaded yet"
        yield Sample(scrape.t, value, scrape.seq, seen)


class ShutdownMetrics:
    """``kubelet_graceful_shutdown_start_time_seconds`` and ``..._end_...`` (ALPHA gauges, whole seconds, node's clock).

    Values of an earlier shutdown do not count: the start must not lie more than 1 s before ``since``. The end is set
    just before the lock is released, so it is mostly read only once the node is back; the first scrape after a boot may
    say 0 and 0 for a moment: unknown for 5 s after a gap. ``ended`` means: of that shutdown.
    (kubernetes pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go)
    """

    name = "shutdown-metrics"
    summary = "the kubelet's metrics tell that a graceful shutdown began, ended, and how long it took"
    example = (
        "{assert: shutdown-metrics, with: {node: victim, started: true, ended: true, since: power-off}, "
        "after: power-on, within: 2m}"
    )
    needs = "the kubelet's shutdown gauges, scraped in that time"
    params = Params
    node_fields = ("node",)
    moment_fields = ("since",)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        since = view.moment(params.since) if params.since else view.anchor
        subjects = []
        for node in view.nodes(params.node):
            signal = Signal(tuple(_samples(view.timeline.metrics.get(node, []), params, since)))
            subjects.append(Subject(node, mask(signal, view.timeline, f"metrics@{node}")))
        return SubjectSet(
            f"the kubelet's metrics tell that {params.describe()}", tuple(subjects), empty_reason="no node"
        )


ASSERTION = ShutdownMetrics()
