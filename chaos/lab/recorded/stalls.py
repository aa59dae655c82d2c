"""Stalls that a recording shows: API server and controllers stood still, and what had waited came in one batch. Pure.

Renewals of Leases have their own times, and every node renews each 10 s: if those of most nodes come seconds late, it
is not a node that is cut off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from chaos.lab.objects import name_of, uid_of
from chaos.lab.recorded.recording import Observation, Recording, Stall, to_epoch

_LATE = 5.0  # seconds; a renewal comes within a second, on a busy machine within three
_IN_TIME = 1.0
_BATCH = 1.0  # seconds at most between two late changes of a batch
_RENEWED = 20.0  # seconds in which every node that lives has renewed its Lease (facts 5.1)
_TIMES = ("creationTimestamp", "lastTransitionTime", "lastHeartbeatTime", "startedAt", "finishedAt")
_FOLLOWED = ("nodes", "pods", "persistentvolumes", "persistentvolumeclaims", "volumeattachments")


@dataclass(frozen=True, slots=True)
class _Renewal:
    """A renewal of a Lease: when it came, when it was sent by the clock of whoever recorded, and by the node's."""

    at: float
    node: str
    sent: float
    renewed: float

    @property
    def is_late(self) -> bool:
        return self.at - self.sent > _LATE

    @property
    def is_in_time(self) -> bool:
        return self.at - self.sent <= _IN_TIME


def find_stalls(recording: Recording) -> list[Stall]:
    """Stalls in order, as far as any watch shows them."""
    watches = [recording.observations[kind] for kind in _FOLLOWED]
    return merged(
        [
            replace(stall, end=max(stall.end, *(_end_of_batch(watch, stall) for watch in watches)))
            for stall in _late_batches(recording)
        ]
    )


def find_wakes(recording: Recording) -> list[Stall]:
    """Times just after stalls in which requests still took seconds: until a renewal came in time."""
    renewals, wakes = _renewals(recording.observations["leases"]), []
    for stall in recording.stalls:
        later = [item for item in renewals if stall.end < item.at <= stall.end + _RENEWED]
        late = takewhile(lambda item: not item.is_in_time, later)
        wakes.append(Stall(stall.end, max((item.at for item in late), default=stall.end)))
    return merged(wakes)


def late_times(recording: Recording) -> list[Stall]:
    """Stalls, each with the time just after it."""
    return merged([*recording.stalls, *find_wakes(recording)])


def answers(leases: list[Observation]) -> dict[tuple[str, float], float]:
    """When renewals that were slow were done, by node and renew time of its clock: the next one is a period later."""
    return {(it.node, it.renewed): it.at + it.renewed - it.sent for it in _renewals(leases) if not it.is_in_time}


def _late_batches(recording: Recording) -> list[Stall]:
    """Stalls of the watch of Leases; one that continues after a batch is another."""
    renewals = _renewals(recording.observations["leases"])
    arrivals = sorted(item.t for kind in recording.observations.values() for item in kind)
    found: list[Stall] = []
    for late, answered in _batches(renewals):
        if _is_of_most_nodes(late, renewals):
            before = bisect_right(arrivals, min(item.sent for item in late))
            last = arrivals[before - 1] if before else recording.start
            found.append(Stall(max([last, answered, *(stall.end for stall in found[-1:])]), late[-1].at))
    return found


def merged(stalls: list[Stall]) -> list[Stall]:
    """The same times in order, without overlaps."""
    merged: list[Stall] = []
    for stall in sorted(stalls, key=lambda item: item.begin):
        if merged and stall.begin <= merged[-1].end:
            merged[-1] = replace(merged[-1], end=max(merged[-1].end, stall.end))
        elif stall.begin < stall.end:
            merged.append(stall)
    return merged


def _renewals(leases: list[Observation]) -> list[_Renewal]:
    """Renewals in order of receipt. The least delay of a node is the difference of its clock."""
    changes = [item for item in leases if item.type != "LIST"]
    received = [(item.t, name_of(item.object), item.object["spec"].get("renewTime")) for item in changes]
    seen = [(at, node, to_epoch(renewed)) for at, node, renewed in received if renewed]
    offsets: dict[str, float] = {}
    for at, node, renewed in seen:
        offsets[node] = min(offsets.get(node, at - renewed), at - renewed)
    return [_Renewal(at, node, renewed + offsets[node], renewed) for at, node, renewed in seen]


def _batches(renewals: list[_Renewal]) -> Iterator[tuple[list[_Renewal], float]]:
    """Late renewals that had waited together and came one right after the other, and when one came in time before them.

    Those that came in time do not count: with many nodes, some renewal comes each second.
    """
    batch: list[_Renewal] = []
    before = answered = float("-inf")
    for item in renewals:
        if item.is_late:
            if batch and (item.at - batch[-1].at > _BATCH or item.sent > batch[0].at):
                yield batch, before
                batch = []
            before = before if batch else answered
            batch.append(item)
        elif item.is_in_time:
            answered = item.at
    if batch:
        yield batch, before


def _is_of_most_nodes(late: list[_Renewal], renewals: list[_Renewal]) -> bool:
    """Whether more than one node was late, and at least half of those that renewed about then."""
    begin, end = min(item.sent for item in late) - _RENEWED, late[-1].at
    alive = {item.node for item in renewals if begin <= item.sent <= end}
    return len({item.node for item in late}) >= max(2, len(alive) / 2)


def _end_of_batch(observations: list[Observation], stall: Stall) -> float:
    """End of the late batch of another watch, if that stalled as well: silent, and the first that came was late.

    A watch is in order, so the first change that came in time after it ends the batch.
    """
    times = [item.t for item in observations]
    first = bisect_right(times, stall.begin)
    if first == len(times) or times[first] <= stall.end or not _is_late(observations, first, stall):
        return stall.end
    last = first
    while last + 1 < len(times) and times[last + 1] - times[last] <= _BATCH and not _is_new(observations, last + 1):
        last += 1
    return times[last]


def _is_late(observations: list[Observation], index: int, stall: Stall) -> bool:
    """Whether a change was made before the end of the stall, and came late."""
    made = _made_at(observations, index)
    return made is not None and made <= stall.end and observations[index].t - made > _LATE


def _is_new(observations: list[Observation], index: int) -> bool:
    """Whether a change certainly was not late."""
    made = _made_at(observations, index)
    return made is not None and observations[index].t - made <= _LATE


def _made_at(observations: list[Observation], index: int) -> float | None:
    """When a change was made: the newest of the times that it added to the object, if it did."""
    item = observations[index]
    before = (observations[at].object for at in range(index - 1, -1, -1))
    earlier = next((other for other in before if uid_of(other) == uid_of(item.object)), None)
    return max({*_times(item.object)} - {*_times(earlier)}, default=None)


def _times(value: Any) -> Iterator[float]:
    """Times of what has happened, in whole seconds, from anywhere in an object."""
    if isinstance(value, dict):
        yield from (to_epoch(value[key]) for key in _TIMES if isinstance(value.get(key), str))
        if isinstance(value.get("deletionTimestamp"), str):
            yield to_epoch(value["deletionTimestamp"]) - float(value.get("deletionGracePeriodSeconds") or 0)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _times(item)
