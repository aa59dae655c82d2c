"""The clients' processes, whose work time waits for, and the loop that knows when it has nothing to do."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from chaos.lab.sim import SimClock, clients
from chaos.lab.sim import lockstep as lockstep_module
from chaos.lab.sim.clients import MAX_WORK, ClientProcess, Clients, IdleLoop, ProcessGoneError
from chaos.lab.sim.lockstep import SETTLE, Lockstep
from chaos.lab.sim.time_source import TimeSource
from tests.kit.processes import until

START = 1000.0
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are observed in /proc")
COMPUTES, READS = "while True: pass", "import sys\nfor line in sys.stdin: print(line, flush=True)"


def identity(pid: int) -> tuple[int, int]:
    """Process ID and start."""
    return pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@contextmanager
def process(program: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def play(scene: Callable[[IdleLoop], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, IdleLoop)
        runner.run(asyncio.wait_for(scene(loop), 30))


def test_a_process_that_waits_is_asleep_and_one_that_computes_is_not() -> None:
    with process(READS) as waits, process(COMPUTES) as computes:
        sleeper, worker = ClientProcess(*identity(waits.pid)), ClientProcess(*identity(computes.pid))
        until(sleeper.is_asleep)
        until(lambda: worker.cpu() > 0.1)
        assert not any(worker.is_asleep() for _ in range(100))
        used = sleeper.cpu()
        assert sleeper.is_asleep()
        assert sleeper.cpu() == used


def test_a_process_is_not_asleep_before_it_gets_a_processor() -> None:
    """It is woken on a machine whose processors all compute."""
    with process(READS) as waits:
        observed = ClientProcess(*identity(waits.pid))
        until(observed.is_asleep)
        loops = [subprocess.Popen([sys.executable, "-c", COMPUTES]) for _ in range(4 * (os.cpu_count() or 1))]
        try:
            assert waits.stdin
            assert waits.stdout
            for number in range(200):
                used = observed.cpu()
                waits.stdin.write(b"x\n")
                waits.stdin.flush()
                while not (observed.is_asleep() and observed.cpu() != used):
                    assert not (observed.is_asleep() and observed.cpu() == used), f"line {number} was not noticed"
                assert waits.stdout.readline() == b"x\n"
                assert waits.stdout.readline() == b"\n"
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()


def test_new_threads_and_those_that_end_are_seen() -> None:
    with process(_THREADS) as child:
        observed = ClientProcess(*identity(child.pid))
        assert child.stdin
        assert child.stdout
        for _ in range(3):
            until(observed.is_asleep)
            used = observed.cpu()
            child.stdin.write(b"begin\n")
            child.stdin.flush()
            until(lambda used=used: observed.cpu() > used + 0.05)  # type: ignore[misc]  # processor time of the other threads
            assert not any(observed.is_asleep() for _ in range(100))
            child.stdin.write(b"end\n")
            child.stdin.flush()
        observed.close()


_THREADS = """
import sys, threading
def compute():
    while not ended.is_set():
        sum(range(1000))
for line in sys.stdin:
    ended = threading.Event()
    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    sys.stdin.readline()
    ended.set()
    for thread in threads:
        thread.join()
"""


def test_a_stopped_process_is_not_asleep() -> None:
    with process(READS) as waits:
        observed = ClientProcess(*identity(waits.pid))
        until(observed.is_asleep)
        waits.send_signal(signal.SIGSTOP)
        until(lambda: not observed.is_asleep())
        waits.send_signal(signal.SIGCONT)
        until(observed.is_asleep)


def test_an_ended_process_is_gone_though_its_files_are_open() -> None:
    with process(READS) as waits:
        observed = ClientProcess(*identity(waits.pid))
    with pytest.raises(ProcessGoneError, match="processor time"):
        observed.cpu()
    with pytest.raises(ProcessGoneError, match="threads"):
        observed.is_asleep()
    observed.close()


def test_threads_that_cannot_be_read_make_the_process_one_that_is_not_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with too many open files: a part of the threads would be too few."""
    is_refused = False

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if is_refused and dir_fd is not None:
            raise OSError(errno.EMFILE, "too many open files")
        return os_open(path, flags, mode, dir_fd=dir_fd)

    os_open = os.open
    monkeypatch.setattr(os, "open", refuse)

    async def scene(loop: IdleLoop) -> None:
        with process(_SLEEPS) as child:
            observed = Clients(loop)
            observed.join(identity(child.pid))
            assert observed.observes(identity(child.pid))
            nonlocal is_refused
            is_refused = True
            assert child.stdin
            assert child.stdout
            child.stdin.write(b"begin\n")
            child.stdin.flush()
            child.stdout.readline()
            while observed:
                await observed.are_idle()
                await asyncio.sleep(0.01)
            assert not observed.observes(identity(child.pid))
            observed.leave(identity(child.pid))

    play(scene)


