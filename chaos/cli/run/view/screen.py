"""The screen of the live view: the terminal, a thread that draws and reads keys, and signals that stop it."""

from __future__ import annotations

import io
import logging
import os
import re
import select
import shutil
import signal
import termios
import threading
import time
import tty
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from chaos.cli.output import is_foreground

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"  # alternate screen, cursor; nothing on it
PERIOD = 0.25  # wall seconds between two frames at most
_REPAIR_SECONDS = 5.0  # between two frames that are drawn wholly, over what other programs may have written
_JOIN_SECONDS = 5.0  # for the thread to end; a terminal may be stopped by Ctrl-S
_ESCAPE_SEQUENCE = re.compile(rb"\x1b(\[[0-9;?]*[ -~]|O[ -~])?")  # of an arrow and other keys without a meaning here
_log = logging.getLogger(__name__)
_STOPPING = (signal.SIGTSTP, signal.SIGQUIT)  # Ctrl-Z and Ctrl-\: what they do by default stays


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


class TerminalSignals:
    """Calls ``suspend`` before Ctrl-Z stops or Ctrl-\\ ends the process, and ``resume`` when it continues.

    Changes nothing outside the main thread. A signal that is ignored or handled by others stays so.
    """

    def __init__(self, suspend: Callable[[], None], resume: Callable[[], None]) -> None:
        self._suspend, self._resume = suspend, resume
        self._former: dict[int, Any] = {}

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _STOPPING:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._former[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Idempotent."""
        while self._former:
            number, handler = self._former.popitem()
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        try:
            self._suspend()
        except (OSError, ValueError):
            pass  # the terminal is gone; the signal does what it does
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, self._handle)  # it was stopped, and continues
            self._resume()
