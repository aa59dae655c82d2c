"""Two histories compared, state by state: what was recorded against what the lab did. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from chaos.lab.replay.assignment import assign
from chaos.lab.replay.recording import Observation, Operation, Recording
from chaos.lab.replay.states import NodeState, PodState, State, StateHistory, Transition, node_histories, pod_histories
from chaos.lab.replay.tolerances import Tolerances
from chaos.lab.spec import ControllerSpec

_MIN_TOLERANCE, _RELATIVE_TOLERANCE = 2.0, 0.1  # deterministic mechanisms: within the greater of 2 s and 10 %
_MONITOR_PASS = 5.2  # of the node lifecycle controller (facts 5.2)
_NODE_SHUTDOWN = "NodeShutdown"
_NODE_COST, _ORDER_COST = 1e-3, 1e-6  # of several assignments with the same differences the most natural


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
    def is_match(self) -> bool:
        """Whether every recorded state matched and the lab did nothing else."""
        return self.matched == self.total and not self.differences


def count_states(recording: Recording) -> int:
    """How many states there are to match: from the recording alone."""
    return sum(len(track.stable_transitions()) for track in _histories(recording.observations).values())


def compare(recording: Recording, seen: dict[str, list[Observation]], settings: ControllerSpec) -> Result:
    """``seen``: the lab's history of nodes and pods, in the recording's time."""
    return _Comparison(recording, seen, settings).run()


def _histories(seen: dict[str, list[Observation]]) -> dict[str, StateHistory]:
    return {**node_histories(seen["nodes"]), **pod_histories(seen["pods"])}


@dataclass
class _Pair:
    """A recorded track beside one of the lab's: what differs, and how many of its states are there."""

    matched: int = 0
    differences: list[Difference] = field(default_factory=list)


