"""The only now() and the only sleep of the product: this machine's time, or a time source's."""

from __future__ import annotations

import math
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from chaos.model.errors import NodefallError

_ANSWER_TIMEOUT = 10.0  # wall seconds for an answer that needs no waiting
_STALL_TIMEOUT = 60.0  # wall seconds of a sleep after which the source must show that its time moves


class _WakeEvent:
    """A flag that selectors can wait on; setting it takes no lock, so a signal handler may."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    def fileno(self) -> int:
        return self._read.fileno()

    def set(self) -> None:
        with suppress(BlockingIOError):  # full: it is set already
            self._write.send(b"!")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while self._read.recv(4096):
                pass

    def close(self) -> None:
        self._read.close()
        self._write.close()


def _wait_readable(timeout: float | None, *sources: _WakeEvent | socket.socket) -> set[int]:
    """Numbers of the ``sources`` that can be read, empty after ``timeout`` seconds of wall time."""
    with selectors.DefaultSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        return {key.fd for key, _ in selector.select(timeout)}


class SystemClock:
    """This machine's time, read once and carried on by the monotonic clock: it never jumps."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()
        self._wake_event = _WakeEvent()

    def now(self) -> float:
        return time.monotonic() + self._offset

    def sleep(self, seconds: float) -> bool:
        """Sleep ``seconds``; False if woken early because the run is stopping."""
        return not _wait_readable(max(seconds, 0.0), self._wake_event)

    def wake(self) -> None:
        """End every sleep, now and from now on, until :meth:`resume`; safe in a signal handler."""
        self._wake_event.set()

    def resume(self) -> None:
        self._wake_event.clear()

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Nothing: real time asks nobody."""
        yield

    def release(self) -> None:
        """Nothing: this clock holds nothing for a thread."""

    def close(self) -> None:
        self._wake_event.close()


class _Connection:
    """One connection to a time source. Raises NodefallError when it breaks."""

    def __init__(self, address: str, port: int, role: str) -> None:
        self._where = f"time source {address}:{port}"
        self._buffer = b""
        try:
            self.socket = socket.create_connection((address, port), timeout=_ANSWER_TIMEOUT)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise self._error(str(error)) from error
        if self.request(f"hello {role}") != "ok":
            self.close()
            raise self._error(f"it does not know the role {role}")

    def request(self, line: str) -> str:
        self.send(line)
        return self.read_line()

    def send(self, line: str) -> None:
        try:
            self.socket.sendall(line.encode() + b"\n")
        except OSError as error:
            raise self._error(str(error)) from error

    def read_line(self) -> str:
        """The next line; the time-out is for a line that is already on its way."""
        while b"\n" not in self._buffer:
            try:
                data = self.socket.recv(4096)
            except OSError as error:
                raise self._error(str(error)) from error
            if not data:
                raise self._error("it closed the connection")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("ascii", "replace")

    def parse_time(self, answer: str) -> float:
        try:
            return float(answer)
        except ValueError as error:
            raise self._error(f"it answered {answer!r}") from error

    def close(self) -> None:
        self.socket.close()

    def __del__(self) -> None:  # the end of a thread ends its part in lockstep
        if hasattr(self, "socket"):
            self.socket.close()

    def _error(self, why: str) -> NodefallError:
        return NodefallError(f"{self._where}: {why}", hint="is the lab still running?")


class RemoteClock:
    """The time of a time source (protocol: the lab's lockstep module). Every method raises NodefallError.

    A thread takes part in lockstep from its first sleep on, until :meth:`release` or its own end: time stands still
    for a moment after each of its sleeps, and inside :meth:`participant` whenever it does not sleep.
    """

    def __init__(self, address: str, port: int) -> None:
        self._address, self._port = address, port
        self._observer: _Connection | None = None
        self._lock = threading.Lock()
        self._wake_event = _WakeEvent()
        self._thread_local = threading.local()
        self.now()

    def now(self) -> float:
        with self._lock:
            try:
                if self._observer is None:
                    self._observer = self._connect("observer")
                return self._observer.parse_time(self._observer.request("now"))
            except NodefallError:
                self._observer = None  # the next call connects again
                raise

    def sleep(self, seconds: float) -> bool:
        """Sleep ``seconds``; False if woken early because the run is stopping."""
        if seconds <= 0:
            return not _wait_readable(0, self._wake_event)
        line: _Connection | None = getattr(self._thread_local, "line", None)
        try:
            if line is None:
                line = self._thread_local.line = self._connect("sleeper")
            # Whole microseconds, rounded up: the answer has no more, and must not be before the time asked for.
            until = math.ceil((line.parse_time(line.request("now")) + seconds) * 1e6) / 1e6
            return self._sleep_until(line, until)
        except NodefallError:
            self.release()
            raise

    def wake(self) -> None:
        """End every sleep, now and from now on, until :meth:`resume`; safe in a signal handler."""
        self._wake_event.set()

    def resume(self) -> None:
        self._wake_event.clear()

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Hold time still whenever the calling thread does not sleep. Does not nest."""
        self.release()
        self._thread_local.line = self._connect("participant")
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """End the calling thread's part in lockstep; its next sleep begins a new one."""
        line: _Connection | None = getattr(self._thread_local, "line", None)
        if line is not None:
            self._thread_local.line = None
            line.close()

    def close(self) -> None:
        """Close what this thread and all threads share."""
        self.release()
        with self._lock:
            if self._observer:
                self._observer.close()
                self._observer = None
        self._wake_event.close()

    def _connect(self, role: str) -> _Connection:
        return _Connection(self._address, self._port, role)

    def _sleep_until(self, line: _Connection, until: float) -> bool:
        line.send(f"sleep {until:.6f}")
        before = -math.inf
        while not (ready := _wait_readable(_STALL_TIMEOUT, line.socket, self._wake_event)):
            now = self.now()
            if now <= before:
                raise NodefallError(
                    f"time source {self._address}:{self._port}: time has stood still for {_STALL_TIMEOUT:g} s",
                    hint="somebody who takes part in lockstep neither sleeps nor leaves",
                )
            before = now
        if self._wake_event.fileno() not in ready:
            line.parse_time(line.read_line())
            return True
        line.send("wake")
        line.parse_time(line.read_line())
        return False
