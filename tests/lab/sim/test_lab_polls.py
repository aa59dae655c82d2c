"""Polls run at the times of a timer that sets itself again, in one order, and cost nothing while there is no work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.lab.sim import Polls, SimClock

START = 1_795_000_000.0  # where a tenth of a second is rounded
Run = tuple[str, float, str]


class _Work:
    """Two queues that take one item a poll, as of a timer that always sets itself again, or of polls that sleep."""

    def __init__(self) -> None:
        self.sim = SimClock(START, 1)
        self.queues: dict[str, list[str]] = {"first": [], "second": []}
        self.runs: list[Run] = []
        self.calls = 0

    def poll(self, name: str) -> Callable[[], bool]:
        def call() -> bool:
            self.calls += 1
            if self.queues[name]:
                self.runs.append((name, self.sim.now, self.queues[name].pop(0)))
            return bool(self.queues[name])

        return call

    def always(self) -> Callable[[], None]:
        for name in self.queues:
            self.sim.after(0.1, self._tick, self.poll(name))
        return lambda: None

    def _tick(self, poll: Callable[[], bool]) -> None:
        poll()
        self.sim.after(0.1, self._tick, poll)

    def sleeping(self) -> Callable[[], None]:
        polls = Polls(self.sim, 0.1)
        for name in self.queues:
            polls.add(self.poll(name))
        return polls.wake

    def run(self, wake: Callable[[], None], items: list[tuple[float, str]]) -> list[Run]:
        def add(name: str) -> None:
            self.queues[name].append(name)
            wake()

        for at, name in items:
            self.sim.at(START + at, add, name)
        self.sim.run_until(START + 100)
        return self.runs


@pytest.mark.parametrize(
    "items",
    [
        [],
        [(0.0, "first")],
        [(33.33, "second")],
        [(33.33, "second"), (33.34, "first")],
        [(7.0 + number / 30, "first") for number in range(9)] + [(7.05, "second"), (7.06, "second"), (90.01, "first")],
    ],
)
def test_polls_run_at_the_times_at_which_they_always_would(items: list[tuple[float, str]]) -> None:
    always, sleeping = _Work(), _Work()
    expected = always.run(always.always(), items)
    assert sleeping.run(sleeping.sleeping(), items) == expected
    assert len(expected) == len(items)
    assert sleeping.calls < 60 < always.calls


def test_a_poll_may_give_work_to_the_one_before() -> None:
    sim, seen = SimClock(START, 1), list[float]()
    polls, work = Polls(sim, 0.5), [False]

    def first() -> bool:
        if work.pop():
            seen.append(sim.now - START)
        work.append(False)
        return False

    def second() -> bool:
        if not seen:
            work[0] = True
            polls.wake()
        return False

    polls.add(first)
    polls.add(second)
    sim.run_until(START + 5)
    assert seen == [1.0]


def test_without_a_poll_nothing_is_due() -> None:
    sim = SimClock(START, 1)
    Polls(sim, 0.1).wake()
    assert sim.next_due() is None
