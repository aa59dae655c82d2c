"""Two histories compared, state by state: what was recorded against what the lab did. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from chaos.lab.replay.pairing import assign
from chaos.lab.replay.recording import Deed, Recording, Seen
from chaos.lab.replay.states import Moment, NodeState, PodState, State, Track, node_tracks, pod_tracks
from chaos.lab.replay.windows import Windows
from chaos.lab.spec import ControllerSpec

_LEAST, _SHARE = 2.0, 0.1  # deterministic mechanisms: within the greater of 2 s and 10 %
_PASS = 5.2  # of the node lifecycle controller (facts 5.2)
_REJECTED = "NodeShutdown"
_OTHER_NODE, _OTHER_ORDER = 1e-3, 1e-6  # of several assignments with the same differences the most natural


@dataclass(frozen=True, slots=True)
class Difference:
    """``t``: seconds after the first action, of the recording or, for what the lab added, of the lab."""

    subject: str
    t: float
    text: str


@dataclass
class Result:
    """``matched`` of ``total`` recorded states were there, and nothing else was if there are no differences.

    ``seed``: of the lab that came nearest.
    """

    total: int
    matched: int = 0
    differences: list[Difference] = field(default_factory=list)
    seed: int = 0

    @property
    def same(self) -> bool:
        """Whether every recorded state matched and the lab did nothing else."""
        return self.matched == self.total and not self.differences


def count(recording: Recording) -> int:
    """How many states there are to match: from the recording alone."""
    return sum(len(track.merged()) for track in _tracks(recording.seen).values())


def compare(recording: Recording, seen: dict[str, list[Seen]], settings: ControllerSpec) -> Result:
    """``seen``: the lab's history of nodes and pods, in the recording's time."""
    return _Comparison(recording, seen, settings).run()


def _tracks(seen: dict[str, list[Seen]]) -> dict[str, Track]:
    return {**node_tracks(seen["nodes"]), **pod_tracks(seen["pods"])}


@dataclass
class _Pair:
    """A recorded track beside one of the lab's: what differs, and how many of its states are there."""

    matched: int = 0
    differences: list[Difference] = field(default_factory=list)


