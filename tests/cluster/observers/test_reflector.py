"""The list/watch loop against a server that misbehaves: nothing lost, nothing doubled, and only proofs of currency."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.cluster import reads
from chaos.cluster.api import WatchStream
from chaos.cluster.client import ApiClient
from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.observers.cluster import HEALTH_PERIOD as PERIOD
from chaos.cluster.observers.cluster import ApiHealth
from chaos.cluster.observers.currency import CurrencyProof, KnownVersions
from chaos.cluster.observers.reflector import STALL, Reflector
from chaos.cluster.reads import METADATA_LIST, ConsistentRead
from chaos.core.kube import RESOURCES
from chaos.core.recording import Currency
from tests.kit.misbehaving import PATIENCE, KubeServer, Lines, ManualClock, plain_api, pod, serving


@dataclass
class Bench:
    server: KubeServer
    port: int
    api: ApiClient
    clock: ManualClock
    lines: Lines
    health: ApiHealth
    pods: Reflector

    def start(self) -> None:
        """Until the first watch is open."""
        self.pods.start(self.lines)
        self.clock.until(lambda: self.pods.has_synced() and self.server.watches == 1)

    def proven(self) -> Currency:
        """The proof that is taken now."""
        self.pods.prove_currency()
        return self.lines.proofs()[-1]

    def seen(self, *names: str, step: float = 0.0) -> None:
        """Wait until every name was emitted."""
        self.clock.until(lambda: set(names) <= set(self.lines.names()), step)

    def closed(self, step: float = 0.1) -> tuple[float, float, str]:
        """Wait for the end of the last blind window; the window."""
        self.clock.until(lambda: bool(self.lines.windows()) and self.lines.windows()[-1][1] is not None, step)
        start, end, reason = self.lines.windows()[-1]
        assert end is not None
        return start, end, reason

    def opened(self, watches: int) -> None:
        """Wait until so many watches have ever been opened."""
        self.clock.until(lambda: self.server.opened == watches)

    def blind(self, step: float = 0.0) -> float:
        """Wait for a blind window to open; its start."""
        self.clock.until(lambda: bool(self.lines.windows()) and self.lines.windows()[-1][1] is None, step)
        return self.lines.windows()[-1][0]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    server, clock = KubeServer(), ManualClock()
    for name in ("a", "b", "c"):
        server.put(pod(name))
    with serving(server) as port:
        api = plain_api(tmp_path, port)
        health = ApiHealth(api, clock)
        bench = Bench(server, port, api, clock, Lines(), health, Reflector(RESOURCES["pods"], api, clock))
        yield bench
        bench.pods.stop()
        bench.health.stop()
        clock.wake()


def bare(proof: Currency) -> Currency:
    """The proof without its resourceVersion."""
    return Currency(proof.until, proof.behind)


def test_lists_then_watches_without_a_gap(bench: Bench) -> None:
    bench.start()
    bench.server.put(pod("d"))
    bench.server.put(pod("a"))
    bench.server.delete("b")
    bench.server.put(pod("end"))
    bench.seen("end")
    assert bench.lines.events() == [
        ("LIST", "a", "101"),
        ("LIST", "b", "102"),
        ("LIST", "c", "103"),
        ("ADDED", "d", "104"),
        ("MODIFIED", "a", "105"),
        ("DELETED", "b", "106"),
        ("ADDED", "end", "107"),
    ]
    assert bench.lines.windows() == []


def test_a_watch_that_contradicts_a_list_is_listed_again(bench: Bench) -> None:
    """As behind a proxy that withholds the events of one object, and lets bookmarks pass."""
    bench.start()
    bench.server.put(pod("a"), quietly=True)
    bench.server.bookmark()
    bench.clock.until(lambda: bool(bench.lines.of("pods")) and bench.lines.of("pods")[-1].type == "BOOKMARK")
    assert bench.proven().behind == ["uid-a"]
    _, _, reason = bench.closed()
    assert reason == "a list has versions that a bookmark of the watch has passed"
    assert bench.lines.events()[-1] == ("LIST", "a", "104")
    assert bench.proven().behind == []


def test_only_the_allowed_fields_are_recorded(bench: Bench) -> None:
    bench.start()
    spec = {"nodeName": "n1", "containers": [{"name": "main", "env": [{"name": "TOKEN", "value": "secret"}]}]}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "secret", "kubernetes.io/config.source": "file"}
    metadata = {**pod("x")["metadata"], "annotations": annotations, "managedFields": [{"manager": "secret"}]}
    bench.server.put({**pod("x", spec=spec), "metadata": metadata})
    bench.seen("x")
    recorded = bytes(bench.lines.all[-1].object)
    assert b"secret" not in recorded
    assert json.loads(recorded)["spec"] == {"nodeName": "n1", "containers": [{"name": "main"}]}


@pytest.mark.parametrize(
    ("since", "waiting", "gathers"),
    [(10.0, False, False), (0.01, True, False), (0.01, False, True), (0.0, False, False)],  # the last: in one burst
)
def test_only_a_busy_watch_with_nothing_to_read_lets_events_gather(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, since: float, waiting: bool, gathers: bool
) -> None:
    monkeypatch.setattr(WatchStream, "has_input", lambda _: waiting)
    bench.start()
    for name, pause in (("d", 10.0), ("e", since), ("f", 10.0)):  # once f is seen, e was handled to the end
        bench.clock.advance(pause)
        bench.server.put(pod(name))
        bench.seen(name)
    assert (1010.0 + since in bench.clock.gathered) == gathers


def test_pages_are_put_together(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "LIST_PAGE_SIZE", 2)
    bench.start()
    assert bench.lines.names() == ["a", "b", "c"]
    assert [query.get("continue") for _, query in bench.server.requests[:2]] == [None, "2"]


def test_an_expired_continue_token_makes_one_full_list(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "LIST_PAGE_SIZE", 2)
    bench.server.expire_continue = True
    bench.start()
    assert bench.lines.names() == ["a", "b", "c"]
    assert "limit" not in bench.server.requests[2][1]


@pytest.mark.parametrize("as_event", [False, True])
def test_gone_is_answered_by_a_new_list_and_its_difference(bench: Bench, as_event: bool) -> None:
    bench.start()
    bench.clock.advance(10)
    bench.server.gone_as_event = as_event
    bench.server.put(pod("a"), quietly=True)
    bench.server.delete("b", quietly=True)
    bench.server.put(pod("d"), quietly=True)
    bench.server.compact()
    bench.server.end_watches()
    start, end, reason = bench.closed()
    assert bench.lines.events()[3:] == [("LIST", "a", "104"), ("LIST", "d", "106"), ("DELETED", "b", "102")]
    assert [line.note for line in bench.lines.of("pods") if line.type == "DELETED"] == ["missing at relist"]
    assert (start, end >= 1010, "410" in reason) == (1000.0, True, True), "nothing was proven since the first list"
    assert bench.lines.proofs()[-1].until >= 1010, "the new list proves what comes after it"
    assert bench.lines.changed() == ["uid-a", "uid-b", "uid-d"], "c has the same version"


def test_what_a_list_that_failed_has_brought_counts_as_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second list finds the same version of a as the first, of which only one page came."""
    monkeypatch.setattr(reads, "LIST_PAGE_SIZE", 1)
    bench.start()
    bench.server.put(pod("a"), quietly=True)
    bench.server.compact()
    bench.server.fail_continue = 1
    bench.server.end_watches()
    bench.closed()
    assert bench.lines.changed() == ["uid-a"]


