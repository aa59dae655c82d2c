"""When recorded controllers wrote: what shows that they worked in a stall, one request at a time. Pure.

Stalls that a recording shows: API server and controllers stood still, and what had waited came in one batch.
Renewals of Leases have their own times, and every node renews each 10 s: if those of most nodes come seconds late, it
is not a node that is cut off. How long each request waited is chance that a batch does not show, so the replay lets
the lab's controllers stand still as long, and in the comparison the time of either side stands still, too. The states
and their order are compared as always. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from chaos.lab.objects import Object, condition, controller_of, is_deleting, name_of, uid_of
from chaos.lab.replay.moments import changes
from chaos.lab.replay.recording import Observation, Recording, Stall, to_epoch

_REACTION = 0.05  # seconds; a controller writes after what it reacts to, which may have the same time
_USERS = ("user-delete", "user-force-delete", "user-evict")


def controller_writes(recording: Recording) -> list[float]:
    """Times at which controllers of workloads created or deleted a pod, in order."""
    operations = [item for item in recording.operations if item.action in _USERS and item.params["plural"] == "pods"]
    by_users = {uid_of(item.params["object"]) for item in operations}
    return sorted(
        {
            item.t + _REACTION
            for item, before in changes(recording.observations["pods"])
            if item.type not in ("LIST", "DELETED")
            and controller_of(item.object) is not None
            and _is_write(item.object, before)
            and not (before is not None and uid_of(item.object) in by_users)
        }
    )


def _is_write(pod: Object, before: Object | None) -> bool:
    """Whether a controller of a workload made this change: a new pod, or a deletion without a reason."""
    if before is None:
        return True
    target = condition(pod, "DisruptionTarget") or {}
    return is_deleting(pod) and not is_deleting(before) and target.get("status") != "True"


_LATE = 5.0  # seconds; a renewal comes within a second, on a busy machine within three
_IN_TIME = 1.0
_BATCH = 1.0  # seconds at most between two late changes of a batch
_RENEWED = 20.0  # seconds in which every node that lives has renewed its Lease (facts 5.1)
_RENEW_DEADLINE = 10.0
_CACHES = 15.0  # seconds from the registration of nodes until all caches are filled, on a busy machine
_MANAGER = "kube-controller-manager"
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


class StalledClock:
    """Time that stands still during stalls."""

    def __init__(self, stalls: Iterable[Stall]) -> None:
        self._stalls = list(stalls)

    def time(self, t: float) -> float:
        """``t`` without the time of stalls before."""
        return t - sum(min(t, stall.end) - stall.begin for stall in self._stalls if stall.begin < t)

    def original(self, t: float) -> float:
        """First time at which :meth:`time` is ``t``."""
        for stall in self._stalls:
            t += stall.end - stall.begin if t > stall.begin else 0.0
        return t

    def observations(self, observations: dict[str, list[Observation]]) -> dict[str, list[Observation]]:
        """The same observations at the times of this clock."""
        return {
            kind: [replace(item, t=self.time(item.t)) for item in items] if self._stalls else items
            for kind, items in observations.items()
        }

    def recording(self, recording: Recording) -> Recording:
        """The same recording at the times of this clock."""
        operations = [replace(item, t=self.time(item.t)) for item in recording.operations]
        start, end = self.time(recording.start), self.time(recording.end)
        observations = self.observations(recording.observations)
        return replace(recording, start=start, end=end, operations=operations, observations=observations)


def find_stalls(recording: Recording) -> list[Stall]:
    """Stalls in order, as far as any watch shows them."""
    watches = [recording.observations[kind] for kind in _FOLLOWED]
    return _merged(
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
    return _merged(wakes)


def late_times(recording: Recording) -> list[Stall]:
    """Stalls, each with the time just after it."""
    return _merged([*recording.stalls, *find_wakes(recording)])


def answers(leases: list[Observation]) -> dict[tuple[str, float], float]:
    """When renewals that were slow were done, by node and renew time of its clock: the next one is a period later."""
    return {(it.node, it.renewed): it.at + it.renewed - it.sent for it in _renewals(leases) if not it.is_in_time}


def still_times(recording: Recording) -> list[Stall]:
    """When the controllers do nothing: in stalls, and from an end of their manager until the next one works.

    A manager ends that could not renew its lease for ten seconds (--leader-elect-renew-deadline), as in a stall; the
    next one registers all nodes once the caches for that are filled (facts 5.6). Other controllers wait for theirs;
    the first change that any of them makes soon after shows for how long.
    """
    stalls = recording.stalls
    exits = [
        at
        for at in _manager_exits(recording)
        if any(stall.begin <= at <= stall.end + 2 * _RENEW_DEADLINE for stall in stalls)
    ]
    return _merged([*stalls, *(Stall(at - _RENEW_DEADLINE, _next_work(recording, at)) for at in exits)])


def _late_batches(recording: Recording) -> list[Stall]:
    """Stalls of the watch of Leases; one that goes on after a batch is another."""
    renewals = _renewals(recording.observations["leases"])
    arrivals = sorted(item.t for kind in recording.observations.values() for item in kind)
    found: list[Stall] = []
    for late, answered in _batches(renewals):
        if _is_of_most_nodes(late, renewals):
            before = bisect_right(arrivals, min(item.sent for item in late))
            last = arrivals[before - 1] if before else recording.start
            found.append(Stall(max([last, answered, *(stall.end for stall in found[-1:])]), late[-1].at))
    return found


def _merged(stalls: list[Stall]) -> list[Stall]:
    """The same times in order, without overlaps."""
    merged: list[Stall] = []
    for stall in sorted(stalls, key=lambda item: item.begin):
        if merged and stall.begin <= merged[-1].end:
            merged[-1] = replace(merged[-1], end=max(merged[-1].end, stall.end))
        elif stall.begin < stall.end:
            merged.append(stall)
    return merged


def _manager_exits(recording: Recording) -> list[float]:
    operations = [item for item in recording.operations if item.action == "container-exit"]
    return [item.t for item in operations if item.params["pod"][1].startswith(f"{_MANAGER}-")]


def _next_work(recording: Recording, t: float) -> float:
    """When the controllers worked again after ``t``; infinity if no node was registered."""
    events = [item for item in recording.observations["events"] if item.object.get("reason") == "RegisteredNode"]
    registered = min((item.t for item in events if item.type != "LIST" and item.t > t), default=float("inf"))
    return next((at for at in controller_writes(recording) if registered < at <= registered + _CACHES), registered)


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
