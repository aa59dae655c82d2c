"""Bounds of a host's clock, from requests and replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.machines.transports.script import HostClock

AT = 1000.5


class Host:
    """A host whose clock is ``ahead``; a request takes the first of each pair of ``delays``, its reply the second."""

    def __init__(self, delays: list[tuple[float, float]], ahead: list[float]) -> None:
        self.now, self._delays, self._ahead = 1000.0, delays, ahead
        self.requests = 0

    def send(self, _: str) -> None:
        self.requests += 1
        self.now += self._delays[(self.requests - 1) % len(self._delays)][0]

    def read_line(self) -> str:
        host_time = self.now + self._ahead[min(self.requests, len(self._ahead)) - 1]
        self.now += self._delays[(self.requests - 1) % len(self._delays)][1]
        return f"{host_time:.6f}"

    def measured(self) -> HostClock:
        clock = HostClock(can_report=True)
        clock.measure(lambda: self.now, self.send, self.read_line)
        return clock


delay = st.floats(0.0, 0.045)


@given(delays=st.lists(st.tuples(delay, delay), min_size=1), ahead=st.floats(-900.0, 1e5))
def test_an_instant_is_as_exact_as_the_shortest_delays_allow(delays: list[tuple[float, float]], ahead: float) -> None:
    clock = Host(delays, [ahead]).measured()
    verb, instant = clock.clock_argument(AT).split()
    assert verb == "go"
    width = min(pair[0] for pair in delays[:12]) + min(pair[1] for pair in delays[:12])
    assert abs(int(instant) / 1e6 - (AT + ahead)) <= max(width, 0.002) / 2 + 1e-5


@pytest.mark.parametrize(
    ("delays", "ahead", "requests"),
    [
        ([(0.0005, 0.0005)], [0.0], 1),
        ([(0.02, 0.02)], [0.0], 12),
        ([(0.02, 0.02), (0.0005, 0.0005)], [3.0], 2),
    ],
    ids=["narrow at once", "never narrow", "narrow at the second request"],
)
def test_requests_are_sent_until_the_bounds_are_narrow(
    delays: list[tuple[float, float]], ahead: list[float], requests: int
) -> None:
    host = Host(delays, ahead)
    assert host.measured().clock_argument(AT) != "go\n"
    assert host.requests == requests


@pytest.mark.parametrize(
    ("delays", "ahead"),
    [([(0.08, 0.08)], [0.0]), ([(0.01, 0.01)], [0.0, 5.0]), ([(0.01, 0.01)], [0.0, -5.0])],
    ids=["too far away", "set ahead meanwhile", "set back meanwhile"],
)
def test_with_an_unknown_clock_the_command_starts_at_once(
    delays: list[tuple[float, float]], ahead: list[float]
) -> None:
    assert Host(delays, ahead).measured().clock_argument(AT) == "go\n"


def test_without_requests_the_clock_is_unknown() -> None:
    clock, host = HostClock(can_report=False), Host([(0.0, 0.0)], [0.0])
    assert not clock.measure(lambda: host.now, host.send, host.read_line)
    assert (host.requests, clock.clock_argument(AT)) == (0, "go\n")


def test_without_an_instant_at_once() -> None:
    assert Host([(0.0, 0.0)], [0.0]).measured().clock_argument(None) == "go\n"


@pytest.mark.parametrize("reply", ["", "no time"])
def test_a_reply_that_is_no_time(reply: str) -> None:
    clock = HostClock(can_report=True)
    assert not clock.measure(lambda: AT, lambda _: None, lambda: reply)
    assert clock.read_start_time(lambda: "12.5") == 12.5


def test_a_late_reply_is_not_the_start_time() -> None:
    clock, lines = HostClock(can_report=True), iter(["11.5", "12.5"])
    assert not clock.measure(lambda: AT, lambda _: None, lambda: None)
    assert clock.read_start_time(lambda: next(lines)) == 12.5