class _Comparison:
    def __init__(self, recording: Recording, seen: dict[str, list[Observation]], settings: ControllerSpec) -> None:
        self._end, self._first_operation_time, self._operations = (
            recording.end,
            recording.first_operation_time(),
            recording.operations,
        )
        self._recorded_histories, self._lab_histories = _histories(recording.observations), _histories(seen)
        self._recorded_tolerances = Tolerances(self._recorded_histories, settings, recording)
        self._lab_tolerances = Tolerances(self._lab_histories, settings, recording)
        self._result = Result(count_states(recording))

    def run(self) -> Result:
        groups: dict[str, tuple[list[StateHistory], list[StateHistory]]] = {}
        for side, tracks in enumerate((self._recorded_histories, self._lab_histories)):
            for key, track in tracks.items():
                alike = (
                    self._recorded_histories[key].equivalence_key
                    if key in self._recorded_histories
                    else track.equivalence_key
                )
                groups.setdefault(alike, ([], []))[side].append(track)
        for recorded, lab in groups.values():
            for pair in self._pairs(recorded, lab):
                self._result.matched += pair.matched
                self._result.differences += pair.differences
        self._result.matched = max(0, self._result.matched)
        self._result.differences.sort(key=lambda item: (item.t, item.subject))
        return self._result

    def _pairs(self, recorded: list[StateHistory], lab: list[StateHistory]) -> list[_Pair]:
        """Those who are exchangeable are paired so that the least differs."""
        straight = [self._compare_pair(*both) for both in zip_longest(recorded, lab)]
        if len(straight) == 1 or not any(pair.differences for pair in straight):
            return straight
        rows: list[StateHistory | None] = [*recorded, *[None] * (len(lab) - len(recorded))]
        columns: list[StateHistory | None] = [*lab, *[None] * (len(recorded) - len(lab))]
        pairs = [[self._compare_pair(row, column) for column in columns] for row in rows]
        costs = [
            [
                len(pair.differences) + _node_cost(rows[i], columns[j]) + _ORDER_COST * abs(i - j)
                for j, pair in enumerate(row)
            ]
            for i, row in enumerate(pairs)
        ]
        return [pairs[row][column] for row, column in enumerate(assign(costs))]

    def _compare_pair(self, recorded: StateHistory | None, lab: StateHistory | None) -> _Pair:
        pair = _Pair()
        if recorded is None and lab is not None:
            if lab.transitions[0].t <= self._end - max(_MIN_TOLERANCE, self._lab_tolerances.width(lab, 0)):
                pair.matched = -1  # as a state of the lab's own in a track that is there does
                self._add_difference(pair, lab, lab.transitions[0].t, "only in the lab")
        elif recorded is not None and lab is None:
            moments = recorded.stable_transitions()
            self._add_difference(pair, recorded, moments[0].t, f"not in the lab; recorded {len(moments)} states of it")
        elif recorded is not None and lab is not None:
            self._compare_histories(pair, recorded, lab)
        return pair

    def _compare_histories(self, pair: _Pair, recorded: StateHistory, lab: StateHistory) -> None:
        """Each recorded state in order; one that the lab leaves for a state of its own is not matched."""
        extra = self._count_extra(pair, recorded, lab)
        used, bad, merged = 0, 0, recorded.stable_transitions()
        for moment in merged:
            width = self._recorded_tolerances.width(recorded, recorded.transitions.index(moment))
            found = self._find(moment, lab.transitions, used, width)
            if found is None and _is_between_passes(merged, moment):
                continue
            if found is None:
                bad += 1
                self._add_difference(pair, recorded, moment.t, self._missing_text(moment, lab))
            else:
                used = found
        if self._removal_differs(pair, recorded, lab):
            extra += 1
        pair.matched = max(0, len(merged) - bad - extra)

    def _find(
        self, wanted: Transition, moments: list[Transition], begin: int, width: float, *, swap: bool = False
    ) -> int | None:
        """Where to go on looking once it is found. ``swap``: ``moments`` are the recorded ones, not the lab's."""
        for index in range(begin, len(moments)):
            other = moments[index]
            recorded, lab = (other, wanted) if swap else (wanted, other)
            if _states_match(recorded.state, lab.state) and self._is_in_time(recorded.t, lab.t, width):
                return index + (other.state == wanted.state)
        return None

    def _missing_text(self, moment: Transition, lab: StateHistory) -> str:
        times = [
            f"{other.t - self._first_operation_time:.1f} s" for other in lab.transitions if other.state == moment.state
        ]
        where = f"in the lab at {', '.join(times)}" if times else "never in the lab"
        return f"recorded {moment.state}; {where}"

    def _count_extra(self, pair: _Pair, recorded: StateHistory, lab: StateHistory) -> int:
        """What the lab did that was not recorded, in order."""
        begin, number, merged = 0, 0, lab.stable_transitions()
        for moment in merged:
            width = self._lab_tolerances.width(lab, lab.transitions.index(moment))
            if moment.t > self._end - max(_MIN_TOLERANCE, width):
                break
            found = self._find(moment, recorded.transitions, begin, width, swap=True)
            if found is None and _is_between_passes(merged, moment):
                continue
            if found is None:
                number += 1
                self._add_difference(pair, recorded, moment.t, f"only in the lab: {moment.state}")
            else:
                begin = found
        return number

    def _removal_differs(self, pair: _Pair, recorded: StateHistory, lab: StateHistory) -> bool:
        """Whether one of both was removed and the other was not, or at another time."""
        width = self._recorded_tolerances.width(recorded, len(recorded.transitions) - 1)
        if recorded.removed_at is None and (
            lab.removed_at is None or lab.removed_at > self._end - max(_MIN_TOLERANCE, width)
        ):
            return False
        if (
            recorded.removed_at is not None
            and lab.removed_at is not None
            and self._is_in_time(recorded.removed_at, lab.removed_at, width)
        ):
            return False
        at = recorded.removed_at if recorded.removed_at is not None else lab.removed_at
        texts = [
            f"removed at {item - self._first_operation_time:.1f} s" if item else "kept"
            for item in (recorded.removed_at, lab.removed_at)
        ]
        self._add_difference(pair, recorded, at or 0.0, f"recorded: {texts[0]}; in the lab: {texts[1]}")
        return True

    def _is_in_time(self, recorded: float, lab: float, width: float) -> bool:
        if min(recorded, lab) < self._first_operation_time and abs(recorded - lab) <= _MIN_TOLERANCE:
            return True
        if recorded <= self._first_operation_time:
            return lab <= self._first_operation_time + _MIN_TOLERANCE
        return abs(recorded - lab) <= max(
            _MIN_TOLERANCE, _RELATIVE_TOLERANCE * (recorded - self._cause(recorded).t), width
        )

    def _cause(self, t: float) -> Operation:
        """The last action that began before."""
        return [deed for deed in self._operations if deed.t <= t][-1]

    def _add_difference(self, pair: _Pair, track: StateHistory, t: float, text: str) -> None:
        pair.differences.append(Difference(track.subject, round(t - self._first_operation_time, 3), text))


def _states_match(recorded: State, lab: State) -> bool:
    """Equal, but for Ready of a rejected pod: its kubelet's return and its deletion race (recordings 10 and 16)."""
    if isinstance(recorded, PodState) and isinstance(lab, PodState) and recorded.reason == lab.reason == _NODE_SHUTDOWN:
        return recorded._replace(ready="") == lab._replace(ready="")
    return recorded == lab


def _is_between_passes(moments: list[Transition], moment: Transition) -> bool:
    """A node whose condition taints go at once or with the next pass: the state between may not be seen (facts 5.4)."""
    index = moments.index(moment)
    if not 0 < index < len(moments) - 1:
        return False
    following = moments[index + 1]
    before, state, after = (item.state for item in moments[index - 1 : index + 2])
    if not (isinstance(before, NodeState) and isinstance(state, NodeState) and isinstance(after, NodeState)):
        return False
    return state[:3] == after[:3] != before[:3] and following.t - moment.t <= _MONITOR_PASS


def _node_cost(recorded: StateHistory | None, lab: StateHistory | None) -> float:
    return _NODE_COST if recorded and lab and recorded.replaced_node != lab.replaced_node else 0.0
