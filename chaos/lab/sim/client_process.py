"""Whether a client's process on this machine has something to do: what is woken counts before it gets a processor.

A thread that waits for a processor is runnable, so a process is idle if all its threads sleep and it used no processor
while they were inspected (proc(5): state in ``/proc/PID/task/TID/stat``). What cannot be seen: bytes that the kernel
has accepted but not delivered, which loopback does at once; a wait in wall time; the client's own child processes.
"""

from __future__ import annotations

import errno
import os
import time
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
