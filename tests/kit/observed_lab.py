"""A lab in a thread of this process under load, our observers on it, and the store's own history to compare with."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from chaos.cluster.client import connect
from chaos.cluster.observers.cluster import ClusterObservers
from chaos.core.clock import RemoteClock
from chaos.core.recording import RecordingEntry
from chaos.lab.apiserver.store import Change
from chaos.lab.objects import Object
from chaos.lab.server.content import ServeOptions
from chaos.lab.server.lab import Lab
from chaos.lab.spec import ApiMisbehaviour, LabSpec, NodeSpec

KINDS = ("pods", "nodes", "events", "leases")
PODS = 12
_LONGEST_LOAD = 20  # times the usual
EmittedVersion = tuple[str, str, int]  # type, uid, resourceVersion


@dataclass
class Window:
    source: str
    begin: float
    end: float | None
    reason: str


class ObservedLab:
    """Everything that happened in the store since :meth:`load` began, and everything that the observers emitted."""

    def __init__(self, lab: Lab, facts: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        self.lab, self.facts, self._loop = lab, facts, loop
        self.clock = RemoteClock(facts["timeSource"]["address"], facts["timeSource"]["port"])
        self.api = connect(facts["kubeconfig"])
        self.lines: list[RecordingEntry] = []
        self.happened: list[tuple[float, Change]] = []
        self.begun = self.ended = 0  # resourceVersions
        self._load_ends = math.inf  # simulated time
        self._observers = ClusterObservers(self.api, self.clock).watches

    def run(self, switches: list[ApiMisbehaviour], seconds: float, is_noticed: Callable[[], bool]) -> None:
        """Load for ``seconds`` of simulated time, misbehaving in its middle, then until all is emitted.

        It misbehaves longer until ``is_noticed``, as some faults happen by chance and not at once on a busy machine.
        """
        for observer in self._observers:
            observer.start(self.lines.append)
        with self.clock.participant():
            while not all(observer.has_synced() for observer in self._observers):
                assert self.clock.sleep(0.2)
            self._loop.call_soon_threadsafe(self._load, switches, seconds)
            assert self.clock.sleep(0.8 * seconds)
            for _ in range(_LONGEST_LOAD):
                if is_noticed():
                    break
                assert self.clock.sleep(seconds)
            self._loop.call_soon_threadsafe(self._end_load, 0.2 * seconds)
            assert self.clock.sleep(0.2 * seconds + 1)
            for _ in range(400):
                if self._caught_up():
                    return
                assert self.clock.sleep(0.5)
        raise AssertionError(f"not all was emitted: {self.open_windows()}")

    def changes(self, kind: str) -> list[EmittedVersion]:
        """What the observers said about objects of ``kind`` since the load began, but bookmarks."""
        found = []
        for line in list(self.lines):
            if line.kind == kind and line.type != "BOOKMARK":
                metadata = msgspec.json.decode(line.object)["metadata"]
                found.append((line.type, metadata["uid"], int(metadata["resourceVersion"])))
        return [entry for entry in found if entry[2] > self.begun and entry[2] <= (self.ended or entry[2])]

    def history(self, kind: str) -> list[tuple[float, EmittedVersion]]:
        """What the observers should have said, with its times."""
        return [
            (at, (change.type, change.object["metadata"]["uid"], change.version))
            for at, change in self.happened
            if change.plural == kind and change.version <= self.ended
        ]

    def windows(self) -> list[Window]:
        """Blind windows; a window is emitted when it opens and again when it closes."""
        found: dict[tuple[str, float], Window] = {}
        for line in list(self.lines):
            if line.kind == "blind":
                window = msgspec.json.decode(line.object)
                entry = Window(line.type, window["from"], window["to"], window["reason"])
                found[line.type, entry.begin] = entry
        return list(found.values())

    def open_windows(self) -> list[Window]:
        return [window for window in self.windows() if window.end is None]

    def stop(self) -> None:
        for observer in self._observers:
            observer.stop()
        self.clock.wake()
        self.api.close()

    def _caught_up(self) -> bool:
        """The observers' state of all kinds is the store's, and they know it. Time stands still here."""
        ended, there = asyncio.run_coroutine_threadsafe(self._state(), self._loop).result(20)
        for kind in KINDS:
            state: dict[str, int] = {}
            for type_, uid, version in self.changes(kind):
                state[uid] = version
                if type_ == "DELETED":
                    del state[uid]
            if state != there[kind]:
                return False
        if self.open_windows():
            return False
        self.ended = ended
        return True

    async def _state(self) -> tuple[int, dict[str, dict[str, int]]]:
        """The store's version, and the objects by uid that changed since the load began."""
        store = self.lab.cluster.store
        state = {}
        for kind in KINDS:
            versions = {obj["metadata"]["uid"]: int(obj["metadata"]["resourceVersion"]) for obj in store.list(kind)}
            state[kind] = {uid: version for uid, version in versions.items() if version > self.begun}
        return store.version, state

    def _load(self, switches: list[ApiMisbehaviour], seconds: float) -> None:
        """Bursts of changes, as timers of the simulation."""
        sim, store = self.lab.cluster.sim, self.lab.cluster.store
        self.begun = store.version
        store.subscribe(lambda change: self.happened.append((sim.now, change)))
        sim.after(seconds * 0.1, self.lab.api_misbehaviours.update, switches)
        self._burst(0)

    def _end_load(self, seconds: float) -> None:
        """Behave well, and stop the load ``seconds`` later."""
        sim = self.lab.cluster.sim
        self.lab.api_misbehaviours.clear()
        self._load_ends = sim.now + seconds

    def _burst(self, burst: int) -> None:
        """Pods come, change and go; a node changes; an event is emitted. The next burst follows in half a second."""
        sim = self.lab.cluster.sim
        if sim.now >= self._load_ends:
            return
        sim.after(0.5, self._burst, burst + 1)
        store, registry = self.lab.cluster.store, self.lab.cluster.registry
        name = f"p{burst % PODS}"
        if store.get("pods", "default", name) is None:
            registry.create("pods", {"metadata": {"name": name, "namespace": "default"}, "spec": POD_SPEC})
        elif burst % 5 == 0:
            registry.delete("pods", "default", name, 0)
        for number in range(4):
            for plural, namespace, named in (("pods", "default", f"p{number}"), ("nodes", "", "w1")):
                store.patch(plural, namespace, named, partial(_label, text=f"{burst}-{number}"))
        store.create("events", _event(burst))


