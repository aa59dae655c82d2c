"""Did a node's machine reboot?"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.judge.signals import source_time
from chaos.model.assertion import View
from chaos.model.evidence import SAME_BOOT_SECONDS, all_readings, is_number
from chaos.model.experiment import Model
from chaos.model.kube import Node, node_condition
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import Timeline

# A kubelet that answers this often (seconds) has not rebooted: stopping and booting takes longer.
_MIN_BOOT_SECONDS = 2.5


class Params(Model):
    node: str = Field(description="a target, a node's name, or all")


class _BootHistory:
    """What a timeline tells of one machine's boot since a moment."""

    def __init__(self, timeline: Timeline, node: str, anchor: float) -> None:
        self.timeline = timeline
        self.node = node
        self.anchor = anchor
        history = timeline.nodes.get(node)
        base = history.at(anchor) if history else None
        self.versions = [v for v in history or () if v.t > anchor and not v.final_state_unknown]
        self.boot_id = _boot_id(base.object) if base else ""
        starts = [r for r in all_readings(timeline, node, "pid1-start") if is_number(r.value)]
        before = [r for r in starts if r.t <= anchor]
        self.start = before[-1] if before else None
        self.starts = [r for r in starts if r.t > anchor]

    def signal(self) -> Signal:
        """False as long as it is confirmed, true from a new boot identity on, unknown between."""
        new = min(self._reboot_samples(), key=lambda s: s.t, default=None)
        limit = new.t if new else float("inf")
        confirmed = max((s for s in self._same_boot_samples() if s.t < limit), key=lambda s: s.t, default=None)
        samples = []
        if confirmed:
            samples.append(Sample(self.anchor, False, confirmed.seq, confirmed.observation))
            samples.append(Sample(confirmed.t, None, confirmed.seq, "nothing tells of its boot any more"))
        else:
            samples.append(Sample(self.anchor, None, None, "nothing tells whether it rebooted"))
        return Signal((*samples, new) if new else tuple(samples))

    def _reboot_samples(self) -> Iterator[Sample]:
        for version in self.versions:
            found = _boot_id(version.object)
            if self.boot_id and found and found != self.boot_id:
                yield Sample(version.t, True, version.seq, "its boot ID changed")
        for reading in self.starts:
            if self.start and reading.value > self.start.value + SAME_BOOT_SECONDS:
                yield Sample(reading.t, True, reading.seq, "its PID 1 was started anew")
            elif self.start is None and reading.value > self.anchor + SAME_BOOT_SECONDS:
                yield Sample(reading.t, True, reading.seq, "its PID 1 was started later, by its own clock")

    def _same_boot_samples(self) -> Iterator[Sample]:
        """Until when it certainly had not rebooted."""
        for reading in self.starts:
            if self.start and abs(reading.value - self.start.value) <= SAME_BOOT_SECONDS:
                yield Sample(reading.t, False, reading.seq, "its PID 1 is the same")
        yield from self._same_boot_id_samples()
        last = None
        for scrape in self.timeline.metrics.get(self.node, []):
            if scrape.t <= self.anchor:
                last = scrape if scrape.status == 200 else None
            elif last is None or scrape.status != 200 or scrape.t - last.t > _MIN_BOOT_SECONDS:
                return
            else:
                last = scrape
                yield Sample(scrape.t, False, scrape.seq, "its kubelet answered all the time")

    def _same_boot_id_samples(self) -> Iterator[Sample]:
        """A boot ID that several nodes share is their host's and says nothing."""
        nodes = [history.last.object for history in self.timeline.nodes.values()]
        if sum(_boot_id(node) == self.boot_id for node in nodes) > 1:
            return
        for version in self.versions:
            heartbeat = _heartbeat(version.object)
            if self.boot_id and _boot_id(version.object) == self.boot_id and heartbeat > self.anchor:
                until = min(version.t, heartbeat)
                yield Sample(until, False, version.seq, "its kubelet reports the same boot ID")


def _boot_id(node: Node) -> str:
    info = node.status.node_info if node.status else None
    return info.boot_id if info else ""


def _heartbeat(node: Node) -> float:
    """When the kubelet itself last wrote the status (source time); 0 if it is not known."""
    ready = node_condition(node, "Ready")
    if ready is None or ready.status == "Unknown":
        return 0.0
    return source_time(ready.last_heartbeat_time) or 0.0


class NodeRebooted:
    """The boot identity is another than when judging starts: boot ID of the Node object, or start of PID 1 on the host.

    "Not rebooted" needs proof too: the same start of PID 1 read later, the same boot ID reported later by the kubelet
    (unless nodes share it, as containers on one kernel do), or a kubelet whose metrics answered all the time. Between
    the last such proof and a new identity it is unknown. Blind windows need no mask: only what was seen counts.
    """

    name = "node-rebooted"
    summary = "the machine of a node was booted anew"
    example = "{assert: node-rebooted, with: {node: victim}, never: {for: 60s}}"
    needs = "the start of PID 1 read on the host, a boot ID of its own, or the kubelet's metrics without a gap"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        names = view.nodes(params.node)
        subjects = tuple(Subject(name, _BootHistory(view.timeline, name, view.anchor).signal()) for name in names)
        return SubjectSet("the machine was booted anew", subjects, empty_reason="no node was seen")


ASSERTION = NodeRebooted()
