"""The data of a live page after any messages is that of the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.recording import ProbeResult
from chaos.core.result import RunResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import Status, ValueLimit, Verdict
from chaos.reports.run.page import live_page, live_parts
from chaos.reports.run.page.lanes import lanes
from chaos.reports.run.page.live_page import LivePage
from chaos.reports.run.page.page_data import page_data
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.live_client import LiveClient, report_shown
from tests.kit.small_timelines import node, pod, timeline_of
from tests.kit.story import RECORDINGS, manifests, plugin_registry, shipped

Moment = tuple[Entry, ...]


def entries_of(number: str) -> list[Entry]:
    path: Path = next(RECORDINGS.glob(f"{number}-*.gz"))
    return list(build_timeline(read_recording(path)).entries)


def expected(result: RunResult, timeline: Timeline) -> dict[str, Any]:
    return report_shown(page_data(result, timeline, lanes(timeline, [n for ns in result.targets.values() for n in ns])))


def judged(timeline: Timeline, name: str, steps: dict[str, str]) -> RunResult:
    experiment = shipped(name)
    options = Options(namespace="demo", manifests=manifests(experiment), steps=steps)
    return judge(experiment, timeline, plugin_registry(), options, live=True)


def check(entries: Sequence[Entry], cuts: Sequence[int], name: str, steps: dict[str, str]) -> None:
    """Whoever has followed the page from the first cut, and whoever opens it now, sees what the report would show."""
    page, timeline, follower = LivePage(), Timeline(), LiveClient()
    for first, end in pairwise([0, *sorted({*cuts, len(entries)})]):
        for entry in entries[first:end]:
            page.add(entry)
            timeline.add(entry)
        timeline.end += 0.5
        result = judged(timeline, name, steps)
        follower.take(page.update(result, timeline.end))
        newcomer = LiveClient()
        newcomer.take(page.whole(result))
        assert follower.shown() == expected(result, timeline)
        assert newcomer.shown() == follower.shown()


@pytest.mark.parametrize(
    ("number", "name", "steps"),
    [
        ("01", "graceful-poweroff", {}),
        ("05", "graceful-poweroff", {"power-off": "power-cut"}),
        ("08", "graceful-poweroff", {}),
        ("25", "graceful-poweroff", {}),
    ],
)
def test_increments_add_up_to_the_data_of_the_report(number: str, name: str, steps: dict[str, str]) -> None:
    entries = entries_of(number)
    check(entries, range(1, len(entries), max(1, len(entries) // 12)), name, steps)


@given(st.lists(st.integers(1, 2000), max_size=4))
@settings(max_examples=10, deadline=None)
def test_wherever_the_messages_are_cut(cuts: list[int]) -> None:
    entries = entries_of("01")
    check(entries, [1 + cut % len(entries) for cut in cuts], "graceful-poweroff", {})


def small(**changes: Any) -> RunResult:
    made = RunResult(1, "r", "e", "t", Status.HELD, 0, "", False, "", "", 90, 300, {}, (), (), ())
    return RunResult(**{name: getattr(made, name) for name in made.__struct_fields__} | changes)


def test_nothing_is_sent_again(recorded: tuple[RunResult, Timeline]) -> None:
    result, timeline = recorded
    page = LivePage()
    for entry in timeline.entries:
        page.add(entry)
    page.update(result, timeline.end)
    message = json.loads(page.update(result, timeline.end + 1))
    assert (message["lanes"], message["rows"], message["gone"], message["charts"]) == ([], [], [], None)
    assert not {"steps", "undo", "verdicts", "blinds"} & set(message)
    assert message["now"] == message["window"][1] == json.loads(page.whole(result))["now"]


def test_only_the_lane_that_changed_is_sent_and_a_pod_that_gets_a_node_moves() -> None:
    page, follower = LivePage(), LiveClient()
    timeline = timeline_of(
        *((100, "nodes", "ADDED", node("True", name=name)) for name in ("n1", "n2")),
        (101, "pods", "ADDED", pod("Running", name="a", uid="u1")),
        (102, "pods", "ADDED", pod("Pending", name="b", uid="u2", on=None)),
    )
    for entry in timeline.entries:
        page.add(entry)
    follower.take(page.update(small(), 103))
    assert follower.order == ["n1", "u1", "n2", "u2"]
    after = timeline_of((104, "pods", "MODIFIED", pod("Running", name="b", uid="u2")))
    page.add(Entry(4, 104, "pods", "MODIFIED", after.entries[0].object))
    message = page.update(small(), 104)
    assert len(json.loads(message)["lanes"]) == 1
    follower.take(message)
    assert follower.order == ["n1", "u1", "u2", "n2"]
    assert follower.shown() == expected(small(), page.timeline)


def test_a_limit_that_comes_later_is_sent_without_the_points() -> None:
    page, follower = LivePage(), LiveClient()
    for entry in timeline_of((100, "probe", "shop", ProbeResult(True, 200, "", 0.05))).entries:
        page.add(entry)
    follower.take(page.update(small(), 101))
    limit = ValueLimit("probe", "shop", "latency", "at-most", 0.5)
    limited = small(hypothesis=(Verdict("v", "endpoint-available", Status.PENDING, "", limits=(limit,)),))
    message = page.update(limited, 102)
    assert [chart["at"] for chart in json.loads(message)["charts"]] == [[], []]
    follower.take(message)
    assert [chart["bounds"] for chart in follower.charts] == [[["ok", 1.0]], [["limit", 500.0]]]
    assert follower.shown() == expected(limited, page.timeline)
    assert json.loads(page.update(limited, 103))["charts"] is None


def test_a_row_that_late_evidence_pushes_out_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_parts, "MAX_OBSERVATIONS", 3)
    monkeypatch.setattr("chaos.reports.run.page.page_data.MAX_OBSERVATIONS", 3)
    entries = entries_of("01")
    check(entries, range(1, len(entries), len(entries) // 6), "graceful-poweroff", {})


def test_the_contract_names_every_key(recorded: tuple[RunResult, Timeline]) -> None:
    result, timeline = recorded
    page = LivePage()
    for entry in timeline.entries:
        page.add(entry)
    message = json.loads(page.update(result, timeline.end))
    for name in message:
        assert name in str(live_page.__doc__), name