_SLEEPS = """
import sys, threading, time
for line in sys.stdin:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    print(flush=True)
"""


@pytest.mark.parametrize(
    ("pid", "start"), [(2**22 + 1, 1), (os.getppid(), 1), (os.getpid(), 1)], ids=["none", "another one", "own"]
)
def test_another_process_is_not_observed(pid: int, start: int) -> None:
    with pytest.raises(ProcessGoneError, match=f"process {pid}: "):
        ClientProcess(pid, start)


def test_files_are_closed() -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    with process(READS) as waits:
        before = count()
        observed = ClientProcess(*identity(waits.pid))
        assert count() > before
        observed.close()
        assert count() == before


def test_a_loop_is_idle_only_when_all_was_handled() -> None:
    async def scene(loop: IdleLoop) -> None:
        handled: list[str] = []
        near, far = socket.socketpair()

        async def read() -> None:
            reader, writer = await asyncio.open_connection(sock=far)
            handled.append((await reader.readline()).decode().strip())
            writer.close()

        task = loop.create_task(read())
        with near:
            near.sendall(b"a line\n")
            loop.call_soon(loop.call_soon, loop.call_soon, handled.append, "callbacks")
            loop.call_later(60, handled.append, "too late")
            await loop.until_idle()
            assert sorted(handled) == ["a line", "callbacks"]
            assert task.done()
            await loop.until_idle()

    play(scene)


def test_time_waits_for_a_client_that_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pause, for MAX_WORK seconds of processor time at most."""
    monkeypatch.setattr(clients, "MAX_WORK", 0.3)

    async def scene(loop: IdleLoop) -> None:
        with process(COMPUTES) as computes:
            observed = Clients(loop)
            observed.join(identity(computes.pid))
            assert observed
            begin = ClientProcess(*identity(computes.pid)).cpu()
            while not await observed.are_idle():
                await asyncio.sleep(0.01)
            assert ClientProcess(*identity(computes.pid)).cpu() > begin + 0.25
            observed.begin_wait()
            assert not await observed.are_idle()
        until(lambda: not Path(f"/proc/{computes.pid}").exists())
        await observed.are_idle()
        assert not observed, "it has ended"

    play(scene)


def test_an_idle_client_is_inspected_again_only_if_something_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[bool] = []
    is_asleep = ClientProcess.is_asleep

    def inspect(self: ClientProcess) -> bool:
        results.append(is_asleep(self))
        return results[-1]

    monkeypatch.setattr(ClientProcess, "is_asleep", inspect)

    async def scene(loop: IdleLoop) -> None:
        with process(READS) as waits:
            observed = Clients(loop)
            observed.join(identity(waits.pid))
            while not await observed.are_idle():
                await asyncio.sleep(0.05)
            count = len(results)
            assert await observed.are_idle()
            assert len(results) == count
            observed.notify()
            assert await observed.are_idle()
            assert len(results) == count + 1
            observed.leave(identity(waits.pid))
            assert not observed

    play(scene)


@asynccontextmanager
async def served(loop: IdleLoop, free: bool = False) -> AsyncIterator[tuple[Lockstep, int]]:
    """A lab's time that moves, and the port of its source."""
    lockstep = Lockstep(SimClock(START, 1), 1000.0, free)
    source = TimeSource(lockstep)
    port = await source.start()
    mover = loop.create_task(lockstep.run())
    try:
        yield lockstep, port
    finally:
        mover.cancel()
        with suppress(asyncio.CancelledError):
            await mover
        await source.stop()


