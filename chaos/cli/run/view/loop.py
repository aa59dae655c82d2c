"""The thread of the live view: reads keys and draws frames."""

from __future__ import annotations

import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable
from typing import TextIO

from rich.text import Text

from chaos.cli.run.view.foreground import is_foreground
from chaos.cli.run.view.screen import Screen

PERIOD = 0.25  # wall seconds between two frames at most
_REPAIR_SECONDS = 5.0  # between two frames that are drawn wholly, over what other programs may have written
_JOIN_SECONDS = 5.0  # for the thread to end; a terminal may be stopped by Ctrl-S
_ESCAPE_SEQUENCE = re.compile(rb"\x1b(\[[0-9;?]*[ -~]|O[ -~])?")  # of an arrow and other keys without a meaning here
_log = logging.getLogger(__name__)


class ViewLoop:
    """Draws ``build(columns, lines, silent)`` several times a second, and calls ``on_key`` with each character typed.

    ``silent``: wall seconds since the last :meth:`touch`. Nothing is drawn while the process is in the background.
    A view that fails restores the terminal, logs why, and ``has_failed``: it must not end the run.
    """

    def __init__(
        self,
        stream: TextIO,
        keys: int | None,
        build: Callable[[int, int, float], list[Text]],
        on_key: Callable[[str], None],
        on_failure: Callable[[], None],
    ) -> None:
        self.has_failed = False
        self._stream, self._keys = stream, keys
        self._build, self._on_key, self._on_failure = build, on_key, on_failure
        self._screen = Screen(stream, keys)
        self._is_hidden = self._is_ended = False
        self._touched = self._repaired = time.monotonic()
        self._reader, self._writer = os.pipe()
        self._thread = threading.Thread(target=self._run, name="live-view", daemon=True)

    def start(self) -> None:
        """Open the screen and begin to draw. Raises OSError, ValueError."""
        try:
            self._screen.open()
            self._thread.start()
        except (OSError, ValueError, RuntimeError):  # RuntimeError: no more threads
            self._screen.close()
            raise

    def touch(self) -> None:
        """The run was heard of."""
        self._touched = time.monotonic()

    def suspend(self) -> None:
        """Restore the terminal until :meth:`resume`. Raises OSError, ValueError."""
        self._is_hidden = True
        self._screen.close(patience=1.0)

    def resume(self) -> None:
        self._is_hidden = False

    def stop(self) -> None:
        """End the thread and restore the terminal. Raises OSError, ValueError."""
        self._is_ended = True
        os.write(self._writer, b"x")
        try:
            self._screen.close(patience=_JOIN_SECONDS)
        finally:
            self._thread.join(_JOIN_SECONDS)
            if not self._thread.is_alive():
                os.close(self._reader)
                os.close(self._writer)

    def _run(self) -> None:
        try:
            while not self._is_ended:
                self._draw()
                self._read_keys()
        except (OSError, ValueError) as error:  # the terminal is gone
            _log.debug("the live view ends: %s", error)
            self._fail()
        except Exception:  # noqa: BLE001 - a view must not end the run
            _log.exception("the live view failed")
            self._fail()

    def _fail(self) -> None:
        if self._is_ended:
            return
        self.has_failed = True
        try:
            self._screen.close()
        except (OSError, ValueError) as error:
            _log.debug("the terminal could not be restored: %s", error)
        try:
            self._on_failure()
        except (OSError, ValueError) as error:
            _log.debug("the lines of the view could not be printed: %s", error)

    def _draw(self) -> None:
        if self._is_hidden or not is_foreground(self._stream):
            return
        now, size = time.monotonic(), self._screen.size()
        lines = self._build(*size, now - self._touched)
        repairs = now - self._repaired >= _REPAIR_SECONDS
        if repairs:
            self._repaired = now
        self._screen.draw(lines, size, lambda: not (self._is_hidden or self._is_ended), everything=repairs)

    def _read_keys(self) -> None:
        """Wait for a key for as long as a frame lasts. Keys of a background process are not its own."""
        has_keys = self._keys is not None and self._screen.is_open and is_foreground(self._stream)
        sources = [self._reader, *([self._keys] if has_keys and self._keys is not None else [])]
        readable, _, _ = select.select(sources, [], [], PERIOD)
        if self._keys is None or self._keys not in readable or self._is_ended:
            return
        typed = os.read(self._keys, 64)
        if not typed:  # end of file
            self._keys = None
        for character in _ESCAPE_SEQUENCE.sub(b"", typed).decode("ascii", "ignore"):
            self._on_key(character)