def test_a_recreated_object_of_the_same_name_is_gone_before_it_is_new(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(10)
    bench.server.delete("b", quietly=True)
    bench.server.put({**pod("b"), "metadata": {**pod("b")["metadata"], "uid": "other"}}, quietly=True)
    bench.server.compact()
    bench.server.end_watches()
    bench.closed()
    uids = [json.loads(bytes(line.object))["metadata"]["uid"] for line in bench.lines.of("pods")[3:]]
    assert list(zip([t for t, _, _ in bench.lines.events()[3:]], uids, strict=True)) == [
        ("DELETED", "uid-b"),
        ("LIST", "other"),
    ]


def test_a_regular_end_is_no_blind_window(bench: Bench) -> None:
    bench.start()
    for number in range(3):
        bench.clock.advance(300)
        bench.server.end_watches()
        bench.opened(number + 2)
        bench.server.put(pod(f"after-{number}"))
        bench.seen(f"after-{number}")  # the new watch is open for us too, before time goes on
    assert bench.lines.windows() == []
    assert bench.server.count(watch=False) == 1


def test_a_server_that_ends_watches_at_once_is_not_hammered(bench: Bench) -> None:
    bench.server.end_at_once = True
    bench.pods = Reflector(RESOURCES["pods"], bench.api, bench.clock)
    bench.pods.start(bench.lines)
    bench.clock.until(lambda: bench.server.opened > 2, step=0.1)
    began, before = bench.clock.now(), len(bench.server.requests)
    bench.clock.until(lambda: bench.clock.now() > began + 60, step=0.1)
    assert len(bench.server.requests) - before <= 2 * 60 / 2.5 + 12  # a watch and a list per try, 2.5 to 5 s apart
    bench.server.end_at_once = False
    bench.server.put(pod("end"))
    bench.seen("end", step=0.1)


def test_a_cut_loses_and_doubles_nothing(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(100)
    bench.server.put(pod("d"))
    bench.seen("d")
    bench.clock.advance(7)
    bench.server.closing = True
    bench.server.cut_watches()
    bench.server.put(pod("e"))
    bench.server.put(pod("e"))
    bench.server.delete("d")
    bench.clock.advance(5)
    bench.server.closing = False
    bench.clock.until(lambda: len(bench.lines.events()) == 7, step=0.1)
    assert bench.lines.events()[3:] == [
        ("ADDED", "d", "104"),
        ("ADDED", "e", "105"),
        ("MODIFIED", "e", "106"),
        ("DELETED", "d", "107"),
    ]
    assert bench.lines.windows() == [], "what is only late is not lost"
    assert bench.server.count(watch=False) == 1


def test_a_cut_in_the_middle_of_a_line(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(50)
    bench.server.halve_next = True
    bench.server.put(pod("d"))
    bench.seen("d", step=0.1)
    assert bench.lines.events()[3:] == [("ADDED", "d", "104")]
    assert bench.lines.windows() == []


def test_a_server_that_is_down_and_comes_back(tmp_path: Path) -> None:
    server, clock, lines = KubeServer(), ManualClock(), Lines()
    server.put(pod("a"))
    with serving(server) as port:
        api = plain_api(tmp_path, port)
        pods = Reflector(RESOURCES["pods"], api, clock)
        pods.start(lines)
        clock.until(lambda: server.watches == 1)
        clock.advance(20)
    with pytest.raises(KubeUnreachable):
        pods.prove_currency()
    server.put(pod("b"))
    clock.advance(40)
    with serving(server, port=port):
        clock.until(lambda: "b" in lines.names(), step=0.1)
        pods.prove_currency()
        pods.stop()
    clock.wake()
    assert lines.events() == [("LIST", "a", "101"), ("ADDED", "b", "102")]
    first, last = lines.proofs()[0], lines.proofs()[-1]
    assert (first.until, last.until >= 1060, lines.windows()) == (1000.0, True, [])


def test_never_seen_is_blind_from_the_start(tmp_path: Path) -> None:
    server, clock, lines = KubeServer(), ManualClock(), Lines()
    server.answers["/api/v1/pods"] = (403, b'{"message":"pods is forbidden"}')
    with serving(server) as port:
        pods = Reflector(RESOURCES["pods"], plain_api(tmp_path, port), clock)
        pods.start(lines)
        clock.until(lambda: bool(lines.windows()))
        start, end, reason = lines.windows()[0]
        assert (start, end, pods.has_synced()) == (1000.0, None, False)
        assert "403 pods is forbidden" in reason
        pods.stop()
        clock.wake()


@pytest.mark.parametrize(("status", "waited_for"), [(403, False), (404, False), (500, True)])
def test_a_forbidden_resource_counts_as_synced(tmp_path: Path, status: int, waited_for: bool) -> None:
    server, clock, lines = KubeServer(), ManualClock(), Lines()
    resource = RESOURCES["poddisruptionbudgets"]
    server.answers[resource.path] = (status, b'{"message":"cannot list poddisruptionbudgets.policy"}')
    with serving(server) as port:
        watch = Reflector(resource, plain_api(tmp_path, port), clock, optional=True)
        watch.start(lines)
        clock.until(lambda: len(server.requests) > 2, step=1.0)
        assert watch.has_synced() is not waited_for
        assert lines.windows() == [(1000.0, None, lines.windows()[0][2])]
        assert "cannot list poddisruptionbudgets.policy" in lines.windows()[0][2]
        watch.stop()
        clock.wake()


def test_a_next_line_character_does_not_split_a_line(bench: Bench) -> None:
    bench.start()
    annotations = {"note": "one\u0085two\u2028three", "kubernetes.io/config.source": "a\u0085b"}
    bench.server.put({**pod("d"), "metadata": {**pod("d")["metadata"], "annotations": annotations}})
    bench.seen("d")
    recorded = json.loads(bytes(bench.lines.all[-1].object))
    assert recorded["metadata"]["annotations"] == {"kubernetes.io/config.source": "a\u0085b"}


def test_a_bookmark_moves_on_where_the_watch_is_resumed(bench: Bench) -> None:
    bench.start()
    bench.server.version += 50
    bench.server.bookmark()
    bench.clock.until(lambda: any(line.type == "BOOKMARK" for line in bench.lines.all))
    bench.clock.advance(300)
    bench.server.end_watches()
    bench.opened(2)
    assert bench.server.requests[-1][1]["resourceVersion"] == "153"


def test_one_undecodable_object_invalidates_nothing_else(bench: Bench) -> None:
    bad = {"status": {"phase": "Running", "containerStatuses": 7}}
    bench.server.put(pod("bad-in-list") | bad)
    bench.start()
    bench.server.put(pod("bad-in-watch") | bad)
    bench.server.say(b'{"type":"MODIFIED","object":{"metadata":{"name":["no","name"]}}}\n')
    bench.server.say(b"no json at all\n")
    bench.server.say(b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff"}}}\n')
    bench.server.put(pod("good"))
    bench.seen("good")
    notes = {
        json.loads(bytes(line.object))["metadata"]["name"]: line.note
        for line in bench.lines.of("pods")
        if isinstance(line.note, str)
    }
    assert set(notes) == {"bad-in-list", "bad-in-watch"}
    assert all(note.startswith("undecodable: ") for note in notes.values())
    moments = bench.lines.windows()
    assert len(moments) == 3
    assert all(start == end and "undecodable" in reason for start, end, reason in moments)


def test_the_first_list_is_a_proof(bench: Bench) -> None:
    bench.start()
    assert bench.lines.proofs() == [Currency(1000.0, version="103", complete=1000.0, read=1000.0)]
    assert [line.kind for line in bench.lines.all] == ["pods"] * 3 + ["current"], "after what it lists"


def test_a_quiet_watch_is_current(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(300)
    assert bare(bench.proven()) == Currency(1300.0)
    assert bench.pods.current_until == 1300.0
    assert bench.server.headers[-1]["accept"] == METADATA_LIST
    assert "resourceVersion" not in bench.server.requests[-1][1], "it is a consistent read"


@pytest.mark.parametrize("change", ["new", "changed", "deleted"])
def test_what_a_read_knows_and_the_watch_has_not_delivered_is_behind(bench: Bench, change: str) -> None:
    bench.start()
    bench.clock.advance(10)
    bench.proven()
    bench.clock.advance(5)
    bench.server.delivering.clear()
    uid = {"new": "uid-d", "changed": "uid-a", "deleted": "uid-b"}[change]
    if change == "deleted":
        bench.server.delete("b")
    else:
        bench.server.put(pod(uid.removeprefix("uid-")))
    assert bare(bench.proven()) == Currency(1015.0, [uid])
    bench.clock.advance(5)
    assert bare(bench.proven()) == Currency(1020.0, [uid])
    assert bench.pods.current_until == 1010.0
    bench.server.delivering.set()
    bench.clock.until(lambda: len(bench.lines.events()) == 4)
    assert bare(bench.proven()) == Currency(1020.0)
    assert bench.lines.windows() == []


def test_a_slow_answer_is_no_lag(bench: Bench) -> None:
    """The read was sent at 1010 and answered at 1025: what the watch had delivered by then proves 1010."""
    bench.start()
    bench.clock.advance(10)
    before = len(bench.server.requests)
    bench.server.flowing.clear()
    asking = threading.Thread(target=bench.pods.prove_currency)
    asking.start()
    bench.clock.until(lambda: len(bench.server.requests) > before)
    bench.clock.advance(15)
    bench.server.flowing.set()
    asking.join(PATIENCE)
    assert bare(bench.lines.proofs()[-1]) == Currency(1010.0)
    assert bench.lines.of("current")[-1].t == 1025.0
    bench.proven()
    assert bench.lines.windows() == []


def test_an_answer_that_was_overtaken_proves_nothing_new(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(10)
    bench.proven()
    store = KnownVersions()
    proof = CurrencyProof("pods", bench.clock, bench.lines, store)
    proof.prove(ConsistentRead(20.0, "1", {}))
    proof.prove(ConsistentRead(19.0, "1", {"late": "1"}))
    assert (proof.until, proof.listed_until) == (20.0, 20.0)


def test_a_watch_that_sends_nothing_although_events_are_missing_is_opened_again(bench: Bench) -> None:
    bench.start()
    bench.server.put(pod("x"))
    bench.seen("x")  # the watch is read: opened later, as on a busy machine, it would have been silent for less time
    bench.clock.advance(10)
    bench.proven()
    bench.server.delivering.clear()
    bench.server.put(pod("d"))
    bench.clock.advance(STALL)
    bench.proven()
    assert bench.server.opened == 1
    bench.clock.advance(1)
    bench.proven()
    bench.server.delivering.set()
    bench.opened(2)
    assert [query["resourceVersion"] for _, query in bench.server.requests if "watch" in query] == ["103", "103"]
    bench.seen("d", step=0.1)
    assert bench.lines.names().count("d") == 1


def test_a_bookmark_proves_that_nothing_came_and_went(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(10)
    bench.server.put(pod("brief"))
    bench.server.delete("brief")
    bench.seen("brief")
    assert bench.proven().complete == 1000.0
    bench.server.bookmark()
    bench.clock.until(lambda: any(line.type == "BOOKMARK" for line in bench.lines.of("pods")))
    assert bench.proven().complete == bench.pods.complete_until == 1010.0


def test_a_replay_proves_that_nothing_came_and_went_once_the_watch_has_sent_it_too(bench: Bench) -> None:
    bench.start()
    bench.clock.advance(10)
    bench.server.delivering.clear()
    bench.server.put(pod("brief"))
    bench.server.delete("brief")
    bench.server.bookmark()
    assert bare(bench.proven()) == Currency(1010.0), "no list has it"
    bench.server.delivering.set()
    bench.server.flowing.set()
    bench.pods.replay()
    assert [query["resourceVersion"] for _, query in bench.server.requests if "watch" in query] == ["103", "103"]
    bench.clock.until(lambda: bench.lines.names().count("brief") == 2)
    assert bench.proven().complete == 1010.0


def test_a_replay_is_ended_with_the_observer(bench: Bench) -> None:
    bench.start()
    stopping = threading.Timer(0.2, bench.pods.stop)
    stopping.start()
    with pytest.raises(KubeUnreachable):
        bench.pods.replay()


def test_events_that_are_sent_again_are_emitted_once(bench: Bench) -> None:
    bench.start()
    bench.server.put(pod("a"))
    bench.server.delete("b")
    bench.seen("a")
    for _, line in bench.server.log[-5:]:
        bench.server.say(line)
    bench.server.put(pod("end"))
    bench.seen("end")
    assert bench.lines.events()[3:] == [("MODIFIED", "a", "104"), ("DELETED", "b", "105"), ("ADDED", "end", "111")]


def test_a_slow_readyz_blinds_nothing(bench: Bench) -> None:
    bench.health.start(bench.lines)
    bench.clock.until(bench.health.has_synced)
    bench.start()
    before = len(bench.server.requests)
    bench.server.flowing.clear()
    bench.clock.advance(PERIOD)
    bench.clock.until(lambda: len(bench.server.requests) > before)
    bench.clock.advance(1.5)
    bench.server.flowing.set()
    bench.clock.until(lambda: "took 1.5 s to respond" in bench.health.reason)
    bench.server.put(pod("end"))
    bench.seen("end")
    assert (bench.lines.windows(), bench.server.opened) == ([], 1)


def test_nothing_is_emitted_after_stop(bench: Bench) -> None:
    bench.start()
    bench.pods.stop()
    before = len(bench.lines.all)
    bench.clock.until(lambda: all(thread.name != "watch of pods" for thread in threading.enumerate()))
    bench.server.put(pod("d"))
    assert len(bench.lines.all) == before


def test_a_woken_clock_makes_no_hot_loop(bench: Bench) -> None:
    bench.server.closing = True
    bench.pods = Reflector(RESOURCES["pods"], bench.api, bench.clock)
    bench.clock.wake()
    bench.pods.start(bench.lines)
    bench.clock.until(lambda: len(bench.server.requests) >= 4)
    bench.pods.stop()
    assert len(bench.server.requests) < 20


@pytest.mark.parametrize("seed", range(4))
def test_every_event_is_emitted_once_whatever_happens_to_the_connection(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    bench.start()

    def halve() -> None:
        bench.server.halve_next = True

    faults: list[Callable[[], None]] = [bench.server.cut_watches, bench.server.end_watches, halve]
    for number in range(600):
        if number >= 60 and bench.server.count(watch=True) > 5:  # later on a busy machine: it connects less often
            break
        if chance.random() < 0.3:
            bench.server.bookmark()
        bench.server.put(pod(f"p{number % 7}"))
        if chance.random() < 0.2:
            bench.server.delete(f"p{number % 7}")
        if chance.random() < 0.3:
            chance.choice(faults)()
        bench.clock.advance(chance.choice([0.0, 0.3, 2.0]))
        threading.Event().wait(chance.choice([0.0, 0.02]))
    bench.server.halve_next = False
    bench.server.put(pod("end"))
    bench.seen("end", step=0.1)
    wanted = []
    for _, line in bench.server.log[3:]:
        event = json.loads(line)
        metadata = event["object"]["metadata"]
        if event["type"] != "BOOKMARK":
            wanted.append((event["type"], metadata["name"], metadata["resourceVersion"]))
    assert bench.lines.events()[3:] == wanted
    assert bench.server.count(watch=True) > 5, "the connection did break"
    bench.clock.until(lambda: not bench.lines.windows() or bench.lines.windows()[-1][1] is not None, step=0.1)


def test_the_health_check_measures_the_servers_clock(bench: Bench) -> None:
    assert bench.health.offsets() == {}
    bench.health.start(bench.lines)
    bench.clock.until(bench.health.has_synced)
    bench.health.stop()
    (offset,) = bench.health.offsets().values()
    assert abs(time.time() - bench.clock.now() - offset.seconds) <= PATIENCE, "the test server has the real time"
    assert offset.within == pytest.approx(0.5)
