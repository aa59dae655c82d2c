"""Logging of a run to its directory, and of a command to stderr or a file.

Modules log to ``logging.getLogger(__name__)`` and never configure logging. The handlers here are attached to the logger
``chaos`` for a limited time. While one is attached, that logger passes on everything down to DEBUG; what the loggers
above it receive is the same as without it, and its own settings are restored when the last handler is detached.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from chaos.core.files import private_opener
from chaos.core.redaction import redact

DEBUG_LOG = "debug.log"
MAX_BYTES = 10 << 20  # of one file
BACKUP_COUNT = 2
EARLY_RECORDS = 10_000  # records held until the run has a directory
FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)s [%(threadName)s] %(message)s"

_PACKAGE_LOGGER = logging.getLogger("chaos")
_PACKAGE_LOGGER.addHandler(logging.NullHandler())  # as libraries do: without handlers, nothing is printed to stderr
_lock = threading.Lock()
_attached: list[logging.Handler] = []
_saved: tuple[int, bool] = (logging.NOTSET, True)  # level and propagate of the package's logger
_current_run: ContextVar[RunLog | None] = ContextVar("chaos_run_log", default=None)
_active_runs: set[RunLog] = set()


class RedactingFormatter(logging.Formatter):
    """Formats records in UTC, with registered secrets redacted in messages and tracebacks."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__(FORMAT, "%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class RunLog(logging.Handler):
    """Handler for the records of one run; holds them until :meth:`open` names the run's directory.

    A record belongs to the run in whose context it was logged. One without a context, as of a thread that a library
    started, belongs to the only active run, or to none where there are several.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._early: deque[logging.LogRecord] = deque(maxlen=EARLY_RECORDS)
        self._file: RotatingFileHandler | None = None

    def open(self, directory: Path) -> None:
        """Write to ``directory`` from now on, beginning with the records held so far."""
        self.acquire()
        try:
            self._file = _file_handler(directory / DEBUG_LOG)
            while self._early:
                self._file.handle(self._early.popleft())
        finally:
            self.release()

    def filter(self, record: logging.LogRecord) -> bool:
        run = _current_run.get()
        owned = run is self or (run is None and _active_runs == {self})
        return owned and bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        if self._file:
            self._file.handle(record)
        else:
            self._early.append(record)

    def close(self) -> None:
        if self._file:
            self._file.close()
        super().close()


class _PassOn(logging.Handler):
    """Passes on to the loggers above what they would receive if no handler of ours were attached."""

    def emit(self, record: logging.LogRecord) -> None:
        parent = _PACKAGE_LOGGER.parent
        level, propagate = _saved
        if parent and parent.hasHandlers() and propagate and record.levelno >= (level or parent.getEffectiveLevel()):
            parent.callHandlers(record)


if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler


class _IgnoreErrors(logging.Handler):
    """Loses records that cannot be written, as on a full disk or to a closed stderr, which must not fail the run."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - a name of logging
        """Ignore the error."""


class _LogFile(_IgnoreErrors, RotatingFileHandler):
    """A log file, rotated if ``maxBytes`` is not 0."""

    def close(self) -> None:
        with suppress(OSError):  # closing writes what is buffered
            super().close()


class _RunLogFile(_LogFile):
    """The log file in a run directory, which is private."""

    def _open(self) -> TextIOWrapper:
        descriptor = private_opener(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding=self.encoding)


class _LogStream(_IgnoreErrors, _StreamHandler):
    """A log on stderr."""


_PASS_ON = _PassOn(logging.DEBUG)


@contextmanager
def run_log() -> Iterator[RunLog]:
    """Collect the records of the run in the ``with`` block; :meth:`RunLog.open` decides where they go."""
    log = RunLog()
    token = _current_run.set(log)
    _active_runs.add(log)
    try:
        with attached(log):
            yield log
    finally:
        _active_runs.discard(log)
        _current_run.reset(token)


@contextmanager
def attached(handler: logging.Handler) -> Iterator[None]:
    """Attach ``handler`` to the package's logger, and close it afterwards."""
    _attach(handler)
    try:
        yield
    finally:
        _detach(handler)
        handler.close()


def log_file_handler(path: Path) -> logging.Handler:
    """A handler that appends everything to ``path``. Raises OSError if it cannot be opened."""
    handler = _LogFile(path, encoding="utf-8")
    handler.setFormatter(RedactingFormatter())
    return handler


def stderr_handler(level: int) -> logging.Handler:
    """A handler that prints records from ``level`` on to stderr."""
    handler = _LogStream()
    handler.setLevel(level)
    handler.setFormatter(RedactingFormatter())
    return handler


def _file_handler(path: Path) -> RotatingFileHandler:
    handler = _RunLogFile(path, maxBytes=MAX_BYTES, backupCount=BACKUP_COUNT, encoding="utf-8", delay=True)
    handler.setFormatter(RedactingFormatter())
    return handler


def _attach(handler: logging.Handler) -> None:
    global _saved  # noqa: PLW0603 - settings of one logger of the process
    with _lock:
        if not _attached:
            _saved = _PACKAGE_LOGGER.level, _PACKAGE_LOGGER.propagate
            _PACKAGE_LOGGER.addHandler(_PASS_ON)
            _PACKAGE_LOGGER.propagate = False
            _PACKAGE_LOGGER.setLevel(logging.DEBUG)
        _attached.append(handler)
        _PACKAGE_LOGGER.addHandler(handler)


def _detach(handler: logging.Handler) -> None:
    with _lock:
        _PACKAGE_LOGGER.removeHandler(handler)
        _attached.remove(handler)
        if not _attached:
            level, propagate = _saved
            _PACKAGE_LOGGER.setLevel(level)
            _PACKAGE_LOGGER.propagate = propagate
            _PACKAGE_LOGGER.removeHandler(_PASS_ON)
