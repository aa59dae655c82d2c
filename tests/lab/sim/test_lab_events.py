"""Events are built when they are read, once, and then are as any object.

Events expire an hour after their last write, at most a minute later.
"""

from __future__ import annotations

from chaos.lab.apiserver.events import EventTtl, Recorder
from chaos.lab.apiserver.store import Change, Store
from chaos.lab.objects import Object
from chaos.lab.sim import SimClock


class _Counted:
    """Counts its builds."""

    def __init__(self) -> None:
        self.builds = 0

    def build(self, uid: str, version: int) -> Object:
        self.builds += 1
        return {"metadata": {"name": "e", "namespace": "n", "uid": uid, "resourceVersion": str(version)}, "count": 1}


def _store() -> tuple[SimClock, Store]:
    sim = SimClock(0.0, 1)
    return sim, Store(sim)


def test_an_event_is_built_once_and_only_if_it_is_read() -> None:
    _, store = _store()
    seen: list[Change] = []
    event = _Counted()
    store.subscribe(seen.append)
    store.defer_event(("n", "e"), event)
    assert store.exists("events", ("n", "e"))
    assert (seen[0].type, seen[0].key, seen[0].version, event.builds) == ("ADDED", ("n", "e"), 2, 0)
    found = store.get("events", "n", "e")
    assert found is seen[0].object
    assert found is store.list("events")[0]
    assert event.builds == 1


def test_an_event_that_was_not_read_can_be_changed_and_removed() -> None:
    _, store = _store()
    store.defer_event(("n", "e"), _Counted())
    changed = store.patch("events", "n", "e", lambda obj: obj.update(count=2))
    assert changed is not None
    assert (changed["count"], changed["metadata"]["resourceVersion"]) == (2, "3")
    assert store.remove("events", "n", "e")["count"] == 2
    assert store.list("events") == []


def test_deferred_and_other_events_are_listed_in_order() -> None:
    _, store = _store()
    store.create("events", {"metadata": {"name": "z", "namespace": "n"}})
    store.defer_event(("n", "e"), _Counted())
    assert [event["metadata"]["name"] for event in store.list("events")] == ["e", "z"]


def test_who_wants_no_deferred_events_still_receives_other_changes() -> None:
    _, store = _store()
    seen: list[str] = []
    store.subscribe(lambda change: seen.append(change.type), deferred=False)
    store.defer_event(("n", "e"), _Counted())
    store.patch("events", "n", "e", lambda obj: obj.update(count=2))
    store.remove("events", "n", "e")
    assert seen == ["MODIFIED", "DELETED"]


def test_reading_between_writes_changes_no_history() -> None:
    histories = []
    for reads in (True, False):
        sim, store = _store()
        store.create("namespaces", {"metadata": {"name": "n"}})
        recorder = Recorder(sim, store, "kubelet", "w1")
        for number in range(20):
            recorder.emit("Pod", {"metadata": {"name": "p", "namespace": "n", "uid": "u"}}, "R", f"text {number % 7}")
            sim.run_until(sim.now + 0.5)
            assert not reads or store.list("events")
        histories.append((store.list("events"), store.version, sim.rng.random()))
    assert histories[0] == histories[1]
    assert sorted(event["count"] for event in histories[0][0]) == [2, 3, 3, 3, 3, 3, 3]


def _lab() -> tuple[SimClock, Store]:
    sim = SimClock(0.0, 1)
    store = Store(sim)
    EventTtl(sim, store).start()
    return sim, store


def _create(store: Store, name: str) -> None:
    store.create("events", {"metadata": {"name": name, "namespace": "default"}, "count": 1})


def _names(store: Store) -> list[str]:
    return [event["metadata"]["name"] for event in store.list("events")]


def test_events_of_a_minute_expire_together() -> None:
    sim, store = _lab()
    for at, name in ((0.0, "a"), (59.0, "b"), (61.0, "c")):
        sim.run_until(at)
        _create(store, name)
    sim.run_until(3659.0)
    assert _names(store) == ["a", "b", "c"]
    sim.run_until(3660.0)
    assert _names(store) == ["c"]
    sim.run_until(3721.0)
    assert _names(store) == []


def test_a_new_count_extends_the_hour_and_deleted_events_are_ignored() -> None:
    sim, store = _lab()
    _create(store, "counted")
    _create(store, "deleted")
    store.remove("events", "default", "deleted")
    sim.run_until(3000.0)
    store.patch("events", "default", "counted", lambda event: event.update(count=2))
    sim.run_until(6600.0)
    assert _names(store) == ["counted"]
    sim.run_until(6660.0)
    assert _names(store) == []


def test_a_lease_is_shared_by_a_thousand_at_most() -> None:
    sim, store = _lab()
    for number in range(1000):
        _create(store, f"first-{number}")
    sim.run_until(10.0)
    _create(store, "second")
    sim.run_until(3660.0)
    assert _names(store) == ["second"]
    sim.run_until(3670.0)
    assert _names(store) == []
