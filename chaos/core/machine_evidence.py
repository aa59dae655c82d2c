"""Whether a machine was off: what its power control said, and the signs of life that disprove it.

The word of a power control is testimony. A machine that renewed its Lease, answered or wrote a status after ``off`` and
before ``on`` was not off, nor was one with the same boot identity before and after. Silence disproves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from chaos.core.action import Proof, ProofResult, ProofStatus, StepRun
from chaos.core.api_fact import PseudoFact
from chaos.core.command import PowerState
from chaos.core.evidence import (
    BOOT_ACTIONS,
    SAME_BOOT_SECONDS,
    all_readings,
    boot_changed,
    is_number,
    no_proof,
    readings_after,
)
from chaos.core.kube import Lease, LeaseSpec, Node, node_condition
from chaos.core.recording import ActionPhase, ActionRecord
from chaos.core.timeline import Entry, Fact, History, Timeline, Version

# Seconds for which a kubelet waits for the API server, which may store later what was sent before the machine went off:
# nodeStatusUpdateFrequency or the Lease's duration, whichever is less (cmd/kubelet/app/server.go, heartbeatClient).
REQUEST_SECONDS = 10.0
_LONG = 0.5  # seconds; a reading that is recorded without its start did not take longer
_FROM_ELSEWHERE = frozenset({*PseudoFact, "configz"})  # readings that are no answers of the host, or began at any time
_RENEWALS, _JITTER = 4, 1.04  # a kubelet renews its Lease four times within its duration (facts 5.1)


class Sign(NamedTuple):
    """The machine ran at some moment in [``lo``, ``hi``]. ``order``: the resourceVersion of what it wrote, or 0."""

    lo: float
    hi: float
    seq: int
    what: str
    order: int = 0


class Boot(NamedTuple):
    """A reading of the identity of a machine's boot: a text, or the second at which PID 1 started."""

    sign: Sign
    identity: Any

    def is_same(self, other: Boot) -> bool:
        """Whether no boot lies between the two readings."""
        if is_number(self.identity) and is_number(other.identity):
            return bool(abs(self.identity - other.identity) <= SAME_BOOT_SECONDS)
        return bool(self.identity == other.identity)


@dataclass(frozen=True, slots=True)
class OffStretch:
    """Consecutive readings ``off`` of a power control. ``disproof``: why the machine was not off, or None."""

    readings: tuple[Fact, ...]
    disproof: Sign | None = None


def signs_of_life(timeline: Timeline, node: str) -> list[Sign]:
    """Moments at which the machine of a node certainly ran, without the word of its power control, by ``lo``."""
    written = [*_renewals(timeline, node), *(sign for sign, _ in _statuses(timeline, node))]
    return sorted([*_answers(timeline, node), *_scrapes(timeline, node), *written])


def _answers(timeline: Timeline, node: str) -> Iterator[Sign]:
    for (name, fact), readings in timeline.host.items():
        if name == node and fact not in _FROM_ELSEWHERE:
            for reading in readings:
                yield _answer(reading, f"{node} answered")


def _answer(reading: Fact, what: str) -> Sign:
    return Sign(reading.t - _LONG if reading.since is None else reading.since, reading.t, reading.seq, what)


def _scrapes(timeline: Timeline, node: str) -> Iterator[Sign]:
    """Each began after the one before."""
    for before, scrape in pairwise(timeline.metrics.get(node, ())):
        if scrape.status == HTTPStatus.OK:
            yield Sign(before.t, scrape.t, scrape.seq, f"the kubelet of {node} answered")


def _renewals(timeline: Timeline, node: str) -> Iterator[Sign]:
    history: History[Lease] | tuple[()] = timeline.leases.get(node) or ()
    for before, version in pairwise(history):
        renewed, was = (v.object.spec and v.object.spec.renew_time for v in (version, before))
        if renewed and renewed != was and not version.is_deleted:
            yield _written(timeline, "leases", before, version, f"the Lease of {node} was renewed")


