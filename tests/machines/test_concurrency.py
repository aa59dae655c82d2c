"""One operation on many nodes: the common start, the order of results, and the failure of one."""

from __future__ import annotations

import threading

import pytest

from chaos.machines.concurrency import MAX_THREADS, run_concurrently, run_simultaneously
from tests.kit.fakes import FakeClock


def test_all_begin_once_all_threads_are_ready() -> None:
    started: list[int] = []
    barrier = threading.Barrier(20, timeout=20)

    def do(item: int) -> int:
        barrier.wait()  # breaks unless all of them run at once
        started.append(item)
        return item * 2

    assert run_simultaneously(range(20), do) == [item * 2 for item in range(20)]
    assert sorted(started) == list(range(20))


def test_the_first_failure_is_raised_after_all_have_ended() -> None:
    ended: list[int] = []

    def do(item: int) -> None:
        ended.append(item)
        if item in (1, 3):
            raise OSError(f"no {item}")

    with pytest.raises(OSError, match="no 1"):
        run_simultaneously(range(5), do)
    with pytest.raises(OSError, match="no 1"):
        run_concurrently(range(5), do, FakeClock())
    assert sorted(ended) == sorted([*range(5), *range(5)])


def test_cluster_time_goes_on_while_one_takes_long() -> None:
    clock = FakeClock()
    gone_on = threading.Event()
    clock.agenda.append((clock.t + 0.01, gone_on.set))
    assert run_concurrently([20.0, 20.0], gone_on.wait, clock) == [True, True]


def test_more_items_than_threads() -> None:
    items = list(range(MAX_THREADS * 2))
    assert run_concurrently(items, lambda item: item, FakeClock()) == items
