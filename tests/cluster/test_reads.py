"""Replays of a watch.

An open watch: whether there is something to read.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.cluster.api import WatchStream
from chaos.cluster.client import ApiClient
from chaos.cluster.errors import KubeRejected
from chaos.cluster.reads import EventReplay, replay_events
from tests.kit.misbehaving import KubeServer, plain_api, pod, serving

PODS = "/api/v1/pods"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[KubeServer, ApiClient]]:
    state = KubeServer()
    with serving(state) as port:
        yield state, plain_api(tmp_path, port)


def test_the_last_version_of_each_object_up_to_the_bookmark(server: tuple[KubeServer, ApiClient]) -> None:
    state, api = server
    state.put(pod("before"))
    state.put(pod("a"))
    state.put(pod("a"))
    state.put(pod("brief"))
    state.delete("brief")
    state.bookmark()
    state.put(pod("after"))
    assert replay_events(api, PODS, "101") == EventReplay("105", {"uid-a": "103", "uid-brief": None})
    query = state.requests[-1][1]
    assert (query["resourceVersion"], query["allowWatchBookmarks"], query["timeoutSeconds"]) == ("101", "true", "3")


@pytest.mark.parametrize("line", [b"{]\n", b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n'])
def test_a_watch_that_fails_proves_nothing(server: tuple[KubeServer, ApiClient], line: bytes) -> None:
    state, api = server
    state.say(line)
    state.bookmark()
    assert replay_events(api, PODS, "100") is None


def test_a_watch_that_ends_without_a_bookmark_proves_nothing(server: tuple[KubeServer, ApiClient]) -> None:
    state, api = server
    state.end_at_once = True
    assert replay_events(api, PODS, "100") is None


def test_a_version_that_is_too_old(server: tuple[KubeServer, ApiClient]) -> None:
    state, api = server
    state.put(pod("a"))
    state.compact()
    with pytest.raises(KubeRejected, match="too old"):
        replay_events(api, PODS, "100")
    state.gone_as_event = True
    assert replay_events(api, PODS, "100") is None


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
