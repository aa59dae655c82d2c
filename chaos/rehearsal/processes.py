"""Tasks in forked processes: each begins with what this process has in memory, and changes none of it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryDirectory
from typing import TypeVar

from chaos.core.errors import NodefallError

T = TypeVar("T")
_CONTEXT = multiprocessing.get_context("fork")
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_DONE, _FAILED = b"+", b"!"
_GENERATIONS = (50_000, 20, 100)


def run_forked(tasks: Sequence[T], work: Callable[[T], bytes], jobs: int) -> Generator[tuple[int, bytes], None, None]:
    """The index and the result of each task, as they end; at most ``jobs`` at a time.

    All are ended when the iterator is closed or raises. Raises NodefallError if a process is killed, RuntimeError with
    the traceback if ``work`` fails: it should return expected failures.
    """
    with TemporaryDirectory(prefix="nodefall-rehearsal-") as folder:  # a process that is killed cannot remove its files
        yield from _run_all(tasks, partial(_work_in, folder, work), jobs)


def _work_in(folder: str, work: Callable[[T], bytes], task: T) -> bytes:
    tempfile.tempdir = folder
    return work(task)


def _run_all(tasks: Sequence[T], work: Callable[[T], bytes], jobs: int) -> Generator[tuple[int, bytes], None, None]:
    left = list(range(len(tasks)))
    running: dict[Connection, tuple[int, multiprocessing.process.BaseProcess]] = {}
    try:
        while left or running:
            while left and len(running) < jobs:
                index = left.pop(0)
                receiver, process = _start(partial(work, tasks[index]), list(running))
                running[receiver] = index, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)  # noqa: S101 - nothing else was given
                index, process = running.pop(ready)
                yield index, _result(ready, process)
    finally:
        for receiver, (_, process) in running.items():
            process.kill()
            process.join()
            receiver.close()


def _start(
    work: Callable[[], bytes], receivers: Sequence[Connection]
) -> tuple[Connection, multiprocessing.process.BaseProcess]:
    """``receivers``: of the processes that run."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_run, args=(sender, work, (*receivers, receiver)), daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # Python loses what a handler raises within a fork
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sender.close()
    return receiver, process


def _run(sender: Connection, work: Callable[[], bytes], receivers: Sequence[Connection]) -> None:
    """In the new process, whose parent ends it: Ctrl-C of a terminal reaches both.

    It closes ``receivers``, of which fork has made copies: while one is open, a large result waits for a reader, also
    when the parent has died.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
    for receiver in receivers:
        receiver.close()
    try:
        message = _DONE + work()
    except Exception as error:  # noqa: BLE001 - raised with its traceback by the parent
        message = _FAILED + "".join(traceback.format_exception(error)).encode()
    try:
        sender.send_bytes(message)
    except BrokenPipeError:  # the parent has died
        os._exit(1)


def _result(receiver: Connection, process: multiprocessing.process.BaseProcess) -> bytes:
    try:
        message = receiver.recv_bytes()
    except (EOFError, OSError):  # OSError: within its result
        process.join()
        raise NodefallError(
            f"a process of the rehearsal was killed: exit code {process.exitcode}",
            hint="check the memory of this machine, and use fewer --jobs",
        ) from None
    finally:
        receiver.close()
    process.join()
    if message[:1] == _FAILED:
        raise RuntimeError(message[1:].decode())
    return message[1:]


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely in the block: that takes a quarter less CPU time, and a few MB."""
    before = gc.get_threshold()
    gc.set_threshold(*_GENERATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
