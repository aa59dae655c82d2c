"""Whether a client's process on this machine has something to do: what is woken counts before it gets a processor.

A thread that waits for a processor is runnable, so a process is idle if all its threads sleep and it used no processor
while they were inspected (proc(5): state in ``/proc/PID/task/TID/stat``). What cannot be seen: bytes that the kernel
has accepted but not delivered, which loopback does at once; a wait in wall time; the client's own child processes.
An event loop that knows when it has nothing to do: every callback has run, and no socket has input.
The processes of a lab's clients that run on this machine: time waits while one of them has something to do.
"""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
import time
from collections import Counter
from pathlib import Path

_PROC = Path("/proc")
_ASLEEP = frozenset(b"SZXI")  # not runnable, nor in the kernel (D), nor stopped (T, t): waiting for what another does
_LENGTH = 256  # bytes of stat that have the state: the name before it has at most 64
_ENDED = frozenset({errno.ENOENT, errno.ESRCH})
MAX_WORK = 2.0  # processor seconds after which a client that computes on no longer counts as awake


class ProcessGoneError(Exception):
    """The process has ended, or cannot be observed here."""


class ClientProcess:
    """One process with its threads. Raises ProcessGoneError, as every method: it is not that process, or has ended.

    ``start_ticks``: when it started, after the boot, in clock ticks. In another PID namespace, an ID means another
    process. The lab's own process cannot be observed: it is never asleep.
    """

    def __init__(self, pid: int, start_ticks: int) -> None:
        if pid == os.getpid():
            raise ProcessGoneError(f"process {pid}: the lab's own")
        self._clock = (~pid << 3) | 2  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel
        self._tasks = -1  # open directory: once the process has ended it is empty, though another one has its ID
        self._threads: dict[str, int] = {}  # open stat of each thread
        try:
            self._tasks = os.open(_PROC / str(pid) / "task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _require_start(pid, start_ticks)
            self._open_threads()
            self.cpu()
            self.is_asleep()
        except ProcessGoneError:
            self.close()
            raise
        except (OSError, ValueError, IndexError, OverflowError) as error:
            self.close()
            raise ProcessGoneError(f"process {pid}: {error}") from error

    def cpu(self) -> float:
        """Processor time used so far, in seconds."""
        try:
            return time.clock_gettime(self._clock)
        except OSError as error:
            raise ProcessGoneError(f"its processor time cannot be read: {error}") from error

    def is_asleep(self) -> bool:
        """Whether no thread can run; one after the other, so compare :meth:`cpu` around it."""
        if os.fstat(self._tasks).st_nlink != len(self._threads) + 2:
            self._open_threads()
        try:
            for name, file in reversed(self._threads.items()):
                line = os.pread(file, _LENGTH, 0)
                if line[line.rindex(b")") + 2] not in _ASLEEP:
                    self._threads[name] = self._threads.pop(name)  # the first to be inspected again
                    return False
        except (OSError, ValueError):  # a thread has ended meanwhile
            self._open_threads()
            return False
        return True

    def close(self) -> None:
        self._close_threads()
        if self._tasks >= 0:
            os.close(self._tasks)
            self._tasks = -1

    def _close_threads(self) -> None:
        for file in self._threads.values():
            os.close(file)
        self._threads = {}

    def _open_threads(self) -> None:
        self._close_threads()
        try:
            for name in os.listdir(self._tasks):
                self._open_thread(name)
        except OSError as error:
            raise ProcessGoneError(f"its threads cannot be read: {error}") from error
        if not self._threads:
            raise ProcessGoneError("it has no threads")

    def _open_thread(self, name: str) -> None:
        try:
            self._threads[name] = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._tasks)
        except OSError as error:
            if error.errno not in _ENDED:
                raise


def _require_start(pid: int, ticks: int) -> None:
    stat = (_PROC / str(pid) / "stat").read_bytes()
    if int(stat.rpartition(b")")[2].split()[19]) != ticks:
        raise ProcessGoneError(f"process {pid}: another one")


