"""Many connections through one jump host: its sshd drops logins while too many others are in progress."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Condition, Thread

import pytest

from chaos.core.errors import Unreachable
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.login_slots import MAX_LOGINS, JumpHostLimiter
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.connection import connect

CONNECTIONS = 20


class Crowd:
    """A server without logins: it closes all connections ``pause`` seconds after ``size`` of them are open."""

    def __init__(self, listener: socket.socket, size: int, pause: float) -> None:
        self.peak = 0
        self._listener, self._size, self._pause = listener, size, pause
        self._open: list[socket.socket] = []
        self._changed = Condition()
        self._remaining = CONNECTIONS

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        with ThreadPoolExecutor(1) as closer:
            closer.submit(self._close_all)
            for _ in range(CONNECTIONS):
                connection, _ = self._listener.accept()
                with self._changed:
                    self._open.append(connection)
                    self.peak = max(self.peak, len(self._open))
                    self._changed.notify()

    def _close_all(self) -> None:
        while self._remaining:
            with self._changed:
                self._changed.wait_for(lambda: len(self._open) >= min(self._size, self._remaining))
                self._changed.wait(self._pause)
                self._remaining -= len(self._open)
                for connection in self._open:
                    connection.close()
                self._open.clear()


@contextmanager
def crowd(size: int, pause: float = 0.0) -> Iterator[Crowd]:
    with socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS) as listener:
        server = Crowd(listener, size, pause)
        thread = Thread(target=server.serve)
        thread.start()
        yield server
        thread.join()


def settings(port: int) -> HostSettings:
    return HostSettings("host", "127.0.0.1", "ops", Path("known_hosts"), port=port, connect_timeout=60.0)


def error_of(target: HostSettings) -> str:
    with pytest.raises(Unreachable) as caught:
        connect(target, HostKeyPin())
    return caught.value.message


def test_logins_at_a_jump_host_are_limited(tmp_path: Path) -> None:
    with crowd(MAX_LOGINS, pause=0.2) as server, ThreadPoolExecutor(CONNECTIONS) as pool:
        jump = replace(settings(server.port), name="jump", known_hosts=tmp_path / "none")
        messages = list(pool.map(error_of, [replace(settings(1), jumps=(jump,))] * CONNECTIONS))
    assert all(message.startswith("jump ") for message in messages)
    assert server.peak == MAX_LOGINS


def test_hosts_without_a_jump_host_are_connected_at_once(tmp_path: Path) -> None:
    with crowd(CONNECTIONS) as server, ThreadPoolExecutor(CONNECTIONS) as pool:
        messages = list(
            pool.map(error_of, [replace(settings(server.port), known_hosts=tmp_path / "none")] * CONNECTIONS)
        )
    assert all(message.startswith("host ") for message in messages)
    assert server.peak == CONNECTIONS


def test_the_wait_has_a_limit_and_each_jump_host_has_separate_slots() -> None:
    limiter, jump, other = JumpHostLimiter(), replace(settings(22), connect_timeout=0.01), settings(2222)
    with ExitStack() as stack:
        for _ in range(MAX_LOGINS):
            stack.enter_context(limiter.slot(jump))
        with (
            limiter.slot(other),
            pytest.raises(
                Unreachable,
                match=r"timed out after 0.04 s waiting for .* jump host host \(ops@127.0.0.1:22\) \(6 in progress\)",
            ),
        ):
            stack.enter_context(limiter.slot(jump))
    with limiter.slot(jump):
        pass
