"""Assertion ``node-rebooted``: the machine of a node rebooted."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.core.assertion import Claim, Names, View
from chaos.core.evidence import SAME_BOOT_SECONDS, all_readings, is_number
from chaos.core.field_types import Model
from chaos.core.kube import Node, node_condition
from chaos.core.machine_evidence import believed_offs
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.time_bounds import source_time
from chaos.core.timeline import Timeline

# Seconds: a machine whose kubelet answers at least this often has not rebooted, as a reboot takes longer.
_MIN_BOOT_SECONDS = 2.5
# Seconds: a machine that is off so soon after its last proof of the same boot has not booted and gone off in between.
_MIN_BOOT_AND_OFF_SECONDS = 5.0


class Params(Model):
    """Nodes."""

    node: str = Field(description="A target, or all.")


class _BootHistory:
    """Boots of one machine since the anchor, as observed in a timeline."""

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
        # Containers have a PID 1 each and share a boot ID; Windows has no PID 1.
        ids = [] if starts else all_readings(timeline, node, "boot-id")
        self.id_before = next((r for r in reversed(ids) if r.t <= anchor), None)
        self.ids = [r for r in ids if r.t > anchor]
        self.off = [reading for readings in believed_offs(timeline, node) for reading in readings if reading.t > anchor]

    def signal(self) -> Signal:
        """Signal that is false while the same boot is confirmed, true from a new boot on, and unknown in between."""
        new = min(self._reboot_samples(), key=lambda s: s.t, default=None)
        limit = new.t if new else float("inf")
        confirmed = max((s for s in self._same_boot_samples() if s.t < limit), key=lambda s: s.t, default=None)
        confirmed = self._last_off(confirmed, limit)
        samples = []
        if confirmed:
            samples.append(Sample(self.anchor, False, confirmed.seq, confirmed.observation))
            samples.append(Sample(confirmed.t, None, confirmed.seq, "no later evidence of its boot"))
        else:
            samples.append(Sample(self.anchor, None, None, "no evidence of whether it rebooted"))
        return Signal((*samples, new) if new else tuple(samples))

    def _last_off(self, confirmed: Sample | None, limit: float) -> Sample | None:
        """The last moment before ``limit`` at which the machine was off since the same boot; else ``confirmed``."""
        for reading in self.off if confirmed else ():
            if (
                confirmed
                and confirmed.t < reading.began
                and reading.t < limit
                and reading.t - confirmed.t <= _MIN_BOOT_AND_OFF_SECONDS
            ):
                confirmed = Sample(reading.began, False, reading.seq, "it has been off since the same boot")
        return confirmed

    def _reboot_samples(self) -> Iterator[Sample]:
        for version in self.versions:
            found = _boot_id(version.object)
            if self.boot_id and found and found != self.boot_id:
                yield Sample(version.t, True, version.seq, "its boot ID changed", version.earliest)
        for reading in self.ids if self.id_before else ():
            if self.id_before and reading.value != self.id_before.value:
                yield Sample(reading.t, True, reading.seq, "its boot ID changed")
        for reading in self.starts:
            if self.start and reading.value > self.start.value + SAME_BOOT_SECONDS:
                yield Sample(reading.t, True, reading.seq, "its PID 1 was restarted")
            elif self.start is None and reading.value > self.anchor + SAME_BOOT_SECONDS:
                yield Sample(reading.t, True, reading.seq, "its PID 1 was started later, by the clock of the host")

    def _same_boot_samples(self) -> Iterator[Sample]:
        """Samples up to which the machine certainly had not rebooted."""
        for reading in self.starts:
            if self.start and abs(reading.value - self.start.value) <= SAME_BOOT_SECONDS:
                yield Sample(reading.began, False, reading.seq, "its PID 1 is the same")
        for reading in self.ids if self.id_before else ():
            if self.id_before and reading.value == self.id_before.value:
                yield Sample(reading.began, False, reading.seq, "its host reports the same boot ID")
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
        """Samples from the boot ID of the Node object, unless several nodes share it, as containers on one host do."""
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
    """Last time at which the kubelet itself wrote the status, by its clock; 0 if unknown."""
    ready = node_condition(node, "Ready")
    if ready is None or ready.status == "Unknown":
        return 0.0
    return source_time(ready.last_heartbeat_time) or 0.0


class NodeRebooted:
    """The boot identity has changed since judging started: the boot ID in the Node object, or the start time of PID 1
    on the host.

    "Not rebooted" needs proof, too: a later reading of the same start of PID 1, a later report of the same boot ID by
    the kubelet (unless nodes share it, as containers on one kernel do), a kubelet whose metrics were available all the
    time, or a power control that reports the machine off, at least every 5 s since the last such proof. The result is
    unknown between the last such proof and a new identity. Observation gaps need no mask: only observations count.
    """

    name = "node-rebooted"
    summary = "the machine of a node rebooted"
    example = "{assert: node-rebooted, with: {node: victim}, never: {for: 60s}}"
    needs = "the start of PID 1 read on the host, a boot ID that no other node has, or kubelet metrics without a gap"
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True
    sources = ("nodes",)

    def claim(self, params: Params, names: Names) -> Claim:
        return names.nodes(params.node).claim("rebooted", "did not reboot")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        names = view.nodes(params.node)
        subjects = tuple(Subject(name, _BootHistory(view.timeline, name, view.anchor).signal()) for name in names)
        return SubjectSet("the machine rebooted", subjects, empty_reason="no node was observed")


ASSERTION = NodeRebooted()