_PATIENCE = 1000  # turns of a loop that is never idle


class _IdleSelector(selectors.DefaultSelector):
    """A selector that asks for input once more before it waits, and reports that there was none."""

    waiting: asyncio.Future[None] | None = None
    turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.waiting is None:
            return super().select(timeout)
        found = super().select(0)
        self.turns += 1
        if (not found and timeout != 0) or self.turns > _PATIENCE:
            waiting, self.waiting = self.waiting, None
            if not waiting.done():
                waiting.set_result(None)
        return found


class IdleLoop(asyncio.SelectorEventLoop):
    """The loop of a lab, and of what else must know that all input was handled."""

    def __init__(self) -> None:
        self._idle_selector = _IdleSelector()
        super().__init__(self._idle_selector)

    async def until_idle(self) -> None:
        """Wait until there is nothing to do but what wall time brings. One task at a time."""
        selector = self._idle_selector
        selector.waiting, selector.turns = self.create_future(), 0
        await selector.waiting


Identity = tuple[int, int]  # process ID, and when it started


class Clients:
    """Processes that are observed; false if there are none. ``loop``: the lab's."""

    def __init__(self, loop: IdleLoop) -> None:
        self._loop = loop
        self._processes: dict[Identity, ClientProcess] = {}
        self._connections: Counter[Identity] = Counter()
        self._idle_at: dict[Identity, float] = {}  # processor time used when all were last found idle
        self._waiting_since: dict[Identity, float] | None = None  # processor time when time could have moved
        self._last_used: dict[Identity, float] = {}  # at the last inspection
        self._has_news = True

    def __bool__(self) -> bool:
        return bool(self._processes)

    def join(self, identity: Identity) -> None:
        """Observe the process of one more connection. Raises ProcessGoneError if that is not possible."""
        if identity not in self._processes:
            self._processes[identity] = ClientProcess(*identity)
        self._connections[identity] += 1

    def leave(self, identity: Identity) -> None:
        """One connection of the process less; the last one ends the observation."""
        self._connections[identity] -= 1
        if not self._connections[identity]:
            self._drop(identity)

    def observes(self, identity: Identity | None) -> bool:
        return identity in self._processes

    def notify(self) -> None:
        """The lab may have sent something without a request: clients that were idle may not be."""
        self._has_news = True

    def begin_wait(self) -> None:
        """Time cannot move anyway: what clients compute now is not counted as a delay of time."""
        self._waiting_since = None

    async def are_idle(self) -> bool:
        """Whether no client can do anything before time moves, and the lab has received all that they sent.

        Clients that make time wait for MAX_WORK processor seconds without a pause are waited for no longer.
        """
        before, self._last_used = self._last_used, self._used()
        used = self._last_used
        if used == self._idle_at and not self._has_news:
            return True
        if self._waiting_since is None:
            self._waiting_since = used
        if sum(used.values()) - sum(self._waiting_since.values()) > MAX_WORK:
            return True
        if used != before:  # cheaper than to inspect each thread
            return False
        await self._loop.until_idle()
        if self._used() != used or not all(map(self._is_asleep, used)) or self._used() != used:
            return False
        self._idle_at, self._has_news, self._waiting_since = used, False, None
        return True

    def _used(self) -> dict[Identity, float]:
        """Processor time used so far. A process that can no longer be observed is dropped."""
        used = {}
        for identity, process in list(self._processes.items()):
            try:
                used[identity] = process.cpu()
            except ProcessGoneError:
                self._drop(identity)
        return used

    def _is_asleep(self, identity: Identity) -> bool:
        try:
            return self._processes[identity].is_asleep()
        except (KeyError, ProcessGoneError):
            self._drop(identity)
            return False

    def _drop(self, identity: Identity) -> None:
        if process := self._processes.pop(identity, None):
            process.close()
