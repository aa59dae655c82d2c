"""Compare the recorded history with the history of the lab, state by state; interchangeable pods are paired. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from chaos.lab.recorded.recording import Observation, Recording, Stall
from chaos.lab.recorded.stalls import find_wakes
from chaos.lab.spec import ControllerSpec
from tools.replay.stalled import StalledClock
from tools.replay.states import (
    NodeState,
    PodState,
    State,
    StateHistory,
    Transition,
    node_histories,
    pod_histories,
    volume_histories,
)
from tools.replay.tolerances import Tolerances


def assign(costs: list[list[float]]) -> list[int]:
    """Column of each row of a square matrix, with the least sum of costs. Hungarian method, O(n^3)."""
    size = len(costs)
    row_of = [-1] * (size + 1)  # by column; the last one is virtual
    by_row, by_column = [0.0] * size, [0.0] * (size + 1)
    for row in range(size):
        row_of[size] = row
        column, path = _cheapest_path(costs, row_of, by_row, by_column)
        while column != size:
            row_of[column] = row_of[path[column]]
            column = path[column]
    result = [0] * size
    for column in range(size):
        result[row_of[column]] = column
    return result


def _cheapest_path(
    costs: list[list[float]], row_of: list[int], by_row: list[float], by_column: list[float]
) -> tuple[int, list[int]]:
    """Free column with the cheapest augmenting path, and that path; updates the potentials."""
    size = len(costs)
    path, least, done = [size] * size, [float("inf")] * size, [False] * (size + 1)
    column = size
    while row_of[column] >= 0:
        done[column] = True
        here = row_of[column]
        for other in [other for other in range(size) if not done[other]]:
            cost = costs[here][other] - by_row[here] - by_column[other]
            if cost < least[other]:
                least[other], path[other] = cost, column
        column = min((other for other in range(size) if not done[other]), key=least.__getitem__)
        step = least[column]
        for other in range(size + 1):
            if done[other]:
                by_row[row_of[other]] += step
                by_column[other] -= step
            elif other < size:
                least[other] -= step
    return column, path


_MIN_TOLERANCE, _RELATIVE_TOLERANCE = 2.0, 0.1  # deterministic mechanisms: the greater of 2 s and 10 %
_MONITOR_PASS = 5.2  # seconds between two passes of the node lifecycle controller (facts 5.2)
_NODE_SHUTDOWN = "NodeShutdown"
_NODE_COST, _ORDER_COST = 1e-3, 1e-6  # tie-breakers between assignments with equally many differences


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, at ``t`` seconds after the first operation; of the lab for states that only the lab has."""

    subject: str
    t: float
    text: str


@dataclass
class Result:
    """Result of a comparison: ``matched`` of ``total`` recorded states, and the differences.

    ``seed`` is the seed of the lab with the best match. ``findings``: what was not replayed, and why.
    """

    total: int
    matched: int = 0
    differences: list[Difference] = field(default_factory=list)
    seed: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def is_match(self) -> bool:
        """Whether every recorded state matched and the lab has no other states."""
        return self.matched == self.total and not self.differences


def count_states(recording: Recording) -> int:
    """Number of states to match; needs no lab."""
    observations = StalledClock(recording.stalls).observations(recording.observations)
    return sum(len(history.stable_transitions()) for history in _histories(observations).values())


def compare(recording: Recording, lab: dict[str, list[Observation]], settings: ControllerSpec) -> Result:
    """Compare with ``lab``: the observations of nodes, pods and volumes in the lab, at the recording's times.

    In stalls that the recording shows, the time of neither goes on; in their wakes, differences do not count.
    """
    return _Comparison(recording, lab, settings).run()


def _histories(observations: dict[str, list[Observation]]) -> dict[str, StateHistory]:
    pods = pod_histories(observations["pods"])
    return {**node_histories(observations["nodes"]), **pods, **volume_histories(observations)}


@dataclass
class _Pair:
    """Comparison of a recorded history with one of the lab: differences, and number of matched states."""

    matched: int = 0
    differences: list[Difference] = field(default_factory=list)