POD_SPEC = {"nodeName": "w1", "containers": [{"name": "main", "image": "x"}]}


def _label(obj: Object, text: str) -> None:
    obj["metadata"].setdefault("labels", {})["load"] = text


def _event(number: int) -> Object:
    involved = {"kind": "Node", "name": "w1", "uid": "w1"}
    metadata = {"name": f"load.{number}", "namespace": "default"}
    return {"metadata": metadata, "involvedObject": involved, "reason": "Load", "message": "x", "type": "Normal"}


@contextmanager
def observed_lab(directory: Path, pace: float) -> Iterator[ObservedLab]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> tuple[Lab, dict[str, Any]]:
        spec = LabSpec(nodes=[NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1")])
        lab = Lab(spec, ServeOptions(speed=pace), directory)
        return lab, await lab.start()

    lab, facts = asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
    observed = ObservedLab(lab, facts, loop)
    try:
        yield observed
        assert lab.failure() is None
    finally:
        observed.stop()
        asyncio.run_coroutine_threadsafe(lab.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        observed.clock.close()
        loop.close()


def repeated(emitted: list[EmittedVersion]) -> list[EmittedVersion]:
    """What was said more than once: a state of an object, or its end."""
    counts = Counter((uid, "DELETED" if type_ == "DELETED" else version) for type_, uid, version in emitted)
    return [entry for entry in emitted if counts[entry[1], "DELETED" if entry[0] == "DELETED" else entry[2]] > 1]
