"""An open watch: whether there is something to read."""

from __future__ import annotations

import socket
from types import SimpleNamespace

from chaos.cluster.api import WatchStream


def open_over(sock: socket.socket) -> WatchStream:
    response = SimpleNamespace(connection=SimpleNamespace(sock=sock), close=lambda: None)
    stream = WatchStream(lambda: response, "watch of /x")
    stream.__enter__()
    return stream


def test_a_stream_has_input_when_bytes_wait() -> None:
    here, there = socket.socketpair()
    with here, there:
        stream = open_over(here)
        assert not stream.has_input()
        there.send(b"{}")
        assert stream.has_input()
        here.recv(2)
        assert not stream.has_input()


def test_a_read_of_a_connection_that_has_ended_does_not_wait() -> None:
    here, there = socket.socketpair()
    stream = open_over(here)
    there.close()
    assert stream.has_input()
    here.close()
    assert stream.has_input()