class _Comparison:
    def __init__(self, recording: Recording, lab: dict[str, list[Observation]], settings: ControllerSpec) -> None:
        self._clock = StalledClock(recording.stalls)
        wakes = [Stall(*map(self._clock.time, (wake.begin, wake.end))) for wake in find_wakes(recording)]
        self._wake_clock = StalledClock(wakes)
        self._result = Result(count_states(recording))
        self._zero = recording.first_operation_time()
        recording, lab = self._clock.recording(recording), self._clock.observations(lab)
        self._start, self._end, self._operations = recording.start, recording.end, recording.operations
        self._first_operation_time = recording.first_operation_time()
        self._recorded_histories, self._lab_histories = _histories(recording.observations), _histories(lab)
        self._recorded_tolerances = Tolerances(self._recorded_histories, settings, recording)
        self._lab_tolerances = Tolerances(self._lab_histories, settings, recording)

    def run(self) -> Result:
        groups: dict[str, tuple[list[StateHistory], list[StateHistory]]] = {}
        for side, histories in enumerate((self._recorded_histories, self._lab_histories)):
            for key, history in histories.items():
                equivalence_key = self._recorded_histories.get(key, history).equivalence_key
                groups.setdefault(equivalence_key, ([], []))[side].append(history)
        for recorded, lab in groups.values():
            for pair in self._pairs(recorded, lab):
                self._result.matched += pair.matched
                self._result.differences += pair.differences
        self._result.matched = max(0, self._result.matched)
        self._result.differences.sort(key=lambda item: (item.t, item.subject))
        return self._result

    def _pairs(self, recorded: list[StateHistory], lab: list[StateHistory]) -> list[_Pair]:
        """Pair interchangeable histories so that the number of differences is minimal."""
        in_order = [self._compare_pair(*both) for both in zip_longest(recorded, lab)]
        if len(in_order) == 1 or not any(pair.differences for pair in in_order):
            return in_order
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
                pair.matched = -1  # counts like an extra state in a recorded history
                self._add_difference(pair, lab, lab.transitions[0].t, "only in the lab")
        elif recorded is not None and lab is None:
            transitions = recorded.stable_transitions()
            text = f"not in the lab; recorded {len(transitions)} states of it"
            self._add_difference(pair, recorded, transitions[0].t, text)
        elif recorded is not None and lab is not None:
            self._compare_histories(pair, recorded, lab)
        return pair

    def _compare_histories(self, pair: _Pair, recorded: StateHistory, lab: StateHistory) -> None:
        """Match the recorded states in order; each extra state of the lab counts as one recorded state not matched."""
        extra = self._count_extra(pair, recorded, lab)
        position, missing, stable = 0, 0, recorded.stable_transitions()
        for transition in stable:
            width = self._recorded_tolerances.width(recorded, recorded.transitions.index(transition))
            match = self._find(transition, lab.transitions, position, width)
            if match is None and _is_between_passes(stable, transition):
                continue
            if match is None:
                missing += 1
                self._add_difference(pair, recorded, transition.t, self._missing_text(transition, lab))
            else:
                position = match
        if self._removal_differs(pair, recorded, lab):
            extra += 1
        pair.matched = max(0, len(stable) - missing - extra)

    def _find(
        self, wanted: Transition, transitions: list[Transition], start: int, width: float, *, swap: bool = False
    ) -> int | None:
        """Index at which to continue after a match; None without one. ``swap``: search in the recorded transitions."""
        for index in range(start, len(transitions)):
            other = transitions[index]
            recorded, lab = (other, wanted) if swap else (wanted, other)
            if _states_match(recorded.state, lab.state) and self._is_in_time(recorded.t, lab.t, width):
                return index + (other.state == wanted.state)
        return None

    def _missing_text(self, transition: Transition, lab: StateHistory) -> str:
        matches = [other for other in lab.transitions if other.state == transition.state]
        times = [f"{self._seconds(other.t):.1f} s" for other in matches]
        where = f"in the lab at {', '.join(times)}" if times else "never in the lab"
        return f"recorded {transition.state}; {where}"

    def _count_extra(self, pair: _Pair, recorded: StateHistory, lab: StateHistory) -> int:
        """Count and report the states of the lab that were not recorded."""
        position, extra, stable = 0, 0, lab.stable_transitions()
        for transition in stable:
            width = self._lab_tolerances.width(lab, lab.transitions.index(transition))
            if transition.t > self._end - max(_MIN_TOLERANCE, width):
                break
            match = self._find(transition, recorded.transitions, position, width, swap=True)
            if match is None and _is_between_passes(stable, transition):
                continue
            if match is None:
                extra += 1
                self._add_difference(pair, recorded, transition.t, f"only in the lab: {transition.state}")
            else:
                position = match
        return extra

    def _removal_differs(self, pair: _Pair, recorded: StateHistory, lab: StateHistory) -> bool:
        """Whether only one of the two was removed, or at another time."""
        width = self._recorded_tolerances.width(recorded, len(recorded.transitions) - 1)
        recorded_at, lab_at = recorded.removed_at, lab.removed_at
        if recorded_at is None and (lab_at is None or lab_at > self._end - max(_MIN_TOLERANCE, width)):
            return False
        if recorded_at is not None and lab_at is not None and self._is_in_time(recorded_at, lab_at, width):
            return False
        at = recorded_at if recorded_at is not None else lab_at
        texts = [f"removed at {self._seconds(t):.1f} s" if t else "not removed" for t in (recorded_at, lab_at)]
        self._add_difference(pair, recorded, at or 0.0, f"recorded: {texts[0]}; in the lab: {texts[1]}")
        return True

    def _is_in_time(self, recorded: float, lab: float, width: float) -> bool:
        if min(recorded, lab) < self._first_operation_time and abs(recorded - lab) <= _MIN_TOLERANCE:
            return True
        if recorded <= self._first_operation_time:
            return lab <= self._first_operation_time + _MIN_TOLERANCE
        relative = _RELATIVE_TOLERANCE * (recorded - self._cause_time(recorded))
        difference = abs(self._wake_clock.time(recorded) - self._wake_clock.time(lab))
        return difference <= max(_MIN_TOLERANCE, relative, width)

    def _cause_time(self, t: float) -> float:
        """Start of the last operation before ``t``; of the recording without one."""
        return max((operation.t for operation in self._operations if operation.t <= t), default=self._start)

    def _add_difference(self, pair: _Pair, history: StateHistory, t: float, text: str) -> None:
        pair.differences.append(Difference(history.subject, round(self._seconds(t), 3), text))

    def _seconds(self, t: float) -> float:
        """Seconds from the first operation, with the time of stalls."""
        return self._clock.original(t) - self._zero


def _states_match(recorded: State, lab: State) -> bool:
    """Equality, except Ready of a rejected pod: the kubelet's return races with the deletion (recordings 10, 16)."""
    if isinstance(recorded, PodState) and isinstance(lab, PodState) and recorded.reason == lab.reason == _NODE_SHUTDOWN:
        return recorded._replace(ready="") == lab._replace(ready="")
    return recorded == lab


def _is_between_passes(transitions: list[Transition], transition: Transition) -> bool:
    """Whether the state may go unseen: a node's condition taints go at once or with the next pass (facts 5.4)."""
    index = transitions.index(transition)
    if not 0 < index < len(transitions) - 1:
        return False
    following = transitions[index + 1]
    before, state, after = (item.state for item in transitions[index - 1 : index + 2])
    if not (isinstance(before, NodeState) and isinstance(state, NodeState) and isinstance(after, NodeState)):
        return False
    return state[:3] == after[:3] != before[:3] and following.t - transition.t <= _MONITOR_PASS


def _node_cost(recorded: StateHistory | None, lab: StateHistory | None) -> float:
    return _NODE_COST if recorded and lab and recorded.replaced_node != lab.replaced_node else 0.0
