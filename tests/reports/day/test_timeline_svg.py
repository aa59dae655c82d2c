"""The drawn timeline of a day: a lane for each cluster, round times, whatever the clocks said."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from chaos.gameday.state import Halt, PastWait
from chaos.reports.day.timeline_svg import _Axis, render_timeline
from tests.kit.recorded_days import BEGIN, pending, ran, record, skipped, view


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [(1, 2), (9, 10), (60, 5), (3600, 5), (86400, 9), (30 * 86400, 5), (365 * 86400, 13)],
)
def test_ticks_are_few_and_round(seconds: int, ticks: int) -> None:
    found = _Axis(BEGIN, BEGIN + seconds).ticks()
    assert abs(len(found) - ticks) <= 1
    assert all(BEGIN <= t <= BEGIN + seconds for t in found)
    assert len({later - earlier for earlier, later in pairwise(found)}) <= 1


def test_a_lane_for_each_cluster_with_what_happened_there() -> None:
    drawn = render_timeline(
        view(
            record(
                ran("a"),
                ran("b", "violated", at=BEGIN + 300.0),
                skipped("c", "gate"),
                pending("d"),
                halts=(Halt("ada", BEGIN + 310.0, "pager"),),
                waits=(PastWait("the pause", ("at least 3m",), BEGIN + 120.0, BEGIN + 300.0), PastWait("x", (), BEGIN)),
            ),
            record(ran("a"), cluster="prod"),
        )
    )
    assert re.findall(r'class="(run [a-z]+|wait|halted|date)"', drawn) == [
        *("date", "run held", "date", "wait", "wait", "run held", "run violated", "halted")
    ]
    assert "<title>waits for the pause: at least 3m</title>" in drawn
    assert ">10:00:00</text>" not in drawn
    assert ">09:00:00</text>" in drawn


@pytest.mark.parametrize(
    ("begun", "ended"), [(BEGIN, BEGIN), (BEGIN, BEGIN - 50.0), (BEGIN, 1e300), (-1e300, BEGIN), (BEGIN, None)]
)
def test_clocks_that_were_wrong_do_no_harm(begun: float, ended: float | None) -> None:
    drawn = render_timeline(view(record(ran("a", begun=begun, ended=ended))))
    assert all(-1.0 <= float(x) <= 1001.0 for x in re.findall(r' x[12]?="([^"]*)"', drawn))


def test_a_long_name_is_cut_off_on_its_bar() -> None:
    drawn = render_timeline(view(record(ran("a" * 63), ran("b", at=BEGIN + 300.0), ran("c" * 63, at=BEGIN + 9000.0))))
    assert re.findall(r'class="on-bar">([^<]*)<', drawn) == ["", "", ""]
    drawn = render_timeline(view(record(ran("a" * 200), ran("b", at=BEGIN + 120.0))))
    assert re.findall(r'class="on-bar">([^<]*)<', drawn) == ["a" * 58 + "…", "b"]


def test_nothing_is_drawn_of_a_day_without_times() -> None:
    assert render_timeline(view(record(pending("a")))) == ""