def test_time_stands_still_while_a_client_computes_although_its_threads_sleep() -> None:
    """Not for the moments after a sleep only, as of a client that cannot be observed."""

    async def scene(loop: IdleLoop) -> None:
        async with served(loop) as (lockstep, port):
            sim = lockstep.sim
            with process(_SLEEPER.format(port=port)):
                while sim.now < START + 1:
                    await asyncio.sleep(0.01)
                assert sim.now == START + 1
                await asyncio.sleep(0.2)
                assert sim.now == START + 1, "it computes"

    play(scene)


def test_time_goes_on_after_a_client_was_stopped_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """More inspections in vain than a float has powers of two."""
    monkeypatch.setattr(lockstep_module, "_MAX_PAUSE", 1e-5)

    async def scene(loop: IdleLoop) -> None:
        async with served(loop) as (lockstep, port):
            count = 0

            async def are_idle() -> bool:
                nonlocal count
                count += 1
                return count > 1100

            with process(_SETTLER.format(port=port, identity="")) as child:
                assert child.stdout
                while not lockstep.clients:
                    await asyncio.sleep(0.001)
                monkeypatch.setattr(lockstep.clients, "are_idle", are_idle)
                line = await loop.run_in_executor(None, child.stdout.readline)
        assert line == b"False True\n"
        assert count > 1100

    play(scene)


def test_time_moves_although_a_client_polls_in_real_time() -> None:
    """Of real time: it is idle in between, however long the pauses between two inspections are."""

    async def scene(loop: IdleLoop) -> None:
        async with served(loop) as (lockstep, port):
            with process(_POLLS + _SETTLER.format(port=port, identity="")) as child:
                assert child.stdout
                line = await loop.run_in_executor(None, child.stdout.readline)
                assert child.pid
                used = ClientProcess(*identity(child.pid)).cpu()
        assert line == b"False True\n"
        assert lockstep.sim.now >= START + 0.01
        assert used < MAX_WORK, "it was not given up"

    play(scene)


_POLLS = """
import threading, time
def poll():
    while True:
        time.sleep(0.01)
threading.Thread(target=poll, daemon=True).start()
"""
_SLEEPER = """
import socket
from pathlib import Path
stat = Path("/proc/self/stat").read_text()
def ask(connection, line):
    connection.write(line + "\\n")
    connection.flush()
    return connection.readline()
connections = [socket.create_connection(("127.0.0.1", {port})).makefile("rw") for _ in range(2)]
for connection in connections:
    assert ask(connection, "hello sleeper") == "ok\\n"
    start = stat.rpartition(")")[2].split()[19]
    assert ask(connection, f"process {{stat.split()[0]}} {{start}}") == "ok\\n"
connections[0].write("sleep 1050\\n")
connections[0].flush()
ask(connections[1], "sleep 1001")
while True: pass
"""


@pytest.mark.parametrize(("free", "identity", "settles"), [(False, "", True), (True, "", False), (False, "1 1", False)])
def test_a_client_settles_only_where_time_waits_for_it(free: bool, identity: str, settles: bool) -> None:
    """Not in a free-running lab, nor where the lab cannot observe it: there it is as if time were real."""

    async def scene(loop: IdleLoop) -> None:
        async with served(loop, free) as (_, port):
            with process(_SETTLER.format(port=port, identity=identity)) as child:
                assert child.stdout
                line = await loop.run_in_executor(None, child.stdout.readline)
        assert line.decode() == f"False {settles}\n"

    play(scene)


_SETTLER = """
from chaos.core.clock import remote
if {identity!r}:
    remote._process_identity = lambda: {identity!r}
clock = remote.RemoteClock("127.0.0.1", {port})
before = clock.settle()
clock.sleep(0.01)
print(before, clock.settle())
"""


@pytest.mark.parametrize("others", ["none", "observed", "not observed"])
def test_after_an_event_time_waits_some_moments_for_clients_that_are_not_observed(others: str) -> None:
    async def scene(loop: IdleLoop) -> None:
        lockstep = Lockstep(SimClock(START, 1), 1000.0)
        with process(READS) as waits:
            assert lockstep.clients is not None
            lockstep.clients.join(identity(waits.pid))
            lockstep.join(strict=True).process = identity(waits.pid)
            if others != "none":
                lockstep.join(strict=False).process = identity(waits.pid) if others == "observed" else None
            before = lockstep.wall()
            lockstep.on_sent()
            assert (lockstep._hold_until >= before + SETTLE) is (others == "not observed")

    play(scene)