class _Comparison:
    def __init__(self, recording: Recording, seen: dict[str, list[Seen]], settings: ControllerSpec) -> None:
        self._end, self._fault, self._deeds = recording.end, recording.fault(), recording.deeds
        self._recorded, self._lab = _tracks(recording.seen), _tracks(seen)
        self._recorded_windows = Windows(self._recorded, settings, recording)
        self._lab_windows = Windows(self._lab, settings, recording)
        self._result = Result(count(recording))

    def run(self) -> Result:
        groups: dict[str, tuple[list[Track], list[Track]]] = {}
        for side, tracks in enumerate((self._recorded, self._lab)):
            for key, track in tracks.items():
                alike = self._recorded[key].alike if key in self._recorded else track.alike
                groups.setdefault(alike, ([], []))[side].append(track)
        for recorded, lab in groups.values():
            for pair in self._pairs(recorded, lab):
                self._result.matched += pair.matched
                self._result.differences += pair.differences
        self._result.matched = max(0, self._result.matched)
        self._result.differences.sort(key=lambda item: (item.t, item.subject))
        return self._result

    def _pairs(self, recorded: list[Track], lab: list[Track]) -> list[_Pair]:
        """Those who are exchangeable are paired so that the least differs."""
        straight = [self._pair(*both) for both in zip_longest(recorded, lab)]
        if len(straight) == 1 or not any(pair.differences for pair in straight):
            return straight
        rows: list[Track | None] = [*recorded, *[None] * (len(lab) - len(recorded))]
        columns: list[Track | None] = [*lab, *[None] * (len(recorded) - len(lab))]
        pairs = [[self._pair(row, column) for column in columns] for row in rows]
        costs = [
            [
                len(pair.differences) + _unlike(rows[i], columns[j]) + _OTHER_ORDER * abs(i - j)
                for j, pair in enumerate(row)
            ]
            for i, row in enumerate(pairs)
        ]
        return [pairs[row][column] for row, column in enumerate(assign(costs))]

    def _pair(self, recorded: Track | None, lab: Track | None) -> _Pair:
        pair = _Pair()
        if recorded is None and lab is not None:
            if lab.moments[0].t <= self._end - max(_LEAST, self._lab_windows.width(lab, 0)):
                pair.matched = -1  # as a state of the lab's own in a track that is there does
                self._differ(pair, lab, lab.moments[0].t, "only in the lab")
        elif recorded is not None and lab is None:
            moments = recorded.merged()
            self._differ(pair, recorded, moments[0].t, f"not in the lab; recorded {len(moments)} states of it")
        elif recorded is not None and lab is not None:
            self._both(pair, recorded, lab)
        return pair

    def _both(self, pair: _Pair, recorded: Track, lab: Track) -> None:
        """Each recorded state in order; one that the lab leaves for a state of its own is not matched."""
        extra = self._extra(pair, recorded, lab)
        used, bad, merged = 0, 0, recorded.merged()
        for moment in merged:
            width = self._recorded_windows.width(recorded, recorded.moments.index(moment))
            found = self._find(moment, lab.moments, used, width)
            if found is None and _between_passes(merged, moment):
                continue
            if found is None:
                bad += 1
                self._differ(pair, recorded, moment.t, self._missing(moment, lab))
            else:
                used = found
        if self._gone(pair, recorded, lab):
            extra += 1
        pair.matched = max(0, len(merged) - bad - extra)

    def _find(
        self, wanted: Moment, moments: list[Moment], begin: int, width: float, *, swap: bool = False
    ) -> int | None:
        """Where to go on looking once it is found. ``swap``: ``moments`` are the recorded ones, not the lab's."""
        for index in range(begin, len(moments)):
            other = moments[index]
            recorded, lab = (other, wanted) if swap else (wanted, other)
            if _same(recorded.state, lab.state) and self._in_time(recorded.t, lab.t, width):
                return index + (other.state == wanted.state)
        return None

    def _missing(self, moment: Moment, lab: Track) -> str:
        times = [f"{other.t - self._fault:.1f} s" for other in lab.moments if other.state == moment.state]
        where = f"in the lab at {', '.join(times)}" if times else "never in the lab"
        return f"recorded {moment.state}; {where}"

    def _extra(self, pair: _Pair, recorded: Track, lab: Track) -> int:
        """What the lab did that was not recorded, in order."""
        begin, number, merged = 0, 0, lab.merged()
        for moment in merged:
            width = self._lab_windows.width(lab, lab.moments.index(moment))
            if moment.t > self._end - max(_LEAST, width):
                break
            found = self._find(moment, recorded.moments, begin, width, swap=True)
            if found is None and _between_passes(merged, moment):
                continue
            if found is None:
                number += 1
                self._differ(pair, recorded, moment.t, f"only in the lab: {moment.state}")
            else:
                begin = found
        return number

    def _gone(self, pair: _Pair, recorded: Track, lab: Track) -> bool:
        """Whether one of both was removed and the other was not, or at another time."""
        width = self._recorded_windows.width(recorded, len(recorded.moments) - 1)
        if recorded.gone is None and (lab.gone is None or lab.gone > self._end - max(_LEAST, width)):
            return False
        if recorded.gone is not None and lab.gone is not None and self._in_time(recorded.gone, lab.gone, width):
            return False
        at = recorded.gone if recorded.gone is not None else lab.gone
        texts = [f"removed at {item - self._fault:.1f} s" if item else "kept" for item in (recorded.gone, lab.gone)]
        self._differ(pair, recorded, at or 0.0, f"recorded: {texts[0]}; in the lab: {texts[1]}")
        return True

    def _in_time(self, recorded: float, lab: float, width: float) -> bool:
        if min(recorded, lab) < self._fault and abs(recorded - lab) <= _LEAST:
            return True
        if recorded <= self._fault:
            return lab <= self._fault + _LEAST
        return abs(recorded - lab) <= max(_LEAST, _SHARE * (recorded - self._cause(recorded).t), width)

    def _cause(self, t: float) -> Deed:
        """The last action that began before."""
        return [deed for deed in self._deeds if deed.t <= t][-1]

    def _differ(self, pair: _Pair, track: Track, t: float, text: str) -> None:
        pair.differences.append(Difference(track.subject, round(t - self._fault, 3), text))


def _same(recorded: State, lab: State) -> bool:
    """Equal, but for Ready of a rejected pod: its kubelet's return and its deletion race (recordings 10 and 16)."""
    if isinstance(recorded, PodState) and isinstance(lab, PodState) and recorded.reason == lab.reason == _REJECTED:
        return recorded._replace(ready="") == lab._replace(ready="")
    return recorded == lab


def _between_passes(moments: list[Moment], moment: Moment) -> bool:
    """A node whose condition taints go at once or with the next pass: the state between may not be seen (facts 5.4)."""
    index = moments.index(moment)
    if not 0 < index < len(moments) - 1:
        return False
    following = moments[index + 1]
    before, state, after = (item.state for item in moments[index - 1 : index + 2])
    if not (isinstance(before, NodeState) and isinstance(state, NodeState) and isinstance(after, NodeState)):
        return False
    return state[:3] == after[:3] != before[:3] and following.t - moment.t <= _PASS


def _unlike(recorded: Track | None, lab: Track | None) -> float:
    return _OTHER_NODE if recorded and lab and recorded.old_node != lab.old_node else 0.0
