"""Held and violated, live, incrementally and offline, are what a naive judge finds in every history that fits."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.decode import decode
from chaos.core.recording import RecordingEntry
from chaos.core.store.recording import build_timeline
from chaos.core.timeline import Timeline
from chaos.core.verdict import Verdict
from chaos.verdicts.judge.context import LiveState, Options, bind
from chaos.verdicts.judge.evaluate import evaluate
from tests.kit.every_history import Change, Proof, Question, Recorded, verdicts
from tests.kit.story import HELD, T0, VIOLATED, Story, experiment, plugin_registry

EXAMPLES = int(os.environ.get("NODEFALL_EXAMPLES", "40"))
ANCHOR, END = 10.0, 30.0
NODES = ("n1", "n2")
_PODS = "assert: pods, with: {namespace: demo"
_N2 = "assert: node-condition, with: {node: n2, type: Ready, status: 'False'}"
QUESTIONS = {
    "nodes": [
        Question("assert: nodes-ready, with: {nodes: all}, within: 5s", all, "within", 5),
        Question("assert: nodes-ready, with: {nodes: all}, within: 5s, for: 3s", all, "within", 5, 3),
        Question("assert: nodes-ready, with: {nodes: all}, always: {for: 8s}", all, "always", 8),
        Question("assert: nodes-ready, with: {nodes: all}, never: {for: 8s}", any, "never", 8),
        Question("assert: nodes-ready, with: {not-ready-at-most: 1}, always: {for: 8s}", any, "always", 8),
        Question("assert: nodes-ready, with: {not-ready-at-most: 0}, within: 4s, for: 2s", all, "within", 4, 2),
        Question(f"{_N2}, within: 5s", lambda values: not values[1], "within", 5),
        Question(f"{_N2}, never: {{for: 6s}}", lambda values: not values[1], "never", 6),
    ],
    "pods": [
        Question(f"{_PODS}, count: {{least: 2, ready: true}}}}, within: 5s", all, "within", 5),
        Question(f"{_PODS}, count: {{least: 1, ready: true}}}}, always: {{for: 8s}}", any, "always", 8),
        Question(f"{_PODS}, count: {{most: 1, ready: true}}}}, within: 5s", lambda v: not all(v), "within", 5),
        Question(f"{_PODS}, count: {{most: 0, ready: false}}}}, never: {{for: 8s}}", all, "never", 8),
        Question(f"{_PODS}, at: stop, each: {{ready: true}}}}, within: 5s, for: 3s", all, "within", 5, 3),
        Question(f"{_PODS}, at: stop, none: {{ready: true}}}}, always: {{for: 8s}}", lambda v: not any(v), "always", 8),
        Question(f"{_PODS}, at: stop, any: {{ready: true}}}}, always: {{for: 8s}}", any, "always", 8),
    ],
}
EXPERIMENTS = {
    source: experiment(f"[{', '.join(f'{{name: q{i}, {q.text}}}' for i, q in enumerate(questions))}]")
    for source, questions in QUESTIONS.items()
}
OPTIONS = Options(bind={"victim": ("n1",)})


@st.composite
def recordings(draw: st.DrawFn) -> Recorded:
    """Two nodes whose changes are received late, in another order, or not at all in a blind window."""
    recorded = Recorded({node: draw(st.booleans()) for node in NODES})
    moments = sorted(draw(st.lists(st.integers(40, 190), max_size=4, unique=True)))
    last = dict.fromkeys(NODES, 0.0)
    for index, tenths in enumerate(moments):
        node, delay = draw(st.sampled_from(NODES)), draw(st.sampled_from([0.01, 0.01, 0.3, 2.0, 6.0]))
        happened = tenths / 10 + 0.03 + index / 1000
        last[node] = received = max(last[node], happened + delay)
        recorded.changes.append(Change(node, 1000 + index, happened, received, draw(st.booleans())))
    proof: list[Proof] = []
    if draw(st.booleans()):
        start, length = draw(st.integers(5, 14)) + 0.5, draw(st.sampled_from([1.0, 4.0]))
        listing, is_begin, is_cut = draw(st.sampled_from([0.01, 0.9])), draw(st.booleans()), draw(st.booleans())
        proof = _add_blind(recorded, start, start + length, listing, is_begin, is_cut)
    if draw(st.sampled_from([True, True, False])):
        pause, slow = draw(st.sampled_from([0.7, 1.3, 3.1])), draw(st.sampled_from([0.1, 0.9, 4.0]))
        recorded.proofs = sorted([*_proofs(recorded, pause, slow), *proof], key=lambda proof: proof.t)
        if recorded.blind:  # recorded from when on nothing was certain
            start, end = recorded.blind
            known = max((proof.until for proof in recorded.proofs if proof.t <= start), default=0.2)
            recorded.blind = min(start, known), end
    return recorded


def _add_blind(
    recorded: Recorded, start: float, end: float, listing: float, is_begin: bool, is_cut: bool
) -> list[Proof]:
    """A blind window that ends with a list, which takes ``listing`` seconds and is of its start, or of its end.

    Of each node it has the last version; if the watch ``is_cut`` from the start of the window on, others are lost.
    Returns what the list proves.
    """
    since = start if is_cut else end
    sent = end - listing
    listed_at = sent if is_begin else end
    missed = [change for change in recorded.changes if change.received > since and change.happened <= listed_at]
    listed = {change.node: change for change in missed}  # the last of each
    order = max((change.order for change in recorded.changes if change.happened <= listed_at), default=999)
    others = [change for change in recorded.changes if change not in missed]
    recorded.changes = [c if c.received > end or c.received < since else _at_end(c, end + 0.002) for c in others]
    recorded.changes += [_at_end(change, end) for change in listed.values()]
    recorded.blind = start, end
    return [Proof(end + 0.001, sent, sent, order)]


def _at_end(change: Change, end: float) -> Change:
    return Change(change.node, change.order, change.happened, end, change.value)


def _proofs(recorded: Recorded, pause: float, slow: float) -> Iterator[Proof]:
    """Reads that are answered ``slow`` seconds later; each sees the store when it is sent."""
    for number in range(1, int((END - slow) / pause)):
        read = round(number * pause, 2)
        t = round(read + slow, 2)
        behind = [c.happened for c in recorded.changes if c.received > t]
        order = max((c.order for c in recorded.changes if c.happened <= read), default=999)
        in_window = recorded.blind and recorded.blind[0] <= t <= recorded.blind[1]
        if not in_window:
            yield Proof(t, min([read, *behind]), read, order)


def entries(recorded: Recorded, source: str = "nodes", *, duplicates: bool = False) -> list[RecordingEntry]:
    """The recording; ``source``: nodes, or pods of the same names."""
    story = Story().node(0.1, "n1", type_="LIST")

    def add(t: float, name: str, value: bool, type_: str) -> None:
        if source == "nodes":
            story.node(t, name, str(value), type_=type_, heartbeat=0)
        else:
            story.pod(t, name, ready=value, type_=type_)

    for name, value in recorded.first.items():
        add(0.1, name, value, "LIST")
    for change in recorded.changes:
        listed = recorded.blind is not None and change.received == recorded.blind[1]
        for t in (change.received, change.received + 0.001) if duplicates else (change.received,):
            add(t, change.node, change.value, "LIST" if listed else "MODIFIED")
            line = story.lines[-1]
            version = b'"metadata":{"resourceVersion":"%d",' % change.order
            line.object = msgspec.Raw(bytes(line.object).replace(b'"metadata":{', version, 1))
    if recorded.blind:
        story.blind(*recorded.blind, source)
        story.lines[-1].t = T0 + recorded.blind[1] - 1e-5
    for proof in recorded.proofs:
        times = {"until": T0 + proof.until, "complete": T0 + proof.until, "read": T0 + proof.read}
        story.add(proof.t, "current", source, times | {"version": str(proof.order)})
    story.done(ANCHOR, "poweroff", step="stop")
    return sorted(story.lines, key=lambda line: line.t)


def judged(timeline: Timeline, source: str, live: bool, state: LiveState | None = None) -> list[Verdict]:
    """``state``: of the judgement before, if it remembers something."""
    state = state or LiveState()
    state.memos.begin_judgement()
    context = bind(EXPERIMENTS[source], timeline, plugin_registry(), OPTIONS, live, state)
    return [evaluate(expectation, context, timeline.end) for expectation in EXPERIMENTS[source].spec.hypothesis]


@settings(max_examples=EXAMPLES)
@given(
    recordings(),
    st.sampled_from(list(QUESTIONS)),
    st.booleans(),
    st.sets(st.integers(21, 60), min_size=1, max_size=4),
)
def test_what_is_decided_is_so_in_every_history(
    recorded: Recorded, source: str, duplicates: bool, ticks: set[int]
) -> None:
    lines, growing, taken, state = (
        entries(recorded, source, duplicates=duplicates),
        Timeline(pause=0, few=0),
        0,
        LiveState(),
    )
    for tick in [half / 2 for half in sorted(ticks)]:
        due = [line for line in lines if line.t <= T0 + tick]
        for line in due[taken:]:
            entry = decode(line, growing.next_seq())
            assert entry is not None
            growing.add(entry)
        taken = len(due)
        growing.end = T0 + tick
        live = judged(growing, source, live=True, state=state)
        fresh = build_timeline(due)
        fresh.end = T0 + tick
        assert live == judged(fresh, source, live=True)
        check(recorded, source, live, tick)
        check(recorded, source, judged(fresh, source, live=False), tick)


def check(recorded: Recorded, source: str, found: list[Verdict], end: float) -> None:
    for verdict, question in zip(found, QUESTIONS[source], strict=True):
        if verdict.status in (HELD, VIOLATED):
            expected = verdicts(recorded, question, ANCHOR, end)
            assert expected == {verdict.status is HELD}, f"{question.text} at {end}: {verdict.status} {verdict.because}"


def slow_list() -> Recorded:
    """A change after what the list at the end of a blind window shows, and before the list is received."""
    recorded = Recorded({"n1": False, "n2": True}, [Change("n1", 1000, 9.8, 9.9, True)])
    proof = _add_blind(recorded, 6.5, 10.5, listing=0.9, is_begin=True, is_cut=True)
    recorded.proofs = [Proof(6.4, 6.3, 6.3, 999), *proof, *(Proof(t + 0.1, t, t, 1000) for t in range(11, 25))]
    return recorded


def late_changes() -> Recorded:
    """A change that may have happened before a moment up to which the watch is current, and was received after it."""
    changes = [Change("n1", 1000, 9.33, 15.33, True), Change("n1", 1001, 12.731, 18.731, False)]
    changes.append(Change("n1", 1002, 12.832, 18.731, False))
    reads = [(9.4, 9.3, 9.3, 999), (12.5, 9.33, 12.4, 1000), (15.6, 12.731, 15.5, 1002), (18.7, 12.731, 18.6, 1002)]
    return Recorded({"n1": False, "n2": False}, changes, [Proof(*read) for read in reads])


@pytest.mark.parametrize(("recorded", "end"), [(slow_list(), 25.0), (late_changes(), 19.0)], ids=["list", "changes"])
def test_verdicts_that_were_false(recorded: Recorded, end: float) -> None:
    timeline = build_timeline([line for line in entries(recorded) if line.t <= T0 + end])
    timeline.end = T0 + end
    found = judged(timeline, "nodes", live=True)
    check(recorded, "nodes", found, end)
    assert {verdict.status for verdict in found} - {HELD, VIOLATED}


def test_the_naive_judge_knows_both_answers_and_doubt() -> None:
    never, first = QUESTIONS["nodes"][-1], {"n1": True, "n2": True}  # until 16
    late, soon = (Change("n2", 1000, 13.0, received, False) for received in (17.0, 15.0))
    assert verdicts(Recorded(first, [late]), never, ANCHOR, END) == {True}  # without proofs, receipt counts
    assert verdicts(Recorded(first, [soon]), never, ANCHOR, END) == {False}
    proofs = [Proof(20, 13, 13, 1000), Proof(28, 28, 28, 1000)]
    assert verdicts(Recorded(first, [late], proofs), never, ANCHOR, END) == {True, False}
    assert verdicts(Recorded(first, [soon], proofs), never, ANCHOR, END) == {False}
    assert verdicts(Recorded(first, [], proofs), never, ANCHOR, END) == {True}
    assert verdicts(Recorded(first, [], proofs), never, ANCHOR, 25) == {True, False}  # anything may follow 13
    assert verdicts(Recorded(first, [Change("n2", 1000, 13.0, 17.0, True)], [], (12, 17)), never, ANCHOR, END) == {
        True,
        False,
    }
