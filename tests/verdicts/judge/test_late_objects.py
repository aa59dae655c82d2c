"""Objects that came and went while a watch was late: no verdict on a set is said before it is certain that none did."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaos.cluster.observers import currency
from chaos.cluster.observers.currency import CurrencyProof, ObjectStore
from chaos.cluster.reads import ConsistentRead, EventReplay
from chaos.cluster.watch_codec import WatchCodec
from chaos.core.kube import RESOURCES
from chaos.core.recording import ADDED, DELETED, LAG_BOUND, RecordingEntry
from chaos.core.verdict import Status
from tests.kit.misbehaving import ManualClock
from tests.kit.story import HELD, INCONCLUSIVE, PENDING, T0, VIOLATED, Story, ask

ANCHOR, END, FAR = 10.0, 30.0, 100.0
SET = "{assert: pods, with: {namespace: demo, count: {%s, phase: [Running], gone: false}}, after: stop, %s: {for: 20s}}"
QUESTIONS = [SET % ("most: 1", "always"), SET % ("least: 2", "never")]
AT_ONCE = SET.replace("%s: {for: 20s}", "within: 20s") % "least: 3"
_codec = WatchCodec(RESOURCES["pods"])


@dataclass(frozen=True, slots=True)
class Life:
    """A pod that is created and perhaps deleted; the watch delivers its events ``delay`` seconds later."""

    created: float
    deleted: float
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class _Change:
    t: float
    version: int
    uid: str
    is_deletion: bool
    due: float


@dataclass
class World:
    """A store, a late watch of it, and the real proofs of how current the watch is. One pod exists all the time."""

    lives: Sequence[Life]
    bookmarks: Sequence[float] = ()  # of the watch itself
    replays: Sequence[float] = ()  # begins
    lines: list[RecordingEntry] = field(default_factory=list)
    clock: ManualClock = field(default_factory=lambda: ManualClock(T0))

    def __post_init__(self) -> None:
        self._sink = self.lines.append
        self._store = ObjectStore("pods", self._sink)
        self._proof = CurrencyProof("pods", self.clock, self._sink, self._store.known)
        ends = [(t, uid, is_end) for uid, life in enumerate(self.lives) for is_end, t in self._moments(life)]
        self._changes = [
            _Change(t, self._version(t) - 9 + uid, f"p{uid}", is_end, t + self.lives[uid].delay)
            for t, uid, is_end in sorted(ends)
        ]

    @staticmethod
    def _moments(life: Life) -> list[tuple[bool, float]]:
        return [(False, life.created), *([(True, life.deleted)] if life.deleted < FAR else [])]

    def recorded(self, until: float) -> list[RecordingEntry]:
        """What is recorded until then, with a consistent read every second."""
        todo: list[tuple[float, int, Callable[[], None]]] = []
        numbers = count()
        self._list()

        def plan(t: float, job: Callable[[], None]) -> None:
            heapq.heappush(todo, (t, next(numbers), job))

        for change in self._changes:
            plan(change.due, partial(self._deliver, change))
        for t in self.bookmarks:
            plan(self._all_delivered(t), partial(self._proof.reach, str(self._version(t))))

        def replay(bookmark: float) -> None:
            plan(self._all_delivered(bookmark), partial(self._proof.expect, self._replay(bookmark)))

        for t in self.replays:
            plan(t, partial(replay, t + 1.0))
        for second in range(1, int(FAR)):
            plan(float(second), self._read)
        while todo and todo[0][0] <= until:
            t, _, job = heapq.heappop(todo)
            self.clock.advance(T0 + t - self.clock.now())
            job()
        return self.lines

    def _all_delivered(self, happened_by: float) -> float:
        """A bookmark is not ahead of the events before it."""
        return max([happened_by, *(c.due for c in self._changes if c.t <= happened_by)])

    @staticmethod
    def _version(t: float) -> int:
        """That of the store: other resources change all the time."""
        return 100 + round(t * 1000)

    def _alive(self, t: float) -> dict[str, str]:
        alive = {"base": "100"}
        for change in (c for c in self._changes if c.t <= t):
            alive.pop(change.uid, None)
            alive |= {} if change.is_deletion else {change.uid: str(change.version)}
        return alive

    def _list(self) -> None:
        self._store.apply_list_item(_codec.decode_object(msgspec.Raw(self._pod("base", 100))), T0)
        self._proof.restart(ConsistentRead(T0, "100", {"base": "100"}))

    def _read(self) -> None:
        now = self.clock.now() - T0
        read = ConsistentRead(T0 + now, str(self._version(now)), self._alive(now))
        self._proof.prove(read)

    def _deliver(self, change: _Change) -> None:
        obj = _codec.decode_object(msgspec.Raw(self._pod(change.uid, change.version)))
        self._store.apply_event(DELETED if change.is_deletion else ADDED, obj, self.clock.now())

    def _replay(self, bookmark: float) -> EventReplay:
        """What came after the version that is complete now."""
        since = int(self._proof.complete_version)
        sent = {
            c.uid: None if c.is_deletion else str(c.version)
            for c in self._changes
            if c.version > since and c.t <= bookmark
        }
        return EventReplay(str(self._version(bookmark)), sent)

    def _pod(self, uid: str, version: int) -> bytes:
        metadata = {"name": uid, "namespace": "demo", "uid": uid, "resourceVersion": str(version)}
        return msgspec.json.encode({"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})

    def truth(self) -> Status:
        """Whether there was never a second pod from the anchor to the end."""
        return VIOLATED if any(x.created <= END and x.deleted > ANCHOR for x in self.lives) else HELD

    def at_once(self) -> Status:
        """Whether there were two pods besides the first at any moment from the anchor to the end.

        Of two changes at one moment, the store has an order: after the first, a moment has passed.
        """
        alive: set[str] = set()
        most = 0
        for change in self._changes:
            if ANCHOR < change.t <= END:
                most = max(most, len(alive))
            if change.t <= END:
                (alive.discard if change.is_deletion else alive.add)(change.uid)
        return HELD if max(most, len(alive)) >= 2 else VIOLATED


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(currency, "_GRACE", 0.0)


def verdicts(world: World, at: float, live: bool, questions: Sequence[str] = QUESTIONS) -> Iterator[Status]:
    for question in questions:
        story = Story()
        story.lines += [line for line in world.lines if line.t <= T0 + at]
        yield ask(story, question, end=at, live=live).status


halves = st.integers(0, 80).map(lambda n: n / 2 + 0.2)  # never at the moments that decide, nor at those of reads
lives = st.builds(
    lambda begin, length, delay: Life(begin, begin + length, delay),
    halves,
    st.sampled_from([0.1, 0.4, 0.7, 1.5, 6.0, 20.0, FAR]),
    st.one_of(st.just(0.0), st.floats(0.0, 45.0)),
)
moments = st.lists(st.integers(0, 90).map(lambda n: n + 0.4), max_size=4)


@given(st.lists(lives, max_size=4), moments, moments, st.lists(st.integers(11, 95), min_size=1, max_size=4))
def test_what_is_said_of_a_set_is_true(
    lived: list[Life], bookmarks: list[float], replays: list[float], evaluated: list[int]
) -> None:
    world = World(lived, bookmarks, replays)
    world.recorded(FAR)
    last = list(verdicts(world, FAR - 1, live=False))
    for at in evaluated:
        for status in verdicts(world, at, live=False):
            assert status in (world.truth(), INCONCLUSIVE), at
        for status, final in zip(verdicts(world, at, live=True), last, strict=True):
            assert status in (world.truth(), PENDING if at < END + LAG_BOUND else INCONCLUSIVE, final), at


@given(st.lists(lives, min_size=1, max_size=4), moments, moments, st.lists(st.integers(11, 95), min_size=1, max_size=4))
@example([Life(16.2, 16.3), Life(10.2, 16.2)], [], [], [17])  # one is made just before the other is gone
@example([Life(10.2, 16.2), Life(16.2, 16.3)], [], [], [17])  # just after
def test_what_is_said_of_pods_at_one_moment_is_true(
    lived: list[Life], bookmarks: list[float], replays: list[float], evaluated: list[int]
) -> None:
    world = World(lived, bookmarks, replays)
    world.recorded(FAR)
    for at in evaluated:
        for live in (True, False):
            (status,) = verdicts(world, at, live, [AT_ONCE])
            assert status in (world.at_once(), PENDING if live else INCONCLUSIVE, INCONCLUSIVE), at


def test_of_a_pod_that_reads_did_not_list_its_end_may_be_missing() -> None:
    """It was deleted between two reads, before the second was created; its end is received after its creation."""
    world = World([Life(12.2, 12.7, 28.0), Life(20.2, FAR)], replays=[60.0])
    world.recorded(FAR)
    assert list(verdicts(world, 40.5, live=True, questions=[AT_ONCE])) == [PENDING]
    assert list(verdicts(world, 70, live=True, questions=[AT_ONCE])) == [world.at_once()] == [VIOLATED]


@given(st.lists(lives.filter(lambda life: life.deleted + life.delay < 60 or life.deleted >= FAR), max_size=4))
def test_once_everything_was_received_it_is_said(lived: list[Life]) -> None:
    """Except of a pod that was received late and may have been there just before or after the time in question."""
    world = World(lived, replays=[96.0])
    world.recorded(FAR)
    found = list(verdicts(world, 99, live=False))
    if not any(life.delay for life in lived):
        assert found == [world.truth()] * 2


BRIEF = Life(12.2, 12.7, 38.0)  # within a second, between two reads, and delivered at 50.2 and 50.7


@pytest.mark.parametrize(
    ("what", "world", "at", "status"),
    [
        ("reads alone prove nothing about it", World([BRIEF]), 45, PENDING),
        ("a replay knows it, and waits for it", World([BRIEF], replays=[31.0]), 45, PENDING),
        ("a bookmark comes after it", World([BRIEF], bookmarks=[31.0]), 45, PENDING),
        ("delivered", World([BRIEF], replays=[31.0]), 54, VIOLATED),
        ("delivered, before a bookmark", World([BRIEF], bookmarks=[31.0]), 54, VIOLATED),
        ("delivered, and nothing says that it was all", World([BRIEF]), 54, VIOLATED),
        ("there was none, and reads do not know", World([]), 45, PENDING),
        ("there was none, as a replay shows", World([], replays=[30.4]), 33, HELD),
        ("there was none, as a bookmark shows", World([], bookmarks=[30.4]), 33, HELD),
        ("the replay began too early to show it", World([], replays=[28.4]), 33, PENDING),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pod_that_came_and_went_within_a_lag(what: str, world: World, at: float, status: Status) -> None:
    world.recorded(FAR)
    assert list(verdicts(world, at, live=True)) == [status] * 2, what
