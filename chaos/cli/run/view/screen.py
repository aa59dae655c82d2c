"""The alternate screen of a terminal: what it changes of the terminal, and only the lines that differ."""

from __future__ import annotations

import io
import os
import shutil
import signal
import termios
import threading
import tty
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"  # alternate screen, cursor; nothing on it


class Screen:
    """Draws frames on the terminal of ``stream``. ``keys``: the descriptor of the terminal's input, None without it.

    Any thread may call: a signal handler closes what a drawing thread has opened. Raises OSError, ValueError.
    """

    def __init__(self, stream: TextIO, keys: int | None) -> None:
        self.is_open = False
        self._stream, self._keys = stream, keys
        self._lock = threading.RLock()
        self._settings: list[Any] | None = None
        self._drawn: tuple[tuple[int, int], list[Text]] = ((0, 0), [])

    def size(self) -> tuple[int, int]:
        """Columns and lines of the terminal now."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            size = shutil.get_terminal_size()
        return (size.columns, size.lines) if size.columns and size.lines else (80, 24)

    def open(self) -> None:
        """Switch to the alternate screen, without a cursor; keys arrive one by one and are not echoed."""
        with self._lock:
            if self.is_open:
                return
            self._settings = _read_keys_singly(self._keys) if self._keys is not None else None
            self.is_open = True
            self._drawn = ((0, 0), [])
            self._write(_ENTER)

    def close(self, patience: float = -1) -> None:
        """Restore the terminal. Idempotent. ``patience``: seconds to wait for a thread that draws, -1 for no limit."""
        is_locked = self._lock.acquire(timeout=patience)
        try:
            if self.is_open:
                self.is_open = False
                self._restore()
        finally:
            if is_locked:
                self._lock.release()

    def draw(
        self, lines: Sequence[Text], size: tuple[int, int], is_allowed: Callable[[], bool], everything: bool = False
    ) -> None:
        """Show ``lines``, those that differ from the last ones or ``everything``; open the screen before.

        ``is_allowed`` is asked when no other thread can close the screen.
        """
        with self._lock:
            if not is_allowed():
                return
            self.open()
            drawn_size, drawn = self._drawn
            is_new = drawn_size != size
            console = Console(
                file=io.StringIO(), force_terminal=True, width=size[0], height=size[1], highlight=False, markup=False
            )
            changed = [
                f"\x1b[{row + 1};1H{_ansi(console, line)}\x1b[K"
                for row, line in enumerate(lines)
                if is_new or everything or row >= len(drawn) or line != drawn[row]
            ]
            if changed:
                self._write(("\x1b[2J" if is_new else "") + "".join(changed))
            self._drawn = (size, list(lines))

    def _restore(self) -> None:
        try:
            self._write(_LEAVE)
        finally:
            if self._keys is not None and self._settings is not None:
                _set_attributes(self._keys, self._settings)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _ansi(console: Console, line: Text) -> str:
    with console.capture() as captured:
        console.print(line, end="", crop=True, overflow="crop", no_wrap=True)
    return captured.get()


def _read_keys_singly(keys: int) -> list[Any] | None:
    """Set the terminal's input to single keys without echo; the settings before, or None if it has none."""
    try:
        settings = termios.tcgetattr(keys)
        single = termios.tcgetattr(keys)
        single[tty.LFLAG] &= ~(termios.ICANON | termios.ECHO)  # signals of Ctrl-C and Ctrl-Z stay
        single[tty.CC][termios.VMIN], single[tty.CC][termios.VTIME] = 1, 0
        _set_attributes(keys, single)
    except termios.error:
        return None
    return settings


def _set_attributes(keys: int, settings: list[Any]) -> None:
    """Set a terminal's attributes, also from the background, which SIGTTOU would stop; drop keys that were not read."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        termios.tcsetattr(keys, termios.TCSANOW, settings)
        termios.tcflush(keys, termios.TCIFLUSH)
    except termios.error as error:
        raise OSError(*error.args) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
