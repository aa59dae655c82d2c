"""Assertion ``shutdown-metrics``: the kubelet's metrics report a graceful shutdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, View, format_seconds
from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Flag, Model
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import Scrape
from chaos.verdicts.judge.clocks import Bounds, seconds_ahead
from chaos.verdicts.judge.signals import Observation, mask

START = "kubelet_graceful_shutdown_start_time_seconds"
END = "kubelet_graceful_shutdown_end_time_seconds"
_RESOLUTION = 1.0  # seconds: the metrics are whole seconds
_LOAD_SECONDS = 5.0  # seconds after a gap in which both gauges may be 0 because they are not loaded yet (measured: 1 s)


class Params(Model):
    """Expected values; ``since``: the shutdown began no earlier than this step."""

    node: str = Field(description="A target, or all.")
    started: Flag | None = None
    ended: Flag | None = None
    duration_at_most: DurationText | None = Field(None, alias="duration-at-most")
    since: str | None = Field(None, description="A step from which readings count. By default, the start of judging.")

    def describe(self) -> str:
        """Describe the expectation."""
        parts = [
            f"{'a' if self.started else 'no'} shutdown began" if self.started is not None else "",
            f"{'it' if self.ended else 'none'} ended" if self.ended is not None else "",
            f"it took at most {self.duration_at_most}" if self.duration_at_most else "",
        ]
        return " and ".join(p for p in parts if p) or "a shutdown began and ended"


@dataclass(frozen=True, slots=True)
class _Since:
    """What distinguishes a shutdown since a moment from an earlier one.

    ``before``: the start in the last reading before it, None without one; ``moments``: where the moment lies by the
    clock of the node, and ``latest``, where the reading lies at the latest.
    """

    before: float | None
    moments: Bounds
    latest: float

    def includes(self, start: float) -> bool | None:
        """Whether a shutdown that started then, by the clock of the node, is since that moment."""
        if start in (0.0, self.before) or not self.moments[0] - _RESOLUTION < start <= self.latest:
            return False
        if self.before is not None:
            return True
        return True if start >= self.moments[1] else None


def _evaluate(scrape: Scrape, params: Params, since: _Since) -> Observation:
    start, end = scrape.values.get(START), scrape.values.get(END)
    if start is None or end is None:
        return False, "the kubelet has no such metrics"
    started = since.includes(start)
    if started is None:
        return None, "it is not known whether the shutdown in the kubelet's metrics is an earlier one"
    ended = started and start <= end <= since.latest
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
        return "the kubelet's metrics report no shutdown" + (", except an earlier one" if start else "")
    end_text = f"ended {end - start:.0f} s later" if ended else "did not end"
    return f"the kubelet's metrics report a shutdown that began and {end_text}"


def _samples(scrapes: list[Scrape], params: Params, moment: float, ahead: Bounds) -> Iterator[Sample]:
    """Samples of the scrapes, each valid until the next; unknown while the gauges may not be loaded yet."""
    before: float | None = None
    moments = moment + ahead[0], moment + ahead[1]
    for scrape, is_loaded in _loaded(scrapes):
        if scrape.t <= moment and is_loaded:
            before = scrape.values.get(START)
        if scrape.status != 200:
            yield Sample(scrape.t, None, scrape.seq, "reading the metrics of the kubelet failed")
        elif not is_loaded:
            text = "the kubelet has just started, and its metrics may not be loaded yet"
            yield Sample(scrape.t, None, scrape.seq, text)
        else:
            value, text = _evaluate(scrape, params, _Since(before, moments, scrape.t + ahead[1]))
            yield Sample(scrape.t, value, scrape.seq, text)


def _loaded(scrapes: list[Scrape]) -> Iterator[tuple[Scrape, bool]]:
    """The scrapes, each with whether its gauges were certainly loaded."""
    gap, resumed = False, float("-inf")
    for scrape in scrapes:
        if scrape.status == 200 and gap:
            resumed = scrape.t
        gap = scrape.status != 200
        is_early = scrape.t - resumed < _LOAD_SECONDS and not scrape.values.get(START) and not scrape.values.get(END)
        yield scrape, not gap and not is_early


class ShutdownMetrics:
    """``kubelet_graceful_shutdown_start_time_seconds`` and ``..._end_...`` (ALPHA gauges, whole seconds, node's clock).

    Values of an earlier shutdown do not count. The start must differ from the start in the last reading before
    ``since``. If the node's clock was measured, the start must also be neither before ``since`` nor after the
    reading. The kubelet sets the end just before it releases the lock, so nodefall usually reads the end after the
    next boot. The first scrapes after a boot may contain 0 for both gauges, so the result is unknown for 5 s after a
    gap. ``ended`` refers to the same shutdown. (kubernetes pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go)
    """

    name = "shutdown-metrics"
    summary = "the kubelet's metrics report the start, end and duration of a graceful shutdown"
    example = (
        "{assert: shutdown-metrics, with: {node: victim, started: true, ended: true, since: power-off}, "
        "after: power-on, within: 2m}"
    )
    needs = "scrapes of the kubelet's shutdown gauges during that time"
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ("since",)
    masks_itself = True

    def claim(self, params: Params, names: Names) -> Claim:
        metrics = Noun(f"metrics of {names.nodes(params.node)}", is_plural=True)
        if params.started is False:
            return metrics.claim("showed no shutdown", "showed a shutdown")
        if params.ended is False:
            return metrics.claim("showed no end of a shutdown", "showed the end of a shutdown")
        if params.duration_at_most:
            what = f"shutdown of at most {format_seconds(parse_duration(params.duration_at_most))}"
        else:
            what = "shutdown" if params.started and params.ended is None else "complete shutdown"
        return metrics.claim(f"showed a {what}", f"showed no {what}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        since = view.moment(params.since) if params.since else view.anchor
        subjects = []
        for node in view.nodes(params.node):
            scrapes, ahead = view.timeline.metrics.get(node, []), seconds_ahead(view.timeline, node)
            signal = Signal(tuple(_samples(scrapes, params, since, ahead)))
            subjects.append(Subject(node, mask(signal, view.timeline, f"metrics@{node}")))
        return SubjectSet(
            f"the kubelet's metrics report that {params.describe()}", tuple(subjects), empty_reason="no node"
        )


ASSERTION = ShutdownMetrics()
