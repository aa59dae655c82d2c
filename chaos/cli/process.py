"""The process: its standard streams, its garbage collector, and its end while threads still wait."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos.core.text import redact, redact_bytes

_CLOSED_PIPES: set[int] = set()
_GENERATIONS = (50_000, 20, 100)


def open_standard_streams() -> None:
    """Open closed standard streams: else the next file opened, as the journal, would get their descriptor."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name) or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the whole process
        setattr(sys, name, StandardStream(stream, number))


def redirect_to_null(number: int) -> None:
    """Discard further output of a stream, as of the interpreter's final flush."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


def is_closed_pipe(number: int) -> bool:
    """Whether the standard stream is a pipe whose other end was found closed: what is written is not read."""
    return number in _CLOSED_PIPES


class StandardStream:
    """A text or binary stream on the descriptor ``number``.

    Secrets are redacted. Once the other end of a pipe is closed, all is discarded: the command goes on, as a run must
    undo its fault, and ends with its usual exit code.
    """

    def __init__(self, stream: Any, number: int) -> None:
        self._stream, self._number = stream, number

    @property
    def buffer(self) -> StandardStream:
        """The binary stream, to which click writes bytes, and text if the encoding is ASCII."""
        return StandardStream(self._stream.buffer, self._number)

    def write(self, data: str | bytes) -> int:
        """Write redacted ``data``. Raises OSError, as for a full disk, but not for a closed pipe."""
        data = redact(data) if isinstance(data, str) else redact_bytes(bytes(data))
        try:
            return int(self._stream.write(data))
        except BrokenPipeError:
            self._discard()
            return len(data)

    def flush(self) -> None:
        """Flush. Raises OSError, but not for a closed pipe."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._discard()
            self._stream.flush()

    def _discard(self) -> None:
        _CLOSED_PIPES.add(self._number)
        redirect_to_null(self._number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ProcessEnd:
    """Ends the process with ``code`` after all other functions of atexit, if daemon threads are alive then.

    Created before anything else registers such a function: they run in reverse order, and this one does not return.
    """

    def __init__(self) -> None:
        self.code: int | None = None  # unknown: the interpreter ends as ever
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is None or not any(thread.daemon for thread in threading.enumerate()):
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # _flush() has reported it
                stream.flush()
        os._exit(self.code)


def tune_gc() -> None:
    """Collect rarely, and examine only the objects that are newer than the last collection.

    Pauses then do not grow with the timeline. Cyclic garbage that survives its first collection is not freed before
    :func:`free_finished_run`. For a process that ends with its runs, as it changes the whole process.
    """
    gc.set_threshold(*_GENERATIONS)
    gc.callbacks.append(_freeze_survivors)


def free_finished_run() -> None:
    """Free what a finished run has left, before the next one of the process."""
    gc.unfreeze()
    gc.collect()


def _freeze_survivors(phase: str, _: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
