"""What a live run remembers of objects is what it would make of them now, object by object."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.assertion import Memo, Memos, Undecidable
from chaos.core.decode import decode
from chaos.core.kube import Node, NodeMetadata
from chaos.core.recording import Currency, RecordingEntry
from chaos.core.signal import Quantifier, SubjectSet
from chaos.core.store.recording import build_timeline
from chaos.core.timeline import History, Timeline, Version
from chaos.verdicts.judge.context import LiveState, Options, Scope, bind
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.roster import Member, Roster
from tests.kit.story import T0, Story, experiment, plugin_registry

EXAMPLES = int(os.environ.get("NODEFALL_EXAMPLES", "25"))
ANCHOR, LAST = 4.0, 16
MADE = experiment("[{assert: nodes-ready, with: {nodes: all}, within: 5s}]")
OPTIONS = Options(bind={"victim": ("n1",)}, namespace="demo")
QUESTIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("nodes-ready", {"nodes": "all"}),
    ("nodes-ready", {"not-ready-at-most": 1}),
    ("node-condition", {"node": "victim", "type": "Ready", "status": "False"}),
    ("node-taint", {"node": "victim", "key": "k"}),
    ("pods", {"namespace": "demo", "count": {"least": 2, "ready": True}}),
    ("pods", {"namespace": "demo", "count": {"most": 2, "ready": True}}),
    ("pods", {"node": "victim", "count": {"most": 1, "gone": False}}),
    ("pods", {"node": "victim", "none": {"ready": False}}),
    ("pods", {"namespace": "demo", "each": {"gone": True}}),
    ("pods-started", {"node": "victim"}),
    ("workload-available", {"namespace": "demo"}),
    ("budget-respected", {"namespace": "demo", "by": ["eviction", "deletion"]}),
)
SOURCES = ("nodes", "pods", "deployments", "statefulsets", "daemonsets", "poddisruptionbudgets")


class World(Story):
    """Two nodes, three pods, a Deployment and a budget; changes have a resourceVersion, of when they happened."""

    def __init__(self) -> None:
        super().__init__()
        for number in (1, 2):
            self.node(0.1, f"n{number}", type_="LIST")
        for number in (1, 2, 3):
            self.pod(0.1, f"p{number}", f"n{number % 2 + 1}", labels={"app": "web"}, type_="LIST")
        self.workload(0.1, "web", 3, type_="LIST").budget(0.1, 2, type_="LIST")
        self.done(ANCHOR, "poweroff", step="stop")

    def change(self, what: str, t: float, number: int, value: bool, delay: float = 0.01) -> World:
        """A change that happened at ``t``, and is received later."""
        if what == "node":
            self.node(t, f"n{number % 2 + 1}", str(value), taints=() if value else ("k:NoSchedule",))
        elif what == "pod":
            self.pod(t, f"p{number}", f"n{number % 2 + 1}", labels={"app": "web"}, ready=value, created=t)
        elif what == "other":
            self.pod(t, f"q{number}", labels={"app": "db"}, ready=value)
        elif what == "gone":
            self.pod(t, f"p{number}", f"n{number % 2 + 1}", labels={"app": "web"}, deleting=True, type_="DELETED")
        elif what == "budget":
            self.budget(t, number)
        else:
            self.workload(t, "web", number)
        line = self.lines[-1]
        version = b'"metadata":{"resourceVersion":"%d",' % (1000 + round(t * 100))
        line.object = msgspec.Raw(bytes(line.object).replace(b'"metadata":{', version, 1))
        line.t += delay
        return self

    def proof(self, t: float, read: float, *sources: str) -> World:
        """Answered at ``t``: what a read at ``read`` saw."""
        times = {"until": T0 + read, "complete": T0 + read, "read": T0 + read}
        for source in sources or SOURCES:
            self.add(t, "current", source, times | {"version": str(1000 + round(read * 100))})
        return self

    def proofs(self, slow: float, *, but: Iterable[int] = ()) -> World:
        for second in sorted({*range(1, LAST)} - {*but}):
            self.proof(second + 0.5, second + 0.5 - slow)
        return self

    def hidden(self, start: float, end: float | None, source: str, recorded: float) -> World:
        """A blind window, recorded later than it began."""
        self.blind(start, end, source)
        self.lines[-1].t = T0 + recorded
        return self


def subjects(
    timeline: Timeline, state: LiveState | None = None, anchor: float = ANCHOR, options: Options = OPTIONS
) -> Iterator[SubjectSet | str]:
    """For each question the signals of all objects, or why there are none; without ``state``, each made by itself."""
    if state:
        state.memos.begin_judgement()
    for name, fields in QUESTIONS:
        context = bind(MADE, timeline, plugin_registry(), options, True, state)
        assertion = plugin_registry().assertions[name]
        params = assertion.params.model_validate(fields)
        try:
            yield assertion.subjects(params, Scope(context, T0 + anchor, 0.0, (name, repr(params))))
        except Undecidable as error:
            yield str(error)


def ticks(lines: Iterable[RecordingEntry]) -> Iterator[tuple[Timeline, Timeline]]:
    """After each second, the timeline that grows, and one that is built from the first entry on."""
    ordered = sorted(lines, key=lambda line: line.t)
    growing, taken = Timeline(pause=0, few=0), 0
    for tick in range(int(ANCHOR) + 1, LAST + 1):
        due = [line for line in ordered if line.t <= T0 + tick]
        for line in due[taken:]:
            decoded = decode(line, growing.next_seq())
            assert decoded is not None
            growing.add(decoded)
        taken = len(due)
        yield growing, build_timeline(due)


def alone(found: SubjectSet) -> SubjectSet:
    """The same, so that each subject is combined by itself."""
    return replace(found, subjects=tuple(found.subjects))


def check(world: World) -> int:
    """How many sets of signals changed from one second to the next."""
    state, before, changes = LiveState(), list[SubjectSet | str](), 0
    for growing, fresh in ticks(world.lines):
        remembered, made = list(subjects(growing, state)), list(subjects(fresh))
        for question, one, two in zip(QUESTIONS, remembered, made, strict=True):
            assert one == two, question
            if isinstance(one, SubjectSet):
                assert combine(one) == combine(alone(one)), question
        changes += sum(one != two for one, two in zip(before, remembered, strict=bool(before)))
        before = remembered
    return changes


@pytest.mark.parametrize(
    "world",
    [
        World().change("node", 7, 1, False).change("node", 9, 1, True),
        World().change("pod", 7, 1, False).change("pod", 9, 4, True).change("gone", 11, 2, True),
        World().change("shop", 7, 2, True).change("budget", 9, 3, True).change("pod", 11, 3, False),
        World().change("gone", 7, 1, True).change("gone", 8, 2, True),
        World().hidden(6, None, "nodes", 6.5).hidden(6, 9, "nodes", 9),
        World().hidden(6, 9, "pods", 12).hidden(7, 8, "deployments", 13),
        World().hidden(6, 7, "poddisruptionbudgets", 12),
    ],
    ids=["nodes", "pods", "others", "budget loses pods", "blind to nodes", "blind, recorded later", "blind to budgets"],
)
def test_a_change_is_not_missed(world: World) -> None:
    assert check(world) > 0


def test_a_pod_that_is_first_seen_after_a_blind_window() -> None:
    """Whether it existed in the window is unknown, though the window was judged before the pod was seen."""
    assert check(World().proofs(0.1).change("other", 8.1, 1, False).hidden(4.6, 7.6, "pods", 7.6)) > 0


def test_versions_of_a_pod_that_are_received_in_another_order() -> None:
    """Its last change is not the one that was received last; a later one that changes nothing follows."""
    world = World().proofs(0.1).change("pod", 4.61, 2, False, delay=0.2).change("gone", 4.62, 2, False)
    assert check(world.change("gone", 5.63, 2, False)) > 0


@pytest.mark.parametrize("what", ["node", "pod", "shop"])
def test_a_narrower_interval_is_not_missed(what: str) -> None:
    """A change is received while a read is under way whose answer shows that it was later."""
    world = World().proof(1.5, 1.4).proof(6.5, 4.2).change(what, 6, 2, False, delay=1.2)
    for proven in (8.5, 9.5, 10.5):
        world.proof(proven, proven - 3)
    assert check(world) > 0


def test_late_changes_of_pods_concern_budgets() -> None:
    """Also those of pods that the budget does not select: the order of all is uncertain."""
    world = World().proof(1.5, 1.4).proof(5.5, 5.2, "poddisruptionbudgets").change("other", 6, 1, True, delay=4)
    assert check(world.proof(11.5, 11.2).proof(13.5, 13.2)) > 0


def test_another_question_has_another_memo() -> None:
    """Another anchor, or other nodes for a target: the words and facts of a pod are of the anchor."""
    world = World().change("pod", 7, 2, True).pod(7.5, "p1", "n1", labels={"app": "web"})
    world.lines[-2], world.lines[-1] = world.lines[-1], world.lines[-2]
    text = bytes(world.lines[-1].object).replace(
        b'"terminationGracePeriodSeconds":30', b'"terminationGracePeriodSeconds":5'
    )
    world.lines[-1].object = msgspec.Raw(text)
    timeline, state = world.timeline(LAST), LiveState()
    for anchor, node in ((ANCHOR, "n1"), (8.0, "n1"), (8.0, "n2"), (ANCHOR, "n1")):
        options = Options(bind={"victim": (node,)}, namespace="demo")
        remembered = list(subjects(timeline, state, anchor, options))
        list(subjects(timeline, state, anchor, options))
        assert remembered == list(subjects(timeline, None, anchor, options))


def test_what_comes_while_a_value_is_made_is_not_taken_for_known() -> None:
    timeline = World().change("node", 7, 1, False).timeline(LAST)
    history, memo, made = timeline.nodes["n1"], Memo(), list[int]()

    def make() -> int:
        made.append(len(history.versions))
        if len(made) == 1:
            history.append(history.last)
        return made[-1]

    first = memo.recall(timeline, history, make)
    assert [memo.recall(timeline, history, make) for _ in range(2)] == [first + 1] * 2


def test_an_unused_memo_is_forgotten() -> None:
    memos = Memos()
    first = memos.of("question")
    memos.begin_judgement()
    assert memos.of("question") is first
    memos.begin_judgement()
    memos.begin_judgement()
    assert memos.of("question") is not first


WHAT = st.sampled_from(["node", "pod", "pod", "other", "gone", "shop", "budget"])
TIMES = st.integers(9, 2 * LAST - 4).map(lambda half: half / 2 + 0.1)
CHANGES = st.tuples(WHAT, TIMES, st.integers(1, 4), st.booleans(), st.sampled_from([0.01, 0.2, 1.0, 4.0]))
BLINDS = st.tuples(TIMES, st.sampled_from([0.5, 3.0]), st.sampled_from(SOURCES), st.sampled_from([0.0, 4.0]))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(CHANGES, max_size=10), st.lists(BLINDS, max_size=1), st.sampled_from([None, 0.1, 1.3, 4.0]))
def test_what_is_remembered_is_what_would_be_made(
    changes: list[tuple[str, float, int, bool, float]],
    blinds: list[tuple[float, float, str, float]],
    slow: float | None,
) -> None:
    world = World() if slow is None else World().proofs(slow)
    for index, (what, t, number, value, delay) in enumerate(changes):
        world.change(what, t + index / 100, number, value, delay)
    for start, length, source, late in blinds:
        world.hidden(start, start + length, source, start + length + late)
    check(world)


SAMPLES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([True, False, None]), st.sampled_from([0, 0, 0, 1, 3])), max_size=3
)


@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(
    st.lists(SAMPLES, min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=2, max_size=7),
    st.sampled_from(list(Quantifier)),
    st.sampled_from([None, 0.0, 2.0]),
    st.sets(st.integers(0, 6), max_size=2),
)
def test_subjects_that_are_alike_count_as_each_by_itself(
    shapes: list[list[tuple[int, bool | None, int]]],
    owners: list[int],
    quantifier: Quantifier,
    delay: float | None,
    behind: set[int],
) -> None:
    """Value, evidence and words are the same, moment by moment, whatever was made before."""
    timeline, seen, roster = Timeline(), dict[int, tuple[bool | None, str]](), Roster()
    names = tuple(f"n{index}" for index in range(len(owners)))
    for moment in range(-1, 6):
        for index, owner in enumerate(owners):
            given = [(-1, None, 0), *sorted(shapes[owner % len(shapes)], key=lambda sample: sample[0])]
            for number, (t, value, width) in enumerate(given):
                if t == moment:
                    seq = 10 * len(owners) * number + index
                    seen[seq] = value, f"{index}: {seq // (20 * len(owners))}"
                    add_node(timeline, names[index], float(t), seq, width)
        if delay is not None:
            known = moment - delay
            uids = [f"uid-n{index}" for index in behind]
            timeline.currency.add("nodes", Currency(known, uids, complete=known - 1), float(moment))

        def member(name: str) -> Member:
            return Member(name, "nodes", timeline.nodes.get(name), lambda version: seen[version.seq])

        grown, fresh = (each.subjects(timeline, names, member) for each in (roster, Roster()))
        found = SubjectSet("", grown, quantifier, 1, 2)
        assert grown == fresh
        assert combine(found) == combine(replace(found, subjects=fresh)) == combine(alone(found))
        for at in (moment - 2.0, moment - 0.5, float(moment), moment + 1.0):
            samples = [(each.name, each.signal.at(at)) for each in grown]
            late = {name for name, sample in samples if sample.is_lag and sample.seq is None}
            assert [s for s in grown.known_at(at) if s[0] not in late] == [s for s in samples if s[0] not in late]


def add_node(timeline: Timeline, name: str, t: float, seq: int, width: int) -> None:
    """A version of a Node, received at ``t``; it happened up to ``width`` seconds before."""
    history = timeline.nodes.setdefault(name, History())
    node = Node(metadata=NodeMetadata(name=name, uid=f"uid-{name}"))
    earliest = t - width if width else float("inf")
    history.append(Version(t, seq, node, earliest=earliest, order=seq if width else 0))
