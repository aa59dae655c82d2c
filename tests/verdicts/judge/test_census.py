"""Counting a set that changes tick by tick, with what is settled, gives what counting each pod gives."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.decode import decode
from chaos.core.recording import RecordingEntry
from chaos.core.signal import Sample, Signal, SubjectSet
from chaos.core.store.recording import build_timeline
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.census import Census
from chaos.verdicts.judge.context import LiveState, Options, Scope, bind
from chaos.verdicts.judge.evaluate import evaluate
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.sequence import last_gap
from chaos.verdicts.judge.temporal import Stretch, runs_of
from tests.kit.story import T0, experiment, plugin_registry
from tests.verdicts.judge.test_memo import CHANGES, World

EXAMPLES = int(os.environ.get("NODEFALL_EXAMPLES", "40"))
ANCHOR, END = 4.0, 20.0
OPTIONS = Options(bind={"victim": ("n1",)}, namespace="demo")
RANGES: tuple[dict[str, object], ...] = (
    {"namespace": "demo", "count": {"least": 2, "ready": True}},
    {"namespace": "demo", "count": {"least": 1, "most": 2, "ready": True}},
    {"node": "victim", "count": {"most": 0, "ready": True}},
    {"node": "victim", "count": {"most": 1, "gone": False}},
)
EXPERIMENT = experiment(
    "[{name: a, assert: pods, with: {namespace: demo, count: {least: 2, ready: true}}, within: 4s, for: 2s},"
    " {name: b, assert: pods, with: {namespace: demo, count: {most: 2, ready: true}}, always: {for: 9s}},"
    " {name: c, assert: pods, with: {node: victim, count: {least: 1, ready: true}}, never: {for: 7s}},"
    " {name: d, assert: pods, with: {namespace: demo, count: {least: 2, gone: true}}, within: 8s}]"
)


class Growing:
    """A timeline that grows, and what its judgements hand on."""

    def __init__(self, lines: Sequence[RecordingEntry]) -> None:
        self.lines = sorted(lines, key=lambda line: line.t)
        self.timeline, self.state, self.taken = Timeline(pause=0, few=0), LiveState(), 0

    def grow(self, end: float) -> Timeline:
        """Grow until ``end``; returns the same timeline, made of its first entries at once."""
        due = [line for line in self.lines if line.t <= T0 + end]
        for line in due[self.taken :]:
            entry = decode(line, self.timeline.next_seq())
            assert entry is not None
            self.timeline.add(entry)
        self.taken, fresh = len(due), build_timeline(due)
        self.timeline.end = fresh.end = T0 + end
        self.state.memos.begin_judgement()
        return fresh


def counted(timeline: Timeline, fields: dict[str, object], state: LiveState | None = None) -> SubjectSet:
    context = bind(EXPERIMENT, timeline, plugin_registry(), OPTIONS, True, state)
    assertion = plugin_registry().assertions["pods"]
    params = assertion.params.model_validate(fields)
    return assertion.subjects(params, Scope(context, T0 + ANCHOR, 0.0, ("pods", repr(params))))


def contradictions(one: Signal, other: Signal) -> list[tuple[Stretch, Stretch]]:
    """Runs of opposite values that certainly overlap. One signal may know more than the other."""
    known = [[run for run in runs_of(signal) if run.value is not None] for signal in (one, other)]
    return [
        (run, second)
        for run in known[0]
        for second in known[1]
        if run.value is not second.value and max(run.hi, second.hi) < min(run.end_lo, second.end_lo)
    ]


def check(lines: Sequence[RecordingEntry], ticks: Sequence[float]) -> None:
    growing = Growing(lines)
    for tick in ticks:
        fresh = growing.grow(tick)
        for fields in RANGES:
            found, alone = counted(growing.timeline, fields, growing.state), counted(fresh, fields)
            assert found == alone, (tick, fields)
            assert runs_of(combine(found)) == runs_of(Signal(combine(found).samples))
            assert not contradictions(combine(found), combine(found.one_by_one())), (tick, fields)
        live = bind(EXPERIMENT, growing.timeline, plugin_registry(), OPTIONS, True, growing.state)
        first = bind(EXPERIMENT, fresh, plugin_registry(), OPTIONS, True)
        for expectation in EXPERIMENT.spec.hypothesis:
            assert evaluate(expectation, live, T0 + tick) == evaluate(expectation, first, T0 + tick)


TICKS = st.lists(st.integers(45, 10 * int(END)).map(lambda tenth: tenth / 10), min_size=2, max_size=8, unique=True)
BLINDS = st.tuples(st.integers(9, 28).map(lambda half: half / 2 + 0.1), st.sampled_from([0.5, 3.0]), st.booleans())


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(CHANGES, max_size=12), st.lists(BLINDS, max_size=1), st.sampled_from([None, 0.1, 0.1, 1.3, 4.0]), TICKS)
def test_counting_goes_on_as_if_from_the_first_entry(
    changes: list[tuple[str, float, int, bool, float]],
    blinds: list[tuple[float, float, bool]],
    slow: float | None,
    ticks: list[float],
) -> None:
    """Also if a change is received that is older than what was settled, as a proof was wrong."""
    world = World() if slow is None else World().proofs(slow)
    received: dict[tuple[str, int], float] = {}  # of each object, one after the other
    for index, (what, t, number, value, delay) in enumerate(sorted(changes, key=lambda change: change[1])):
        world.change(what, t + index / 100, number, value, delay)
        key = "pod" if what == "gone" else what, number
        world.lines[-1].t = received[key] = max(world.lines[-1].t, received.get(key, 0.0) + 0.001)
    for start, length, later in blinds:
        world.hidden(start, start + length, "pods", start + length + 4 * later)
    check(world.lines, sorted(ticks))


def test_what_is_settled_is_not_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pods that do not change any more, a tick reads nothing; a change before what is settled is not missed."""
    made: list[int] = []
    settle = Census._combine

    def combine_and_count(self: Census, series: dict[int, list[Sample]], *rest: object) -> list[Sample]:
        made.append(sum(len(samples) for samples in series.values()))
        return settle(self, series, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Census, "_combine", combine_and_count)
    world = World().proofs(0.1).change("pod", 5, 1, False).change("pod", 6, 2, False).change("pod", 7.1, 1, True)
    growing = Growing(world.change("pod", 8.05, 1, False, delay=4).lines)
    numbers = []
    for tick in range(5, 15):
        growing.grow(tick)
        made.clear()
        counted(growing.timeline, RANGES[0], growing.state)
        numbers.append(sum(made))
    quiet, late = numbers[5], numbers[8]
    assert quiet <= 2 < late  # only the ends of what is proven
    check(world.lines, range(5, 15))