def _statuses(timeline: Timeline, node: str) -> Iterator[tuple[Sign, Version[Node]]]:
    """The status updates by the kubelet. Only a kubelet advances the heartbeat of the condition Ready."""
    history: History[Node] | tuple[()] = timeline.nodes.get(node) or ()
    for before, version in pairwise(history):
        posted = None if version.is_deleted else _heartbeat(version.object)
        if posted and posted != _heartbeat(before.object):
            yield _written(timeline, "nodes", before, version, f"the kubelet of {node} posted its status"), version


def _heartbeat(node: Node) -> str | None:
    ready = node_condition(node, "Ready")
    return ready.last_heartbeat_time if ready and ready.status != "Unknown" else None


def _written(timeline: Timeline, source: str, before: Version[Any], version: Version[Any], what: str) -> Sign:
    """What a machine wrote. It sent that before the API server stored it, in a blind window at any time of it."""
    latest = min(version.t, version.latest)
    stored = min(latest, version.earliest)
    if timeline.blind_windows_in((source,), before.t, version.t):
        stored = min(stored, before.t)
    return Sign(stored - REQUEST_SECONDS, latest, version.seq, what, version.order)


def boots(timeline: Timeline, node: str) -> list[tuple[list[Boot], bool]]:
    """Readings of the boot identity by source, in order of time, and whether the same identity proves the same boot.

    It does not where another source is better: containers on one host have a PID 1 each, and share a boot ID.
    """
    starts = [r for r in all_readings(timeline, node, "pid1-start") if is_number(r.value)]
    ids = all_readings(timeline, node, "boot-id")
    same = f"the boot ID of {node} was the same"
    statuses = ((sign._replace(what=same), boot_id(version.object)) for sign, version in _statuses(timeline, node))
    posted = [Boot(sign, identity) for sign, identity in statuses if identity]
    everywhere = [boot_id(history.last.object) for history in timeline.nodes.values()] if not (starts or ids) else []
    is_own = bool(posted) and everywhere.count(posted[-1].identity) == 1
    return [
        (_read(starts, f"PID 1 of {node} was the same"), True),
        (_read(ids, same), not starts),
        (posted, is_own),
    ]


def _read(readings: list[Fact], what: str) -> list[Boot]:
    return [Boot(_answer(reading, what), reading.value) for reading in readings]


def boot_id(node: Node) -> str:
    """The boot ID in the Node object, or ""."""
    info = node.status.node_info if node.status else None
    return info.boot_id if info else ""


def off_stretches(timeline: Timeline, node: str) -> list[OffStretch]:
    """The stretches in which the power control of a node said ``off``, each with what disproves it."""
    readings = all_readings(timeline, node, PseudoFact.MACHINE)
    stretches = [tuple(found) for is_off, found in groupby(readings, key=_is_off) if is_off]
    if not stretches:
        return []
    signs, sources = signs_of_life(timeline, node), boots(timeline, node)
    causes = sorted(entry.t for entry, record in timeline.actions if entry.node == node and _may_boot(entry, record))
    return [
        OffStretch(found, _disproof(found, signs, sources, causes, is_last=found[-1] is readings[-1]))
        for found in stretches
    ]


def believed_offs(timeline: Timeline, node: str) -> list[tuple[Fact, ...]]:
    """The readings of each stretch ``off`` that nothing disproves."""
    return [each.readings for each in off_stretches(timeline, node) if each.disproof is None]


def _is_off(reading: Fact) -> bool:
    return bool(reading.value == PowerState.OFF)


def _may_boot(entry: Entry, record: ActionRecord) -> bool:
    is_boot = record.phase == ActionPhase.BEGIN and entry.type in (*BOOT_ACTIONS, "power-on")
    return is_boot or record.phase == ActionPhase.UNDO


