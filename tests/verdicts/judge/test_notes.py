"""Notes of a result: clocks that are off, and machines whose address changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.time_bounds import ClockOffset, ClockOffsetBounds
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from chaos.verdicts.judge.notes import address_changes, clock_notes
from tests.kit.real_runs import run_lines
from tests.kit.story import RECORDINGS, Story, experiment, plugin_registry

FACT = "machine-addresses"
MOVED = "n1 is now at 172.18.0.5 (was 172.18.0.3)"


def renewals(node: str, offsets: list[float], late: float = 0.0) -> Story:
    """Renewals every ten seconds by a clock that is ``offsets`` ahead, received ``late`` seconds later."""
    story = Story()
    for index, ahead in enumerate(offsets):
        story.lease(index * 10 + late, node, index * 10 + ahead)
    return story


@pytest.mark.parametrize(
    ("offsets", "late", "text"),
    [
        ([0.0] * 8, 0.02, ""),
        ([0.0] * 8, 0.9, ""),
        ([3.0] * 8, 0.02, "the clock of node n1 is at least 3.0 s ahead of the clock of this run, by its Lease"),
        ([3.0], 0.02, "at least 3.0 s ahead"),
        ([3.0] * 8, 0.6, "at least 2.4 s ahead"),
        ([3.0] * 8, 2.6, ""),  # perhaps 0.4 s
        ([-5.0] * 8, 0.02, ""),  # or each of them arrived late
        ([0.0] * 8 + [60.0] * 8, 0.02, "60.0 s ahead of"),
        ([0.0, -9.0, 0.0, 0.0, -9.0, 0.0, 0.0, 0.0], 0.02, ""),  # some arrived late
    ],
)
def test_clock_offsets_from_leases(offsets: list[float], late: float, text: str) -> None:
    notes = clock_notes(renewals("n1", offsets, late).timeline())
    assert len(notes) == bool(text)
    assert all(text in note and note.endswith("its timestamps are off by as much") for note in notes)


@pytest.mark.parametrize(
    ("offsets", "texts"),
    [
        ({"host n1": {"seconds": 0.2, "within": 0.1}}, []),
        ({"host n1": {"seconds": 1.4, "within": 0.5}}, []),  # may be less than the bound
        (
            {"the API server": {"seconds": -2.5, "within": 0.25}},
            ["the API server is 2.5 s behind the clock of this run"],
        ),
        ({"Prometheus": {"seconds": 7.0, "within": 0.1}, "a": {"seconds": 2.0, "within": 0}}, ["Prometheus", "a is"]),
        ("0 (one clock)", []),
        ({"x": 3}, []),
    ],
)
def test_measured_offsets_in_meta(offsets: Any, texts: list[str]) -> None:
    notes = clock_notes(Story(clockOffsets=offsets).timeline())
    assert len(notes) == len(texts)
    assert all(text in note for text, note in zip(texts, notes, strict=True))


def test_measured_host_has_no_second_note() -> None:
    story = renewals("n1", [3.0] * 8)
    story.add(90, "meta", "clocks", {"clockOffsets": {"host n1": {"seconds": 3.0, "within": 0.0}}})
    (note,) = clock_notes(story.timeline())
    assert note.startswith("the clock of host n1 is 3.0 s ahead of")


def test_nodes_on_one_kernel_have_one_clock() -> None:
    timeline = build_timeline(read_recording(RECORDINGS / "05-power-cut.jsonl.gz"))
    offsets = list(timeline.currency.seconds_ahead.values())
    assert len(offsets) == 4
    assert all(abs(offset) < 0.3 for offset in offsets)
    assert clock_notes(timeline) == []


def test_late_renewals_are_no_offset_of_the_clock() -> None:
    """A busy cluster of containers on one kernel: five successive renewals of each node came 2.6 to 10.9 s late."""
    timeline = build_timeline(run_lines("eviction-rate-1"))
    offsets = list(timeline.currency.seconds_ahead.values())
    assert len(offsets) == 9
    assert all(-0.1 < offset < 0 for offset in offsets)
    assert clock_notes(timeline) == []


@given(st.floats(-50, 50), st.lists(st.floats(0, 60), min_size=1, max_size=20))
def test_no_delay_makes_a_clock_run_ahead(ahead: float, delays: list[float]) -> None:
    story = Story()
    for index, delay in enumerate(delays):
        story.lease(1000 + index * 10 + delay, "n1", 1000 + index * 10 + ahead)
    (found,) = build_timeline(sorted(story.lines, key=lambda line: line.t)).currency.seconds_ahead.values()
    assert found <= ahead + 1e-3
    assert found == pytest.approx(ahead - min(delays), abs=1e-3)


@given(st.floats(-100, 100), st.lists(st.tuples(st.floats(0, 50), st.floats(0, 0.5)), min_size=1, max_size=30))
def test_offset_from_readings_in_whole_seconds(ahead: float, readings: list[tuple[float, float]]) -> None:
    """Each reading is the second of the other clock at a moment between request and response."""
    bounds = ClockOffsetBounds()
    for at, took in readings:
        reading = float(int(1000 + at + took / 2 + ahead))
        bounds.add(reading - (1000 + at + took), reading + 1 - (1000 + at))
    offset = bounds.offset()
    assert offset is not None
    assert abs(offset.seconds - ahead) <= offset.within + 0.002
    assert offset.within <= 0.75 + 0.001


def test_clock_that_was_set_is_measured_again() -> None:
    bounds = ClockOffsetBounds()
    assert bounds.offset() is None
    bounds.add(-0.1, 0.1)
    bounds.add(59.9, 60.1)
    assert bounds.offset() == ClockOffset(60.0, 0.1)


def with_address(story: Story, t: float, *addresses: str) -> Story:
    """The Node object has the addresses, besides its name."""
    listed = [{"type": "Hostname", "address": "n1"}, *({"type": "InternalIP", "address": each} for each in addresses)]
    return story.add(t, "nodes", "MODIFIED", {"metadata": {"name": "n1", "uid": "n1"}, "status": {"addresses": listed}})


@pytest.mark.parametrize(
    ("what", "story", "changes"),
    [
        ("moved", Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.5"]), (MOVED,)),
        ("the same", Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.3"]), ()),
        ("one reading", Story().host(1, FACT, ["172.18.0.3"]), ()),
        ("no reading", Story(), ()),
        (
            "there and back",
            Story().host(1, FACT, ["172.18.0.3"]).host(5, FACT, ["172.18.0.5"]).host(9, FACT, ["172.18.0.3"]),
            (MOVED, "n1 is now at 172.18.0.3 (was 172.18.0.5)"),
        ),
        (
            "one of two",
            Story().host(1, FACT, ["172.18.0.3", "fc00::3"]).host(9, FACT, ["172.18.0.5", "fc00::3"]),
            (MOVED,),
        ),
        (
            "two of two",
            Story().host(1, FACT, ["172.18.0.3", "fc00::3"]).host(9, FACT, ["172.18.0.5", "fc00::5"]),
            ("n1 is now at 172.18.0.5 and fc00::5 (was 172.18.0.3 and fc00::3)",),
        ),
        ("one more", Story().host(1, FACT, ["a"]).host(9, FACT, ["a", "b"]), ("n1 is now at b",)),
        ("one less", Story().host(1, FACT, ["a", "b"]).host(9, FACT, ["a"]), ()),
        ("no list", Story().host(1, FACT, "a").host(9, FACT, {"b": 1}), ()),
        ("by the Node alone", with_address(with_address(Story(), 1, "172.18.0.3"), 9, "172.18.0.5"), (MOVED,)),
        ("a Node without addresses for a time", with_address(with_address(Story(), 1, "a").node(5, "n1"), 9, "a"), ()),
        (
            "the container before the Node",
            with_address(Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.5"]), 1, "172.18.0.9"),
            (MOVED,),
        ),
    ],
)
def test_changes(what: str, story: Story, changes: tuple[str, ...]) -> None:
    assert address_changes(story.timeline(20), ("n1", "n2")) == changes, what


def test_other_nodes_are_not_reported() -> None:
    story = Story().host(1, FACT, ["172.18.0.3"]).host(9, FACT, ["172.18.0.5"])
    assert address_changes(story.timeline(20), ("n2",)) == ()


def test_the_result_has_them_once() -> None:
    story = Story().done(10, "poweroff", step="stop").node(0, "n1")
    for t, address in enumerate(("172.18.0.3", "172.18.0.5", "172.18.0.3", "172.18.0.5")):
        story.host(t, FACT, [address])
    result = judge(experiment(), story.timeline(50), plugin_registry(), Options(bind={"victim": ("n1",)}))
    assert result.address_changes == (MOVED, "n1 is now at 172.18.0.3 (was 172.18.0.5)")
    assert [note for note in result.notes if "is now at" in note] == list(result.address_changes)
