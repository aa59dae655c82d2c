"""Events expire an hour after their last write, at most a minute later."""

from __future__ import annotations

from chaos.lab.apiserver.events import EventTtl
from chaos.lab.apiserver.store import Store
from chaos.lab.sim import SimClock


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
