"""Many lines through one jump host: its sshd refuses those that begin while too many others begin."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Condition, Thread

import pytest

from chaos.hosts.transports.connection import connect
from chaos.hosts.transports.jump_limit import MAX_LOGINS, JumpHostLimiter
from chaos.hosts.transports.settings import HostSettings
from chaos.model.errors import Unreachable

LINES = 20


class Crowd:
    """A server that lets nobody log in: it hangs up on all once ``size`` are there, and ``pause`` later."""

    def __init__(self, listener: socket.socket, size: int, pause: float) -> None:
        self.peak = 0
        self._listener, self._size, self._pause = listener, size, pause
        self._there: list[socket.socket] = []
        self._changed = Condition()
        self._left = LINES

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        with ThreadPoolExecutor(1) as hangman:
            hangman.submit(self._hang_up)
            for _ in range(LINES):
                connection, _ = self._listener.accept()
                with self._changed:
                    self._there.append(connection)
                    self.peak = max(self.peak, len(self._there))
                    self._changed.notify()

    def _hang_up(self) -> None:
        while self._left:
            with self._changed:
                self._changed.wait_for(lambda: len(self._there) >= min(self._size, self._left))
                self._changed.wait(self._pause)
                self._left -= len(self._there)
                for connection in self._there:
                    connection.close()
                self._there.clear()


@contextmanager
def crowd(size: int, pause: float = 0.0) -> Iterator[Crowd]:
    with socket.create_server(("127.0.0.1", 0), backlog=LINES) as listener:
        server = Crowd(listener, size, pause)
        thread = Thread(target=server.serve)
        thread.start()
        yield server
        thread.join()


def settings(port: int) -> HostSettings:
    return HostSettings("host", "127.0.0.1", "ops", Path("known_hosts"), port=port, connect_timeout=60.0)


def knock(target: HostSettings) -> str:
    with pytest.raises(Unreachable) as refused:
        connect(target)
    return refused.value.message


def test_lines_through_a_jump_host_are_opened_a_few_at_a_time(tmp_path: Path) -> None:
    with crowd(MAX_LOGINS, pause=0.2) as server, ThreadPoolExecutor(LINES) as pool:
        jump = replace(settings(server.port), name="jump", known_hosts=tmp_path / "none")
        told = list(pool.map(knock, [replace(settings(1), jumps=(jump,))] * LINES))
    assert all(message.startswith("jump ") for message in told)
    assert server.peak == MAX_LOGINS


def test_hosts_without_one_are_reached_all_at_once(tmp_path: Path) -> None:
    with crowd(LINES) as server, ThreadPoolExecutor(LINES) as pool:
        told = list(pool.map(knock, [replace(settings(server.port), known_hosts=tmp_path / "none")] * LINES))
    assert all(message.startswith("host ") for message in told)
    assert server.peak == LINES


def test_nobody_waits_for_ever_and_each_jump_host_has_a_door_of_its_own() -> None:
    doors, jump, other = JumpHostLimiter(), replace(settings(22), connect_timeout=0.01), settings(2222)
    with ExitStack() as inside:
        for _ in range(MAX_LOGINS):
            inside.enter_context(doors.slot(jump))
        with (
            doors.slot(other),
            pytest.raises(Unreachable, match=r"host \(ops@127.0.0.1:22\) let nobody in for 0.04 s"),
        ):
            inside.enter_context(doors.slot(jump))
    with doors.slot(jump):
        pass
