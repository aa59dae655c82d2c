"""The eye on the hosts: machine power, boot identity, inhibitors and whatever else the steps are proven by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from chaos.engine.hosts import MACHINE, Hosts
from chaos.model.errors import NodefallError
from chaos.model.ports import Clock, Sink
from chaos.model.recording import Line
from chaos.observers.worker import Worker

PERIOD = 2.0  # seconds of cluster time between two readings


class HostWatch:
    """Reads ``facts`` of ``nodes`` again and again; a host that does not answer is a blind window ``host@NODE``."""

    name = "hosts"

    def __init__(self, hosts: Hosts, clock: Clock, nodes: Sequence[str], facts: Sequence[str]) -> None:
        self._hosts, self._clock = hosts, clock
        self._facts = [f for f in facts if f != MACHINE]
        self._machine = MACHINE in facts
        self._blind: dict[str, float] = {}
        self._first: set[str] = set()
        self._nodes = list(nodes)
        self._workers: list[Worker] = []

    def start(self, sink: Sink) -> None:
        for node in self._nodes:
            worker = Worker(
                f"host-{node}", self._clock, partial(self._watch, node, sink), partial(self._broke, node, sink)
            )
            self._workers.append(worker)
            worker.start()

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def synced(self) -> bool:
        return len(self._first) == len(self._nodes)

    def _watch(self, node: str, sink: Sink) -> None:
        worker = self._workers[self._nodes.index(node)]
        while not worker.stopping:
            alive = self._read_machine(node, sink)
            self._read_facts(node, sink, alive)
            self._first.add(node)
            worker.pause(PERIOD)

    def _broke(self, node: str, sink: Sink, why: str) -> None:
        for source in (f"host@{node}", f"power@{node}"):
            self._lost(source, node, why, sink)

    def _read_machine(self, node: str, sink: Sink) -> bool:
        """False if the machine is known to be off: then nobody need knock at its door."""
        if not self._machine or self._hosts.power(node) is None:
            return True
        source = f"power@{node}"
        try:
            state = self._hosts.read(node, MACHINE)
        except NodefallError as error:
            self._lost(source, node, error.message, sink)
            return True
        self._found(source, node, sink)
        self._emit(node, MACHINE, state, sink)
        return bool(state != "off")

    def _read_facts(self, node: str, sink: Sink, alive: bool) -> None:
        source = f"host@{node}"
        if not alive:
            self._lost(source, node, "the machine is off", sink)
            return
        for fact in self._facts:
            try:
                value = self._hosts.read(node, fact)
            except NodefallError as error:
                self._lost(source, node, error.message, sink)
                return
            self._emit(node, fact, value, sink)
        self._found(source, node, sink)

    def _emit(self, node: str, fact: str, value: object, sink: Sink) -> None:
        sink(Line(self._clock.now(), "host", fact, msgspec.Raw(msgspec.json.encode(value)), node))

    def _lost(self, source: str, node: str, reason: str, sink: Sink) -> None:
        if source not in self._blind:
            self._blind[source] = self._clock.now()
            self._window(source, node, None, reason, sink)

    def _found(self, source: str, node: str, sink: Sink) -> None:
        if source in self._blind:
            self._window(source, node, self._clock.now(), "", sink)
            del self._blind[source]

    def _window(self, source: str, node: str, end: float | None, reason: str, sink: Sink) -> None:
        window = {"from": self._blind[source], "to": end, "reason": reason or "the host did not answer"}
        sink(Line(self._clock.now(), "blind", source, msgspec.Raw(msgspec.json.encode(window)), node))
