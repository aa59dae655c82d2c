"""The clock of a time source, as the lab serves one (protocol: ``chaos/lab/sim/lockstep.py``)."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.core.clock.system import WakeEvent, wait_readable
from chaos.core.errors import NodefallError
from chaos.core.threads import SYSTEM_THREADS

_ANSWER_TIMEOUT = 10.0  # wall seconds for an answer that involves no sleep
_STALL_TIMEOUT = 60.0  # wall seconds of a sleep after which the source's time must have moved


class _Connection:
    """One connection to a time source. Raises NodefallError when it breaks.

    ``is_awaited``: time stands still while this process has anything to do, as the source observes it.
    """

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
            raise self._error(f"it does not support the role {role}")
        identity = _process_identity() if role != "observer" else ""
        self.is_awaited = bool(identity) and self.request(f"process {identity}") == "ok"

    def request(self, line: str) -> str:
        self.send(line)
        return self.read_line()

    def send(self, line: str) -> None:
        try:
            self.socket.sendall(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._closed() from error
        except OSError as error:
            raise self._error(str(error)) from error

    def read_line(self) -> str:
        """The next line; the timeout is for a line that is already on its way."""
        while b"\n" not in self._buffer:
            try:
                data = self.socket.recv(4096)
            except ConnectionResetError:  # a source that ends with a request unread resets the connection
                data = b""
            except OSError as error:
                raise self._error(str(error)) from error
            if not data:
                raise self._closed()
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

    def _closed(self) -> NodefallError:
        return self._error("it closed the connection")

    def _error(self, why: str) -> NodefallError:
        return NodefallError(f"{self._where}: {why}", hint="check that the lab is still running (nodefall lab status)")


def _process_identity() -> str:
    """ID and start of this process, "" on systems without /proc."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return f"{os.getpid()} {stat.rpartition(')')[2].split()[19]}"


class _PerThread(threading.local):
    """The calling thread's own connection, while that thread takes part in lockstep."""

    connection: _Connection | None = None


class RemoteClock:
    """The time of a time source. Every method raises NodefallError.

    A thread takes part in lockstep from its first sleep until :meth:`release` or its end: time stands still for a
    moment after each of its sleeps, and inside :meth:`participant` whenever the thread does not sleep.
    """

    threads = SYSTEM_THREADS

    def __init__(self, address: str, port: int) -> None:
        self._address, self._port = address, port
        self._observer: _Connection | None = None
        self._lock = threading.Lock()
        self._wake_event = WakeEvent()
        self._thread = _PerThread()
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
        """Sleep ``seconds``; False if :meth:`wake` ended the sleep early."""
        if seconds <= 0:
            return not wait_readable(0, self._wake_event)
        try:
            connection = self._thread.connection
            if connection is None:
                connection = self._thread.connection = self._connect("sleeper")
            # Whole microseconds, rounded up: the source has no finer resolution, and must not answer early.
            now = connection.parse_time(connection.request("now"))
            return self._sleep_until(connection, math.ceil((now + seconds) * 1e6) / 1e6)
        except NodefallError:
            self.release()
            raise

    def gather(self) -> None:
        """No-op: much time of the source may go by in a moment."""

    def settle(self) -> bool:
        """Wait until this process has done all that needs no time of the source, which stands still meanwhile.

        Without a part in lockstep, and where the source cannot observe this process: False, immediately.
        """
        connection = self._thread.connection
        if connection is None or not connection.is_awaited:
            return False
        try:
            self._sleep_until(connection, 0.0)
        except NodefallError:
            self.release()
            raise
        return True

    def wake(self) -> None:
        """End every sleep, now and from now on, until :meth:`resume`. Safe in a signal handler."""
        self._wake_event.set()

    def resume(self) -> None:
        """Let sleeps last again after :meth:`wake`."""
        self._wake_event.clear()

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Hold time still whenever the calling thread does not sleep. Does not nest."""
        self.release()
        self._thread.connection = self._connect("participant")
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """End the calling thread's part in lockstep; its next sleep begins a new one."""
        connection, self._thread.connection = self._thread.connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the calling thread's connection and the shared ones."""
        self.release()
        with self._lock:
            if self._observer:
                self._observer.close()
                self._observer = None
        self._wake_event.close()

    def _connect(self, role: str) -> _Connection:
        return _Connection(self._address, self._port, role)

    def _sleep_until(self, connection: _Connection, until: float) -> bool:
        connection.send(f"sleep {until:.6f}")
        before = -math.inf
        while not (ready := wait_readable(_STALL_TIMEOUT, connection.socket, self._wake_event)):
            now = self.now()
            if now <= before:
                raise NodefallError(
                    f"time source {self._address}:{self._port}: time has stood still for {_STALL_TIMEOUT:g} s",
                    hint="end the lockstep participant that neither sleeps nor leaves",
                )
            before = now
        if self._wake_event.fileno() not in ready:
            connection.parse_time(connection.read_line())
            return True
        connection.send("wake")
        connection.parse_time(connection.read_line())
        return False
