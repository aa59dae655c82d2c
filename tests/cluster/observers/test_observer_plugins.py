"""Observer plug-ins: what is built for which experiment, and plug-ins of other distributions.

Windows of blindness: from the first cause to the end of the last, with the reasons of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from chaos.cluster.observers.base import BlindWindowTracker
from chaos.cluster.observers.plugin import ObserverContext
from chaos.core import registry
from chaos.core.errors import PluginError, Refused
from chaos.core.ports import Observer
from chaos.core.recording import RecordingEntry
from chaos.engine.observers import observer_plugins
from tests.kit.fakes import FakeClock
from tests.kit.misbehaving import ManualClock


class HeartbeatPlugin:
    """A plug-in of another distribution."""

    def __init__(self, name: str = "heartbeat") -> None:
        self.name = name

    def build(self, context: ObserverContext) -> Sequence[Observer]:
        return []


def context(**given: Any) -> ObserverContext:
    """A context for plug-ins that build nothing, or refuse to."""
    spec = SimpleNamespace(probes=[], queries=[])
    values: dict[str, Any] = {
        "api": SimpleNamespace(component=None),
        "clock": FakeClock(),
        "cluster": SimpleNamespace(nodes=SimpleNamespace(node=None), health=None),
        "hosts": None,
        "experiment": SimpleNamespace(spec=spec),
        "inventory": SimpleNamespace(cluster=None, prometheus=None),
        "plan": SimpleNamespace(namespace=""),
        "nodes": ["n1"],
        "reachable": ["n1"],
        "facts": ["boot-id"],
        "sources": frozenset(),
        "read_secret": None,
    }
    return cast("ObserverContext", SimpleNamespace(**values | given))


def external(monkeypatch: pytest.MonkeyPatch, plugin: HeartbeatPlugin) -> None:
    monkeypatch.setattr(
        registry,
        "_external",
        lambda group, _kind: [(plugin.name, "x", plugin)] if group == registry.Group.OBSERVERS else [],
    )


def test_every_run_has_observers_of_hosts_and_kubelets() -> None:
    built = {
        name: [observer.name for observer in plugin.build(context())] for name, plugin in observer_plugins().items()
    }
    assert built == {
        "hosts": ["hosts"],
        "metrics": ["metrics"],
        "probes": [],
        "prometheus": [],
    }


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("metrics", {"sources": frozenset({"controller-manager"})}, "no controllerManager in the inventory"),
        (
            "prometheus",
            {"experiment": SimpleNamespace(spec=SimpleNamespace(queries=["up"]))},
            "no prometheus in the inventory",
        ),
    ],
)
def test_a_source_that_the_inventory_lacks_is_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        observer_plugins()[name].build(context(**given))


def test_a_plug_in_of_another_distribution_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    external(monkeypatch, HeartbeatPlugin())
    assert "heartbeat" in observer_plugins()


@pytest.mark.parametrize("name", ["hosts", "prometheus"])
def test_a_plug_in_with_the_name_of_another_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    external(monkeypatch, HeartbeatPlugin(name))
    with pytest.raises(PluginError, match=f"duplicate plug-in name '{name}'"):
        observer_plugins()


def windows(entries: list[RecordingEntry]) -> list[tuple[float, float | None, str]]:
    found = [msgspec.json.decode(entry.object) for entry in entries]
    return [(window["from"], window["to"], window["reason"]) for window in found]


def test_a_window_has_the_reasons_of_all_its_causes() -> None:
    entries: list[RecordingEntry] = []
    clock = ManualClock()
    tracker, begin = BlindWindowTracker("pods", clock, entries.append), clock.now()
    tracker.open("watch", begin, "no watch was open for 0.6 s")
    for version in range(9):
        tracker.open("watch", begin, "410 too old")
        tracker.open("api", begin, f"refused {version}")
    tracker.close("watch")
    tracker.close("api")
    assert windows(entries) == [
        (begin, None, "no watch was open for 0.6 s"),
        (begin, clock.now(), "no watch was open for 0.6 s; 410 too old; refused 0"),
    ]
    tracker.open("watch", begin, "cut")
    tracker.close("watch")
    assert windows(entries)[-1] == (begin, clock.now(), "cut")