def test_a_pod_that_was_listed_and_is_bound_once_all_is_settled() -> None:
    """Its first version is evidence of how few matched, as if it had been in the set from the first entry on."""
    world = World().proofs(0.1).pod(0.1, "late", "", type_="LIST").pod(11.0, "late", "n1", ready=False)
    world.lines[:] = [line for line in world.lines if line.kind != "pods" or b"late" in bytes(line.object)]
    check(world.lines, range(5, 15))


def sample(t: float, lo: float | None = None, order: int = 0) -> Sample:
    return Sample(t, True, None, "", t if lo is None else lo, order)


@pytest.mark.parametrize(
    ("samples", "until", "found"),
    [
        ([], 5.0, (float("-inf"), 0)),
        ([sample(1), sample(3)], 5.0, (3.0, 0)),
        ([sample(1), sample(6)], 5.0, (1.0, 0)),
        ([sample(1), sample(4, 0.5), sample(6, 4)], 5.0, (float("-inf"), 0)),
        ([sample(2, 1, 7), sample(4, 3, 8), sample(6, 5, 9)], 5.0, (4.0, 8)),
        ([sample(2, 1, 7), sample(4, 3, 9), sample(6, 5, 8)], 5.0, (2.0, 7)),
    ],
    ids=["nothing", "all", "up to a moment", "intervals that overlap", "in order", "against the order"],
)
def test_a_gap_is_where_no_change_can_be_on_both_sides(
    samples: list[Sample], until: float, found: tuple[float, int]
) -> None:
    assert last_gap(samples, until) == found
    assert last_gap([replace_order(each) for each in reversed(samples)], until)[0] >= found[0]


def replace_order(given: Sample) -> Sample:
    return Sample(given.t, given.value, given.seq, given.observation, given.earliest)
