"""A store whose state and resourceVersions went back under an open watch, as after etcd was restored from a backup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cluster.observers.reflector import Reflector
from chaos.core.resources import RESOURCES
from tests.kit.misbehaving import KubeServer, Lines, ManualClock, plain_api, pod, serving


@pytest.fixture
def server() -> KubeServer:
    made = KubeServer()
    for name in ("a", "b"):
        made.put(pod(name))
    return made


@pytest.fixture
def watch(server: KubeServer, tmp_path: Path) -> Iterator[tuple[Reflector, ManualClock, Lines]]:
    """The watch has listed both pods and seen a third."""
    clock, lines = ManualClock(), Lines()
    with serving(server) as port:
        observer = Reflector(RESOURCES["pods"], plain_api(tmp_path, port), clock)
        observer.start(lines)
        clock.until(observer.has_synced)
        server.put(pod("c"))
        clock.until(lambda: "c" in lines.names())
        yield observer, clock, lines
        observer.stop()
        clock.wake()


def test_nothing_is_proven_from_then_on(server: KubeServer, watch: tuple[Reflector, ManualClock, Lines]) -> None:
    observer, clock, lines = watch
    clock.advance(1.0)
    observer.prove_currency()
    proven, count = observer.current_until, len(lines.proofs())
    del server.objects["b"], server.objects["c"]
    server.version = 90
    for read in (observer.prove_currency, observer.note_version, observer.prove_currency):
        clock.advance(1.0)
        read()
    server.version = 200
    clock.advance(1.0)
    observer.prove_currency()
    assert (observer.current_until, len(lines.proofs())) == (proven, count)
    assert lines.windows() == [(proven, None, "resourceVersions went back: was etcd restored?")]


def test_an_old_answer_of_one_server_is_no_proof(
    server: KubeServer, watch: tuple[Reflector, ManualClock, Lines]
) -> None:
    observer, clock, lines = watch
    server.version -= 1
    clock.advance(1.0)
    before = len(lines.proofs())
    observer.prove_currency()
    assert len(lines.proofs()) == before
    server.version += 1
    clock.advance(1.0)
    observer.prove_currency()
    assert (observer.current_until, lines.windows()) == (clock.now(), [])
