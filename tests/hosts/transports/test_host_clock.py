"""What is known of a host's clock from questions and answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.hosts.transports.host_clock import HostClock

AT = 1000.5


class Host:
    """Its clock is ``ahead``; a question takes the first of a pair of ``ways`` to come, and the answer the second."""

    def __init__(self, ways: list[tuple[float, float]], ahead: list[float]) -> None:
        self.now, self._ways, self._ahead = 1000.0, ways, ahead
        self.asked = 0

    def ask(self, _: str) -> None:
        self.asked += 1
        self.now += self._ways[(self.asked - 1) % len(self._ways)][0]

    def line(self) -> str:
        told = self.now + self._ahead[min(self.asked, len(self._ahead)) - 1]
        self.now += self._ways[(self.asked - 1) % len(self._ways)][1]
        return f"{told:.6f}"

    def measured(self) -> HostClock:
        clock = HostClock(can_report=True)
        clock.measure(lambda: self.now, self.ask, self.line)
        return clock


delays = st.floats(0.0, 0.045)


@given(ways=st.lists(st.tuples(delays, delays), min_size=1), ahead=st.floats(-900.0, 1e5))
def test_an_instant_is_told_as_well_as_the_best_ways_allow(ways: list[tuple[float, float]], ahead: float) -> None:
    clock = Host(ways, [ahead]).measured()
    word, told = clock.clock_argument(AT).split()
    assert word == "go"
    known = min(way[0] for way in ways[:12]) + min(way[1] for way in ways[:12])
    assert abs(int(told) / 1e6 - (AT + ahead)) <= max(known, 0.002) / 2 + 1e-5


@pytest.mark.parametrize(
    ("ways", "ahead", "asked"),
    [
        ([(0.0005, 0.0005)], [0.0], 1),
        ([(0.02, 0.02)], [0.0], 12),
        ([(0.02, 0.02), (0.0005, 0.0005)], [3.0], 2),
    ],
    ids=["good at once", "never that good", "good the second time"],
)
def test_asked_until_it_is_good(ways: list[tuple[float, float]], ahead: list[float], asked: int) -> None:
    host = Host(ways, ahead)
    assert host.measured().clock_argument(AT) != "go\n"
    assert host.asked == asked


@pytest.mark.parametrize(
    ("ways", "ahead"),
    [([(0.08, 0.08)], [0.0]), ([(0.01, 0.01)], [0.0, 5.0]), ([(0.01, 0.01)], [0.0, -5.0])],
    ids=["too far away", "put ahead meanwhile", "put back meanwhile"],
)
def test_a_clock_that_is_not_known_begins_at_once(ways: list[tuple[float, float]], ahead: list[float]) -> None:
    assert Host(ways, ahead).measured().clock_argument(AT) == "go\n"


def test_not_asked_is_not_known() -> None:
    clock, host = HostClock(can_report=False), Host([(0.0, 0.0)], [0.0])
    assert not clock.measure(lambda: host.now, host.ask, host.line)
    assert (host.asked, clock.clock_argument(AT)) == (0, "go\n")


def test_without_an_instant_at_once() -> None:
    assert Host([(0.0, 0.0)], [0.0]).measured().clock_argument(None) == "go\n"


@pytest.mark.parametrize("said", ["", "no time"])
def test_an_answer_that_is_no_time(said: str) -> None:
    clock = HostClock(can_report=True)
    assert not clock.measure(lambda: AT, lambda _: None, lambda: said)
    assert clock.read_start_time(lambda: "12.5") == 12.5


def test_an_answer_that_comes_too_late_is_not_the_begin() -> None:
    clock, lines = HostClock(can_report=True), iter(["11.5", "12.5"])
    assert not clock.measure(lambda: AT, lambda _: None, lambda: None)
    assert clock.read_start_time(lambda: next(lines)) == 12.5
