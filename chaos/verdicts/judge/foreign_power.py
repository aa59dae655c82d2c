"""Foreign faults of a machine: boots and power-offs that no step explains."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from chaos.core.api_fact import PseudoFact
from chaos.core.command import PowerState
from chaos.core.evidence import SAME_BOOT_SECONDS, is_number
from chaos.core.result import ForeignFault
from chaos.core.timeline import Fact, Timeline
from chaos.verdicts.judge.foreign_case import Case, ForeignKind, fault
from chaos.verdicts.judge.writers import component, event_author

_SETS_CLOCK = "clock-skew"  # the start of PID 1 moves with the clock


class _Boot(NamedTuple):
    """A boot that was seen at ``t``, and not before ``since``."""

    t: float
    since: float
    seq: int


def power_faults(case: Case, node: str) -> Iterator[ForeignFault]:
    """Boots and power-offs of one node."""
    yield from _power_offs(case, node)
    boots = list(_boots(case.timeline, node)) or list(_starts(case.timeline, node))
    unexplained = set(case.own.unexplained_boots(node, [boot.t for boot in boots]))
    for boot in boots:
        if boot.t in unexplained and not case.own.explains_everything(node, boot.t):
            by = event_author(case.timeline, "Node", node, boot.t)
            yield fault(node, ForeignKind.REBOOT, "was rebooted", by, boot.t, boot.since, boot.seq)


def _power_offs(case: Case, node: str) -> Iterator[ForeignFault]:
    earlier: list[float] = []
    for before, after in pairwise(case.timeline.readings(node, PseudoFact.MACHINE)):
        if (before.value, after.value) != (PowerState.ON, PowerState.OFF):
            continue
        is_explained = case.own.explains_power_off(node, after.t, before.t, earlier)
        earlier.append(after.t)
        if not is_explained:
            yield fault(node, ForeignKind.POWER_OFF, "was powered off", "", after.t, before.t, before.seq, after.seq)


def _boots(timeline: Timeline, node: str) -> Iterator[_Boot]:
    """Boot IDs that are new, in the Node object or on the host. The Node object has an old one for a while."""
    seen: dict[str, float] = {}
    last = 0.0
    for t, boot_id, seq in sorted(_boot_ids(timeline, node)):
        if seen and boot_id not in seen:
            yield _Boot(t, last, seq)
        if boot_id not in seen or boot_id == list(seen)[-1]:
            last = t
        seen.setdefault(boot_id, t)


def _boot_ids(timeline: Timeline, node: str) -> Iterator[tuple[float, str, int]]:
    for version in timeline.nodes.get(node) or ():
        info = version.object.status.node_info if version.object.status else None
        if info and info.boot_id and not version.is_deleted:
            yield version.t, info.boot_id, version.seq
    for reading in timeline.readings(node, "boot-id"):
        yield reading.t, str(reading.value), reading.seq


def _starts(timeline: Timeline, node: str) -> Iterator[_Boot]:
    """Starts of PID 1, the only trace of a boot in a container. A clock that was set moves them, too."""
    readings = timeline.readings(node, "pid1-start")
    if not readings or any(entry.type == _SETS_CLOCK and entry.node == node for entry, _ in timeline.actions):
        return
    for before, after in pairwise(readings):
        is_later = is_number(before.value) and is_number(after.value) and after.value > before.value + SAME_BOOT_SECONDS
        if is_later and _was_down(timeline, node, before, after):
            yield _Boot(after.t, before.t, after.seq)


def _was_down(timeline: Timeline, node: str, before: Fact, after: Fact) -> bool:
    """Whether the host did not respond, or its kubelet started, between two readings."""
    if timeline.blind_windows_in([f"host@{node}"], before.t, after.t):
        return True
    return any(
        before.t <= entry.t <= after.t and event.reason == "Starting" and component(event) == "kubelet"
        for entry, event in timeline.events.about(node)
    )
