"""Repeatability: the seed and the calls decide everything.

Polls run at the times of a timer that sets itself again, in one order, and cost nothing while there is no work.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.machine import Machine
from chaos.lab.sim import Polls, SimClock
from tests.kit.simkit import VICTIM, run, spec, started

_SCRIPT = """
import hashlib
from tests.kit.simkit import VICTIM, run, spec, started
cluster, history = started(spec(seed=3))
cluster.machines[VICTIM].logind.power_off()
run(cluster, 60.0)
cluster.machines[VICTIM].power_on()
run(cluster, 60.0)
print(hashlib.sha256(history.lines()).hexdigest())
"""


def _history(seed: int) -> bytes:
    cluster, history = started(spec(seed=seed))
    cluster.machines[VICTIM].power_off()
    run(cluster, 400.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 60.0)
    return history.lines()


def test_same_seed_same_history_byte_for_byte() -> None:
    assert _history(5) == _history(5)


_Steps = list[tuple[float, Callable[[Machine], object]]]
DISTURBED: dict[str, _Steps] = {
    "the runtime stops": [(41.37, lambda it: it.runtime.stop_service()), (200, lambda it: it.runtime.start_service())],
    "at a whole second": [(60, lambda it: it.runtime.stop_service())],
    "frozen, then the runtime stops": [
        (33.3, lambda it: it.kubelet.freeze()), (60, lambda it: it.runtime.stop_service()),
        (80.4, lambda it: it.kubelet.thaw()),
    ],
    "a quota": [
        (33.3, lambda it: it.kubelet.cpu.limit(0.05)), (90, lambda it: it.runtime.stop_service()),
        (150, lambda it: it.kubelet.cpu.limit(None)),
    ],
    "restarted": [(33.3, lambda it: it.kubelet.restart()), (61, lambda it: it.runtime.stop_service())],
    "powered off": [
        (20, lambda it: it.power_off()), (90, lambda it: it.power_on()), (120, lambda it: it.runtime.stop_service()),
    ],
}  # fmt: skip


def _disturbed(steps: _Steps) -> bytes:
    cluster, history = started(spec(seed=5))
    begin = cluster.sim.now
    for at, act in [*steps, (300.0, lambda _: None)]:
        cluster.sim.run_until(begin + at)
        act(cluster.machines[VICTIM])
    return history.lines()


@pytest.mark.parametrize("steps", DISTURBED.values(), ids=DISTURBED)
def test_checks_of_the_runtime_that_are_left_out_change_no_history(
    steps: _Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = _disturbed(steps)
    checks = []

    def check_always(self: NodeStatusReporter) -> None:
        checks.append(self._process.node)
        if self._process.machine.runtime.is_available:
            self._runtime_seen_at = self._process.sim.now
        self._process.after(5.0, self._check_runtime)

    monkeypatch.setattr(NodeStatusReporter, "_check_runtime", check_always)
    assert _disturbed(steps) == left_out
    assert len(checks) > 150


def test_another_seed_another_history() -> None:
    assert _history(5) != _history(6)


def test_history_does_not_depend_on_the_process() -> None:
    """The history does not depend on the hash seed or other state of the process."""
    digests = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_step_sizes_do_not_matter() -> None:
    whole, first = started(spec(seed=4))
    cut, second = started(spec(seed=4))
    run(whole, 300.0)
    for _ in range(300):
        run(cut, 1.0)
    assert first.lines() == second.lines()


def test_a_quiet_cluster_writes_heartbeats_only() -> None:
    cluster, history = started(settle=60.0)
    begin = cluster.sim.now
    run(cluster, 600.0)
    plurals = {change.plural for when, change in history.changes if when >= begin}
    assert plurals == {"leases", "nodes"}
    renewals = [when for when, change in history.changes if change.plural == "leases" and when >= begin]
    assert 4 * 600 / 10.4 - 4 <= len(renewals) <= 4 * 600 / 10.0 + 4


def test_callbacks_due_together_run_in_order_and_cancelled_ones_never() -> None:
    sim = SimClock(0.0, 1)
    ran: list[str] = []
    sim.at(1.0, ran.append, "first")
    cancelled = sim.at(1.0, ran.append, "cancelled")
    sim.at(1.0, ran.append, "second")
    sim.at(2.0, ran.append, "late")
    cancelled.cancel()
    sim.run_until(1.5)
    assert (ran, sim.now, sim.next_due()) == (["first", "second"], 1.5, 2.0)


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
