"""Turns: one thread at a time, in one order; time moves only while all wait."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from chaos.lab.facade import SimClock
from chaos.rehearsal.connection import RehearsalClock

START = 1000.0


@pytest.fixture
def clock() -> RehearsalClock:
    return RehearsalClock(SimClock(START, 1))


def test_sleepers_wake_in_order_of_time(clock: RehearsalClock) -> None:
    seen: list[tuple[str, float]] = []

    def sleeper(name: str, seconds: float) -> None:
        for _ in range(2):
            assert clock.sleep(seconds)
            seen.append((name, clock.now() - START))

    for name, seconds in (("a", 3.0), ("b", 2.0), ("c", 2.0)):
        clock.threads.thread(lambda name=name, seconds=seconds: sleeper(name, seconds), name).start()  # type: ignore[misc]
    assert clock.sleep(10.0)
    clock.close()
    assert seen == [("b", 2.0), ("c", 2.0), ("a", 3.0), ("b", 4.0), ("c", 4.0), ("a", 6.0)]


def test_one_thread_runs_at_a_time(clock: RehearsalClock) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def work() -> int:
        nonlocal running, most
        for _ in range(50):
            with lock:
                running += 1
                most = max(most, running)
            running -= 1
            clock.sleep(0.1)
        return 1

    with clock.threads.pool(8) as pool:
        futures = [pool.submit(work) for _ in range(8)]
    assert sum(future.result() for future in futures) == 8
    assert most == 1
    assert clock.now() == pytest.approx(START + 5.0)


def test_a_pause_lets_all_go_on_that_can_before_time_moves(clock: RehearsalClock) -> None:
    """Two that pause do not wait for each other for ever."""
    seen: list[str] = []

    def work(name: str) -> None:
        clock.threads.pause(0.1)
        seen.append(name)
        clock.sleep(1.0)
        seen.append(f"{name} later")

    for name in ("a", "b"):
        clock.threads.thread(lambda name=name: work(name), name).start()  # type: ignore[misc]
    clock.threads.thread(lambda: seen.append("c"), "c").start()
    clock.threads.pause(0.1)
    assert (seen, clock.now()) == (["c"], START)
    clock.threads.pause(0.1)
    assert (seen, clock.now()) == (["c", "a", "b"], START)
    clock.close()


def test_a_wait_for_futures_moves_no_time(clock: RehearsalClock) -> None:
    with clock.threads.pool(2) as pool:
        quick, slow = pool.submit(lambda: 1), pool.submit(clock.sleep, 5.0)
        assert not clock.threads.wait([quick, slow], 0.5)
        assert quick.done()
        assert clock.now() == START
    assert clock.now() == START + 5.0


def test_results_and_errors_of_a_pool(clock: RehearsalClock) -> None:
    def fail() -> None:
        raise ValueError("no")

    with clock.threads.pool(2) as pool:
        assert list(pool.map(lambda number: number * 2, [1, 2, 3])) == [2, 4, 6]
        failed = pool.submit(fail)
    with pytest.raises(ValueError, match="no"):
        failed.result()


def test_a_wake_ends_sleeps_until_resumed(clock: RehearsalClock) -> None:
    slept: list[bool] = []
    clock.threads.thread(lambda: slept.append(clock.sleep(100.0)), "sleeper").start()
    clock.sleep(1.0)
    clock.wake()
    assert not clock.sleep(50.0)
    assert slept == [False]
    assert clock.now() == START + 1.0
    clock.resume()
    assert clock.sleep(2.0)
    assert clock.now() == START + 3.0


def test_what_a_timer_raises_reaches_the_main_thread(clock: RehearsalClock) -> None:
    def fail() -> None:
        raise ValueError("the lab is broken")

    clock._sim.at(START + 2.0, fail)
    clock.threads.thread(lambda: clock.sleep(3.0), "sleeper").start()
    with pytest.raises(ValueError, match="the lab is broken"):
        clock.sleep(5.0)
    clock.close()


def test_a_crash_of_a_thread_reaches_the_main_thread(clock: RehearsalClock) -> None:
    def crash() -> None:
        clock.sleep(1.0)
        raise ValueError("crashed")

    clock.threads.thread(crash, "crashing").start()
    with pytest.raises(ValueError, match="crashed"):
        clock.sleep(5.0)
    clock.close()


def test_an_interrupt_ends_the_wait_of_the_main_thread(clock: RehearsalClock) -> None:
    """The thread that has the turn when it comes goes on to its next wait."""
    went_on = []

    def work() -> None:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)  # for the main thread, which waits for its turn
        time.sleep(0.3)
        went_on.append(clock.now())
        clock.sleep(1.0)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        clock.threads.thread(work, "work").start()
        with pytest.raises(KeyboardInterrupt):
            clock.sleep(5.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert went_on == [START]
    clock.close()


def test_nothing_that_will_ever_happen_is_an_error(clock: RehearsalClock) -> None:
    with pytest.raises(RuntimeError, match="nothing will happen"):
        clock.threads.block(float("inf"))


def test_close_ends_all_threads(clock: RehearsalClock) -> None:
    ended: list[str] = []

    def endless(name: str) -> None:
        try:
            while True:
                clock.sleep(1.0)
        finally:
            ended.append(name)

    for name in ("one of two", "two of two"):
        clock.threads.thread(lambda name=name: endless(name), name).start()  # type: ignore[misc]
    clock.sleep(3.0)
    clock.threads.thread(lambda: ended.append("never"), "late").start()
    clock.close()
    assert ended == ["one of two", "two of two"]
    for thread in threading.enumerate():
        if thread.name in ("one of two", "two of two"):
            thread.join(5.0)
    assert not {thread.name for thread in threading.enumerate()} & {"one of two", "two of two", "late"}
