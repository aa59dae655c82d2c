"""The clocks: real time, and a real time source."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from chaos.app.labs import start_lab
from chaos.core.clock import RemoteClock, SystemClock
from chaos.core.errors import NodefallError
from chaos.core.inventory import TimeSource
from chaos.core.lab_settings import Lab
from chaos.core.ports import Clock
from tests.kit.processes import free_port

START = 1000.0


@pytest.fixture(scope="module")
def source() -> Iterator[TimeSource]:
    with start_lab(Lab(workers=1, speed=500)) as lab:
        assert lab.inventory.cluster
        assert lab.inventory.cluster.time_source
        yield lab.inventory.cluster.time_source


@pytest.fixture
def clock(source: TimeSource) -> Iterator[RemoteClock]:
    clock = RemoteClock(source.address, source.port)
    yield clock
    clock.close()


def woken_from_elsewhere(clock: Clock) -> list[bool]:
    """Results of a sleep that another thread ends, and of two sleeps after it."""
    results: list[bool] = []
    started = threading.Event()

    def sleep() -> None:
        started.set()
        results.append(clock.sleep(1e6))
        results.append(clock.sleep(1e6))
        results.append(clock.sleep(0))

    thread = threading.Thread(target=sleep)
    thread.start()
    assert started.wait(10)
    clock.wake()
    thread.join(10)
    assert not thread.is_alive()
    return results


def test_system_clock_sleeps_at_least_the_requested_time() -> None:
    clock = SystemClock()
    before = clock.now()
    assert clock.sleep(0.02)
    assert clock.now() >= before + 0.019
    assert clock.sleep(-1)
    clock.close()


def test_the_time_of_a_suspended_machine_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of the cluster does: ten minutes later, a deadline of five is over."""
    clock = SystemClock()
    before, boot_time = clock.now(), time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda which: boot_time(which) + 600)
    assert 600 <= clock.now() - before < 700
    clock.close()


def test_a_clock_that_is_set_changes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: before - 3600)
    assert 0 <= clock.now() - before < 100
    clock.close()


@pytest.mark.lab
def test_a_moment_to_gather_is_short_and_none_where_time_is_simulated(
    clock: RemoteClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    clock.gather()
    assert waits == []
    SystemClock().gather()
    assert 0.001 < waits[0] < 1


def test_system_clock_wakes_until_resumed() -> None:
    clock = SystemClock()
    assert woken_from_elsewhere(clock) == [False, False, False]
    clock.wake()
    clock.resume()
    with clock.participant():
        assert clock.sleep(0.001)
    clock.release()
    clock.close()


@pytest.mark.lab
def test_remote_clock_wakes_until_resumed(clock: RemoteClock) -> None:
    assert woken_from_elsewhere(clock) == [False, False, False]
    before = clock.now()
    clock.wake()
    assert not clock.sleep(50)
    clock.resume()
    assert clock.sleep(3)
    assert clock.now() >= before + 3


@pytest.mark.lab
def test_a_participant_holds_time_and_wakes_exactly(clock: RemoteClock) -> None:
    with clock.participant():
        before = clock.now()
        for seconds in (0.1, 1 / 3, 7.0, 123.456789):
            assert clock.sleep(seconds)
            now = clock.now()
            assert before + seconds <= now + 1e-9 <= before + seconds + 3e-6
            SystemClock().sleep(0.1)
            assert clock.now() == now
            before = now


@pytest.mark.lab
def test_time_stands_still_while_no_thread_sleeps(clock: RemoteClock) -> None:
    before = clock.now()
    SystemClock().sleep(0.1)
    assert clock.now() == before


@pytest.mark.lab
def test_two_participants_meet_in_time(clock: RemoteClock) -> None:
    order: list[tuple[float, str]] = []
    barrier = threading.Barrier(2)

    def live(name: str, *sleeps: float) -> None:
        with clock.participant():
            barrier.wait(10)
            for seconds in sleeps:
                assert clock.sleep(seconds)
                order.append((round(clock.now() - begin, 3), name))

    begin = clock.now()
    threads = [threading.Thread(target=live, args=args) for args in (("a", 10, 10, 10), ("b", 15, 16))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert order == [(10, "a"), (15, "b"), (20, "a"), (30, "a"), (31, "b")]


@pytest.mark.lab
def test_a_thread_that_ends_or_blocks_on_something_else_does_not_hold_time(clock: RemoteClock) -> None:
    blocked, finish = threading.Event(), threading.Event()

    def sleep_once_then_block() -> None:
        clock.sleep(1)
        blocked.set()
        finish.wait(20)

    threads = [threading.Thread(target=clock.sleep, args=(1,)), threading.Thread(target=sleep_once_then_block)]
    for thread in threads:
        thread.start()
    assert blocked.wait(20)
    with clock.participant():
        before = clock.now()
        assert clock.sleep(100)
        assert clock.now() >= before + 100
    finish.set()
    for thread in threads:
        thread.join(20)


@pytest.mark.lab
def test_threads_that_only_read_the_time_share_one_connection(clock: RemoteClock) -> None:
    times: list[float] = []
    threads = [threading.Thread(target=lambda: times.extend(clock.now() for _ in range(100))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(times) == 800
    assert len(set(times)) == 1


def test_no_time_source_is_a_clear_error() -> None:
    port = free_port()
    with pytest.raises(NodefallError, match=f"time source 127.0.0.1:{port}: .*refused"):
        RemoteClock("127.0.0.1", port)


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        (b"nonsense\n", "does not support the role observer"),
        (b"ok\nlater\n", "answered 'later'"),
        (b"ok\n", "closed the connection"),
    ],
)
def test_a_time_source_that_breaks_off(answers: bytes, what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answers)
                connection.recv(100)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NodefallError, match=what):
            RemoteClock("127.0.0.1", server.getsockname()[1])
        thread.join(10)


def test_a_reset_reads_like_an_end() -> None:
    """A source that closes while a request is on its way resets the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(100) == b"hello observer\n"
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NodefallError, match="it closed the connection"):
            RemoteClock("127.0.0.1", server.getsockname()[1])
        thread.join(10)


def test_a_clock_outlives_its_connection() -> None:
    """The next call connects again."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(times: int) -> None:
            for number in range(times):
                connection, _ = server.accept()
                with connection, connection.makefile("rw") as lines:
                    assert lines.readline() == "hello observer\n"
                    lines.write("ok\n")
                    lines.flush()
                    assert lines.readline() == "now\n"
                    lines.write(f"{START + number:.6f}\n")
                    lines.flush()
                    if number == 0:
                        lines.readline()

        thread = threading.Thread(target=serve, args=(2,))
        thread.start()
        clock = RemoteClock("127.0.0.1", server.getsockname()[1])
        with pytest.raises(NodefallError, match="closed the connection"):
            clock.now()
        assert clock.now() == START + 1
        thread.join(10)
        clock.close()