def _disproof(
    stretch: Sequence[Fact],
    signs: Sequence[Sign],
    sources: Sequence[tuple[Sequence[Boot], bool]],
    causes: Sequence[float],
    is_last: bool,
) -> Sign | None:
    """The first sign that the machine was not off.

    ``is_last``: no other reading follows. ``causes``: moments of what may have booted the machine after all.
    """
    around = [(pair, is_own) for found, is_own in sources if (pair := _around(stretch[0], found))]
    booted = any(not before.is_same(after) for (before, after), _ in around)
    for (_, after), is_own in around:
        if is_own and not booted:
            return after.sign
    first, last = stretch[0], stretch[-1]
    until = min((cause for cause in causes if cause > first.t), default=math.inf)
    for sign in (sign for sign in signs if first.t < sign.lo and sign.hi < until):
        if sign.hi <= last.began or (is_last and not booted and last.t < sign.lo):  # off again, or not read any more
            return sign
    return None


def _around(off: Fact, found: Sequence[Boot]) -> tuple[Boot, Boot] | None:
    """The last identity before a reading, and the first one after it."""
    before = [boot for boot in found if boot.sign.hi <= off.began]
    after = [boot for boot in found if boot.sign.lo > off.t]
    return (before[-1], after[0]) if before and after else None


def power_lost(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the power control reported off, disproven by a sign of life that contradicts it.

    A report of on proves nothing: the machine may have booted again.
    """
    since = {reading.seq for reading in readings_after(timeline, step, PseudoFact.MACHINE)}
    stretches = off_stretches(timeline, step.node)
    found = [(reading, each.disproof) for each in stretches for reading in each.readings if reading.seq in since]
    if not found:
        return no_proof(f"no power control reported that {step.node} is off")
    off, disproof = next((pair for pair in found if pair[1] is None), found[0])
    said = f"{off.t - step.begin:.1f} s after the step"
    if disproof:
        later = f" {disproof.hi - off.t:.1f} s later" if disproof.hi > off.t else ""
        because = f"the power control said that {step.node} was off {said}, but {disproof.what}{later}"
        return ProofResult(ProofStatus.DISPROVEN, because, (off.seq, disproof.seq))
    because = f"{step.node} was off {said}: the power control said so{_silence(timeline, step, off)}"
    return ProofResult(ProofStatus.PROVEN, because, (off.seq,))


def _silence(timeline: Timeline, step: StepRun, off: Fact) -> str:
    """How long the Lease was not renewed, if that is longer than its period."""
    history = timeline.leases.get(step.node)
    spec = history.last.object.spec if history else None
    if spec is None or not spec.lease_duration_seconds:
        return ""
    later = (sign.hi for sign in _renewals(timeline, step.node) if sign.hi > off.t)
    until = min(timeline.end, step.until, timeline.currency.until("leases"), *later)
    seconds = until - off.t
    return f", and its Lease was not renewed for {seconds:.0f} s" if seconds > _period(spec) else ""


def _period(spec: LeaseSpec) -> float:
    return (spec.lease_duration_seconds or 0) / _RENEWALS * _JITTER


def machine_off(timeline: Timeline, step: StepRun) -> ProofResult:
    """As :func:`power_lost`, but disproven if the power control's last report is on, without a boot."""
    off = power_lost(timeline, step)
    if off.status is not ProofStatus.UNPROVEN:
        return off
    readings = readings_after(timeline, step, PseudoFact.MACHINE)
    if (
        readings
        and readings[-1].value == PowerState.ON
        and boot_changed(timeline, step).status is not ProofStatus.PROVEN
    ):
        last = readings[-1]
        because = f"{step.node} was still on {last.t - step.begin:.1f} s after the step"
        return ProofResult(ProofStatus.DISPROVEN, because, (last.seq,))
    return off


def rebooted(timeline: Timeline, step: StepRun) -> ProofResult:
    """As :func:`boot_changed`, but disproven if the machine stayed off until undo or a later step powered it on."""
    off = readings_after(timeline, step, PseudoFact.MACHINE)[-1:]
    was_off = power_lost(timeline, step).status is ProofStatus.PROVEN
    if step.until < timeline.end and off and _is_off(off[0]) and was_off:
        because = f"{step.node} went off and did not boot again: it was still off {step.until - step.begin:.1f} s later"
        return ProofResult(ProofStatus.DISPROVEN, because, (off[0].seq,))
    return boot_changed(timeline, step)


MACHINE_OFF = Proof("machine-off", machine_off)
REBOOTED = Proof("boot-identity", rebooted)
