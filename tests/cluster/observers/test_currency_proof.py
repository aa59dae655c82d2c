"""What consistent reads, bookmarks and replays prove together.

A store whose state and resourceVersions went back under an open watch, as after etcd was restored from a backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from chaos.cluster.observers import currency
from chaos.cluster.observers.currency import CurrencyProof, KnownVersions
from chaos.cluster.observers.reflector import Reflector
from chaos.cluster.reads import ConsistentRead, EventReplay
from chaos.core.kube import RESOURCES
from chaos.core.recording import Currency
from tests.kit.misbehaving import KubeServer, Lines, ManualClock, plain_api, pod, serving


@dataclass
class Watch:
    """A watch that has listed at 10, when the resourceVersion was 100 and object ``a`` existed."""

    source: str = "pods"
    known: KnownVersions = field(default_factory=KnownVersions)
    lines: Lines = field(default_factory=Lines)

    def __post_init__(self) -> None:
        self.proof = CurrencyProof(self.source, ManualClock(), self.lines, self.known)
        self.known.update("a", "90")
        self.proof.restart(ConsistentRead(10, "100", {"a": "90"}))

    def read(self, begin: float, version: int, **objects: str) -> Currency:
        """The proof of a read."""
        self.proof.prove(ConsistentRead(begin, str(version), {"a": "90", **objects}))
        return msgspec.json.decode(self.lines.all[-1].object, type=Currency)


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(currency, "_GRACE", 0.0)


def test_a_list_is_complete() -> None:
    (line,) = Watch().lines.all
    assert msgspec.json.decode(line.object, type=Currency) == Currency(10, [], "100", 10, 10)


def test_a_read_alone_proves_only_what_it_lists() -> None:
    proof = Watch().read(20, 200)
    assert (proof.until, proof.behind, proof.complete) == (20, [], 10)


def test_a_read_at_the_version_of_the_last_bookmark_is_complete() -> None:
    assert Watch().read(20, 100).complete == 20, "nothing in the whole store has changed"


def test_a_bookmark_completes_the_reads_before_it() -> None:
    watch = Watch()
    watch.read(20, 200)
    watch.read(21, 210)
    watch.proof.reach("205")
    assert watch.read(22, 220).complete == 20
    watch.proof.reach("205")
    assert watch.read(23, 230).complete == 20, "the same again"
    watch.proof.reach("230")
    assert watch.read(24, 230).complete == 24


def test_a_version_that_was_noted_between_two_reads_is_complete_with_a_bookmark() -> None:
    watch = Watch()
    watch.read(20, 200)
    watch.proof.note_version("300", 30)
    watch.proof.reach("300")
    watch.proof.note_version("310", 31)
    noted = msgspec.json.decode(watch.lines.all[-1].object, type=Currency)
    assert noted == Currency(20, [], "310", 30, 31), "it proves nothing of the objects"


def test_a_bookmark_that_a_list_contradicts_completes_nothing() -> None:
    """As from a proxy that delays the events of one object: the list has its version 190."""
    watch = Watch()
    watch.read(20, 200, late="190")
    watch.proof.note_version("300", 30)
    watch.proof.reach("300")
    watch.proof.note_version("310", 31)
    noted = msgspec.json.decode(watch.lines.all[-1].object, type=Currency)
    assert noted == Currency(20, ["late"], "310", 10, 31)
    watch.known.update("late", "190")
    assert watch.read(40, 320, late="190").complete == 30, "it has come"


def test_an_older_bookmark_takes_nothing_back() -> None:
    watch = Watch()
    watch.proof.reach("300")
    watch.proof.reach("200")
    assert watch.proof.complete_version == "300"
    assert watch.read(20, 290).complete == 20


def test_what_a_replay_has_is_waited_for() -> None:
    watch = Watch()
    watch.read(20, 200)
    watch.proof.expect(EventReplay("250", {"a": "220", "b": None, "c": "230"}))
    assert watch.read(21, 260).complete == 10
    watch.known.update("a", "240")
    watch.known.update("b", "150")
    watch.known.update("c", "230")
    assert watch.read(22, 270, a="240", c="230").complete == 10, "b is not known to be deleted"
    watch.known.delete("b")
    proof = watch.read(23, 280, a="240", c="230")
    assert (proof.complete, watch.proof.complete_version) == (20, "250")


def test_a_later_replay_replaces_an_earlier_one() -> None:
    watch = Watch()
    watch.read(20, 200)
    watch.proof.expect(EventReplay("250", {"never": "240"}))
    watch.proof.expect(EventReplay("260", {}))
    assert watch.read(21, 270).complete == 20
    watch.proof.expect(EventReplay("200", {}))
    assert watch.proof.complete_version == "260"


def test_what_a_read_has_listed_is_waited_for_even_if_the_next_has_it_no_more() -> None:
    watch = Watch()
    assert watch.read(20, 200, brief="190").behind == ["brief"]
    assert watch.read(21, 210).behind == ["brief"]
    assert watch.proof.listed_until == 10
    watch.known.update("brief", "190")
    assert watch.read(22, 220).behind == ["brief"], "its deletion is not received"
    watch.known.delete("brief")
    assert watch.read(23, 230).behind == []


def test_after_a_new_list_nothing_from_before_it_is_waited_for() -> None:
    watch = Watch()
    watch.read(20, 200, lost="190")
    watch.proof.expect(EventReplay("250", {"lost": "190"}))
    watch.proof.restart(ConsistentRead(30, "300", {"a": "90"}))
    proof = watch.read(31, 310)
    assert (proof.behind, proof.complete) == ([], 30)


def test_events_have_no_bookmarks_so_their_reads_are_complete() -> None:
    watch = Watch("events")
    assert watch.read(20, 200).complete == 20
    assert watch.read(21, 210, late="205").complete == 20
    assert watch.proof.complete_version == "200"


def test_resource_versions_that_are_no_numbers_prove_no_completeness() -> None:
    watch = Watch()
    watch.proof.reach("abc")
    watch.proof.prove(ConsistentRead(20, "abc", {"a": "90"}))
    assert watch.proof.complete_until == 10


def test_a_read_that_is_older_than_the_watch_proves_nothing() -> None:
    """From one server of several that breaks its promise, or from a store that was restored."""
    watch = Watch()
    watch.known.update("b", "150")
    watch.proof.reach("200")
    for begin in (20.0, 21.0):
        watch.proof.prove(ConsistentRead(begin, "120", {"a": "90"}), known_version="200")
    watch.proof.note_version("130", 22, known_version="200")
    assert (len(watch.lines.all), watch.proof.until, watch.proof.complete_until) == (1, 10, 10)
    assert watch.proof.is_reversed, "three in a row"
    assert watch.read(30, 300, b="150") == Currency(10, [], "100", 10, 10), "no proof since the first"


def test_one_old_answer_among_others_is_only_left_out() -> None:
    watch = Watch()
    for begin in range(20, 30, 2):
        watch.proof.prove(ConsistentRead(begin, "95", {"a": "90"}), known_version="100")
        assert watch.read(begin + 1, 100 + begin).until == begin + 1
    assert not watch.proof.is_reversed


def test_a_list_that_is_older_than_what_is_complete_proves_nothing() -> None:
    watch = Watch()
    watch.proof.reach("200")
    watch.proof.restart(ConsistentRead(30, "150", {"a": "90"}))
    assert (watch.proof.is_reversed, watch.proof.until) == (True, 10)


@pytest.mark.parametrize(("deletion", "behind"), [("250", ["b"]), ("350", []), ("", [])])
def test_an_object_in_an_older_state_than_its_list_should_have(deletion: str, behind: list[str]) -> None:
    """As after ``etcdutl snapshot restore --bump-revision``: the numbers grow, the state is that of the backup."""
    watch = Watch()
    watch.known.update("b", "190")
    assert watch.read(20, 200, b="150").behind == ["b"]
    watch.known.delete("b", deletion)
    assert watch.read(30, 300, b="150").behind == behind


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
