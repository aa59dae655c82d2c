"""What is packed comes back unchanged, whoever asks, and when.

Sharing changes no object, and holds equal parts once.
"""

from __future__ import annotations

import math
import os
import sys
import weakref
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from chaos.core.decode import decode
from chaos.core.history import Entry, History, Version
from chaos.core.kube import Event, Metadata, Node, Pod
from chaos.core.packing import Block, Packing, Sharing
from chaos.core.store.recording import read_recording
from chaos.core.timeline import Timeline
from tests.kit.story import Story

EXAMPLES = int(os.environ.get("NODEFALL_EXAMPLES", "50"))
RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.jsonl.gz"))
HISTORIES = (
    *("nodes", "pods", "leases", "workloads", "jobs", "poddisruptionbudgets", "endpointslices"),
    *("persistentvolumeclaims", "volumeattachments"),
)
POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "demo", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "tolerations": [{"key": "k", "operator": "Exists"}], "containers": [{"name": "app"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def filled(path: Path, pause: float) -> tuple[Timeline, list[Entry]]:
    """A timeline that packs after ``pause``, and the entries that it was given."""
    timeline, entries = Timeline(pause=pause, few=0), []
    for line in read_recording(path):
        if entry := decode(line, timeline.next_seq()):
            timeline.add(entry)
            entries.append(entry)
    return timeline, entries


def is_packed(timeline: Timeline) -> bool:
    return any(history.is_packed for kind in HISTORIES for history in getattr(timeline, kind).values())


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_a_timeline_is_the_same(path: Path) -> None:
    packed, entries = filled(path, 0)
    plain, _ = filled(path, math.inf)
    assert is_packed(packed)
    assert packed.entries == entries
    assert packed.entries[3:] == entries[3:]
    assert packed.entries[::-7] == entries[::-7]
    assert [packed.entries[seq] for seq in range(0, len(entries), 11)] == entries[::11]
    assert is_packed(packed)  # who reads all entries once leaves the rest as it is
    assert not is_packed(plain)
    for kind in HISTORIES:
        mine, others = getattr(packed, kind), getattr(plain, kind)
        assert list(mine) == list(others)
        for key, history in mine.items():
            other = others[key]
            assert (history.first, history.last) == (other.first, other.last), key
            times = [other.first_time - 1, *(version.t for version in other)]
            assert [history.at(t) for t in times] == [other.at(t) for t in times], key
            assert [history.after(t) for t in times] == [other.after(t) for t in times], key
            assert (history.versions, len(history)) == (other.versions, len(other)), key
    assert list(packed.events) == list(plain.events)
    names = {event.involved_object.name for _, event in plain.events if event.involved_object}
    assert all(packed.events.about(name) == plain.events.about(name) for name in names)


def version(number: int, *, is_deleted: bool = False) -> Version[Pod]:
    pod = Pod(Metadata(f"pod-{number % 3}", "demo", "u1", str(number)))
    return Version(float(number), 2 * number, pod, is_deleted, False, number - 0.5, number, number - 0.1)


ACTIONS = st.lists(st.sampled_from(["append", "append", "delete", "replace", "pack", "ask", "peek", "at"]), max_size=40)


@settings(max_examples=4 * EXAMPLES)
@given(ACTIONS)
def test_a_history_answers_as_a_list(actions: list[str]) -> None:
    packing = Packing(0, 0)
    history: History[Pod] = History(packing.packer(Version[Pod]))
    expected: list[Version[Pod]] = []
    for number, action in enumerate(["append", *actions], 1):
        if action in ("append", "delete"):
            expected.append(version(number, is_deleted=action == "delete"))
            history.append(expected[-1])
        elif action == "replace":
            index = number % len(expected)
            expected[index] = structs.replace(expected[index], latest=0.0)
            history.replace(index, expected[index])
        elif action == "pack":
            history.pack()
        elif action == "ask":
            assert history.versions == expected
        elif action == "peek":
            assert history.peek() == expected
            assert history.peek_last() == expected[-1]
            assert history.is_deleted == expected[-1].is_deleted
        else:
            middle = expected[len(expected) // 2]
            assert history.at(middle.t) == middle == history.version(len(expected) // 2)
            assert history.after(middle.t) == expected[len(expected) // 2 + 1 :]
        for place, each in enumerate(expected):
            found = history.objects_from(each.seq)
            assert found
            assert found == [v.object for v in expected[place : place + len(found)]]
        assert (history.first, history.last, history.first_seq) == (expected[0], expected[-1], expected[0].seq)


def test_only_what_no_one_asks_for_is_packed() -> None:
    packing, states = Packing(10, 0), list[bool]()
    history: History[Pod] = History(packing.packer(Version[Pod]))
    history.append(version(1))
    history.append(version(2))
    for t, is_requested in ((9, True), (10, False), (20, True), (29, False), (40, False), (50, False)):
        packing.advance(t)
        states.append(history.is_packed)
        if is_requested:
            assert len(history.versions) == 2
            states.append(history.is_packed)
    assert states == [False, False, False, True, False, False, False, True]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_parts_are_found_in_full_blocks_and_in_the_open_one(sizes: list[int], random: Random) -> None:
    packer = Packing().packer(Version[Pod])
    lists = [[version(number) for number in range(size)] for size in sizes]
    packed = [packer.pack(each) for each in lists]
    for index in random.sample(range(len(lists)), len(lists)) * 2:
        assert packer.unpack(*packed[index]) == lists[index]


def test_a_block_is_compressed_once_it_is_full_and_freed_with_its_last_part() -> None:
    packer = Packing().packer(Version[Pod])
    first = packer.pack([version(number) for number in range(2000)])
    second = packer.pack([version(1)])
    assert first[0].is_full
    assert first[0] is not second[0]
    assert sys.getsizeof(first[0]._packed) < len(first[0].unpack()) / 3
    assert len(packer.unpack(*first)) == 2000
    assert len(packer.unpack(*packer.pack([version(2)]))) == 1
    block = weakref.ref(first[0])
    del first
    assert block() is not None  # the one that was unpacked last is kept: more may be asked of it
    other = packer.pack([version(number) for number in range(2000)])
    packer.unpack(*other)
    assert block() is None


def test_what_is_read_again_and_again_does_not_add_up() -> None:
    """A part that is packed again leaves its block, which is freed once no one needs it."""
    packing, blocks = Packing(0, 0), list[weakref.ref[Block]]()
    histories: list[History[Pod]] = [History(packing.packer(Version[Pod])) for _ in range(30)]
    for history in histories:
        for number in range(40):
            history.append(version(number))
    for round_ in range(1, 20):
        for history in histories:
            history.pack()
            history.pack()
            blocks.append(weakref.ref(history._packed[1]))
            assert len(history.versions) == 40
        assert len({block() for block in blocks} - {None}) <= 6, round_


def test_a_short_timeline_is_not_packed_and_a_long_one_bit_by_bit() -> None:
    packing, states = Packing(0, 3), list[int]()
    histories: list[History[Pod]] = []
    for number in range(1, 7):
        histories.append(History(packing.packer(Version[Pod])))
        for part in (2 * number, 2 * number + 1):
            histories[-1].append(version(part))
    for t in range(1, 7):
        packing.advance(t)
        states.append(sum(history.is_packed for history in histories))
    assert states == [0, 0, 0, 2, 4, 6]


def test_events_are_packed_and_found() -> None:
    story = Story()
    for number in range(400):
        story.event(number / 10, "Odd" if number % 2 else "Even", f"n{number % 2}")
    timeline = Timeline(pause=0, few=0)
    for line in story.lines:
        entry = decode(line, timeline.next_seq())
        assert entry is not None
        timeline.add(entry)
    assert [entry.seq for entry, _ in timeline.events.with_reason("Odd")] == list(range(2, 401, 2))
    assert {event.reason for _, event in timeline.events.about("n0")} == {"Even"}
    assert isinstance(timeline.entries[5].object, Event)
    assert timeline.entries[5].object == timeline.events[4][1]
    assert timeline.events[-1][0] == timeline.entries[-1]


def test_a_node_that_could_not_be_decoded_is_not_lost() -> None:
    packing = Packing(0, 0)
    history: History[Node] = History(packing.packer(Version[Node]))
    for number in (1, 2):
        history.append(Version(float(number), number, Node()))
    packing.advance(math.inf)
    assert [v.object for v in history] == [Node(), Node()]


def pod(**metadata: str) -> Pod:
    return msgspec.convert({**POD, "metadata": {**POD["metadata"], **metadata}}, Pod)


def test_versions_share_what_is_equal() -> None:
    sharing, first, second = Sharing(), pod(), pod(resourceVersion="2")
    sharing.share(first, None)
    sharing.share(second, first)
    assert (first, second) == (pod(), pod(resourceVersion="2"))
    assert second.spec is first.spec
    assert second.status is first.status
    assert second.metadata.labels is first.metadata.labels


def test_pods_of_a_set_share_what_they_have_in_common() -> None:
    sharing, first, other = Sharing(), pod(), pod(name="b", uid="v")
    sharing.share(first, None)
    sharing.share(other, None)
    assert other == pod(name="b", uid="v")
    assert first.spec is not None
    assert other.spec is not None
    assert other.spec is not first.spec
    assert other.spec.tolerations is first.spec.tolerations
    assert other.metadata.labels is first.metadata.labels


def test_what_differs_is_not_shared() -> None:
    sharing = Sharing()
    before = msgspec.convert({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}, Node)
    now = msgspec.convert({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}}, Node)
    sharing.share(before, None)
    sharing.share(now, before)
    assert now.status is not None
    assert now.status.capacity == {"cpu": "2"}
    assert before.status is not None
    assert before.status.capacity == {"cpu": "1"}
