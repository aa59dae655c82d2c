"""Observer of the hosts: machine power, boot identity, inhibitors and the facts that prove the steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from chaos.cluster.observers.base import ObserverThread
from chaos.cluster.observers.plugin import FactReader, ObserverContext
from chaos.core.api_fact import PseudoFact
from chaos.core.command import PowerState
from chaos.core.errors import NodefallError
from chaos.core.fact import SECONDS_SINCE_READ, FactRef
from chaos.core.ports import Clock, MachineAddresses, Sink
from chaos.core.recording import EntryKind, RecordingEntry
from chaos.core.time_bounds import ClockOffset, ClockOffsetBounds

PERIOD = 2.0  # seconds of cluster time between two samples
JOURNAL, TIME = "kubelet-journal", "host-time"
OPTIONAL_FACTS = ("containers", TIME, JOURNAL)  # read where the host supports them
# They fail on a host without ping, or without such a peer, of which nothing else that is read there depends.
_PINGS = ("round-trips", "ping-bursts", "mtu-pings")
_TIME_PERIOD = 30.0  # between two samples of a host's clock
_LONG = 0.5  # seconds of a reading, from which on it is recorded when it began
_OVERLAP = 2.0  # seconds of the journal that are read twice, as a line may be stored late


class HostObserver:
    """Samples ``facts`` of ``nodes``; while a host does not respond, a blind window ``host@NODE`` is open.

    ``extras`` are facts that not every host supports: one that fails is a separate blind window ``FACT@NODE``.
    """

    name = "hosts"

    def __init__(
        self, hosts: FactReader, clock: Clock, nodes: Sequence[str], facts: Sequence[str], extras: Sequence[str] = ()
    ) -> None:
        self._hosts, self._clock = hosts, clock
        self._facts = [f for f in facts if f != PseudoFact.MACHINE]
        self._extras = list(extras)
        self._reads_power = PseudoFact.MACHINE in facts
        self._blind_since: dict[str, float] = {}
        self._nodes_read: set[str] = set()
        self._addresses: dict[str, list[str]] = {}
        self._nodes = list(nodes)
        self._time_read_at: dict[str, float] = {}
        self._offset_bounds: dict[str, ClockOffsetBounds] = {node: ClockOffsetBounds() for node in nodes}
        self._journal_cursors = {node: _JournalCursor(clock.now()) for node in nodes}
        self._threads: list[ObserverThread] = []
        self._readers: dict[str, Callable[[str], Any]] = {JOURNAL: self._read_journal, TIME: self._read_time}

    def start(self, sink: Sink) -> None:
        for node in self._nodes:
            thread = ObserverThread(
                f"host-{node}", self._clock, partial(self._run_node, node, sink), partial(self._on_crash, node, sink)
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        for thread in self._threads:
            thread.stop()

    def has_synced(self) -> bool:
        return len(self._nodes_read) == len(self._nodes)

    def offsets(self) -> dict[str, ClockOffset]:
        """How far the clock of each host is ahead, if known."""
        offsets = {f"host {node}": bounds.offset() for node, bounds in self._offset_bounds.items()}
        return {source: offset for source, offset in offsets.items() if offset}

    def _run_node(self, node: str, sink: Sink) -> None:
        thread = self._threads[self._nodes.index(node)]
        while not thread.is_stopping:
            may_be_on = self._read_power(node, sink)
            if self._read_facts(node, sink, may_be_on):
                self._read_extras(node, sink)
            self._nodes_read.add(node)
            thread.pause(PERIOD)

    def _on_crash(self, node: str, sink: Sink, reason: str) -> None:
        for source in (f"host@{node}", f"power@{node}"):
            self._open_window(source, node, reason, sink)

    def _read_power(self, node: str, sink: Sink) -> bool:
        """Sample the power state; False if the machine is off, so that its facts are not read."""
        if not self._reads_power or self._hosts.power(node) is None:
            return True
        source = f"power@{node}"
        began = self._clock.now()
        try:
            state = self._hosts.read(node, PseudoFact.MACHINE)
        except NodefallError as error:
            self._open_window(source, node, error.message, sink)
            return True
        self._close_window(source, node, sink)
        self._emit(node, PseudoFact.MACHINE, state, sink, began)
        if state == PowerState.ON:
            self._read_addresses(node, sink)
        return bool(state != PowerState.OFF)

    def _read_addresses(self, node: str, sink: Sink) -> None:
        """Record the addresses of a machine and each change, if they may change with a start."""
        if not isinstance(self._hosts.power(node), MachineAddresses):
            return
        with suppress(NodefallError):  # nothing is judged on them
            addresses = self._hosts.read(node, PseudoFact.ADDRESSES)
            if addresses and addresses != self._addresses.get(node):
                self._addresses[node] = addresses
                self._emit(node, PseudoFact.ADDRESSES, addresses, sink)

    def _read_facts(self, node: str, sink: Sink, may_be_on: bool) -> bool:
        """Sample the facts; False if the host does not respond."""
        source = f"host@{node}"
        if not may_be_on:
            self._open_window(source, node, "the machine is off", sink)
            return False
        for fact in self._facts_of(node):
            began = self._clock.now()
            try:
                value = self._hosts.read(node, fact)
            except NodefallError as error:
                self._open_window(source, node, error.message, sink)
                return False
            self._emit(node, fact, value, sink, began)
        self._close_window(source, node, sink)
        return True

    def _facts_of(self, node: str) -> Iterator[str]:
        """The facts that exist on the operating system of the host."""
        return (fact for fact in self._facts if self._hosts.has_fact(node, fact))

    def _read_extras(self, node: str, sink: Sink) -> None:
        for fact in self._extras:
            if not self._hosts.has_fact(node, fact):
                continue
            now = self._clock.now()
            if fact == TIME and now - self._time_read_at.get(node, -math.inf) < _TIME_PERIOD:
                continue
            source = f"{fact}@{node}"
            try:
                value = self._readers[fact](node) if fact in self._readers else self._hosts.read(node, fact)
            except NodefallError as error:
                self._open_window(source, node, error.message, sink)
                continue
            self._emit(node, fact, value, sink, now)
            self._close_window(source, node, sink)

    def _read_journal(self, node: str) -> dict[str, Any]:
        """Record the lines logged since the last sample, however long ago that was."""
        cursor, now = self._journal_cursors[node], self._clock.now()
        value = self._hosts.read(node, JOURNAL, {SECONDS_SINCE_READ: cursor.seconds_to_read(now)})
        return {"lines": cursor.new_lines(value["lines"], now)}

    def _read_time(self, node: str) -> float:
        """Read the host's time and measure its offset."""
        before = self._time_read_at[node] = self._clock.now()
        value = float(self._hosts.read(node, TIME))
        self._offset_bounds[node].add(value - self._clock.now(), value - before)
        return value

    def _emit(self, node: str, fact: str, value: object, sink: Sink, began: float | None = None) -> None:
        now, raw = self._clock.now(), msgspec.Raw(msgspec.json.encode(value))
        since = began if began is not None and now - began > _LONG else msgspec.UNSET
        sink(RecordingEntry(now, EntryKind.HOST, fact, raw, node, since=since))

    def _open_window(self, source: str, node: str, reason: str, sink: Sink) -> None:
        if source not in self._blind_since:
            self._blind_since[source] = self._clock.now()
            self._emit_window(source, node, None, reason, sink)

    def _close_window(self, source: str, node: str, sink: Sink) -> None:
        if source in self._blind_since:
            self._emit_window(source, node, self._clock.now(), "", sink)
            del self._blind_since[source]

    def _emit_window(self, source: str, node: str, end: float | None, reason: str, sink: Sink) -> None:
        window = {"from": self._blind_since[source], "to": end, "reason": reason or "the host did not answer"}
        sink(RecordingEntry(self._clock.now(), EntryKind.BLIND, source, msgspec.Raw(msgspec.json.encode(window)), node))


class _JournalCursor:
    """Position in one journal. Times are relative to now, so that the host's clock may differ."""

    def __init__(self, begin: float) -> None:
        self._last_read = begin
        self._lines_seen: set[tuple[float, str]] = set()

    def seconds_to_read(self, now: float) -> int:
        return math.ceil(now - self._last_read + _OVERLAP)

    def new_lines(self, lines: list[dict[str, Any]], now: float) -> list[dict[str, Any]]:
        self._last_read = now
        new = [line for line in lines if (line["t"], line["message"]) not in self._lines_seen]
        self._lines_seen.update((line["t"], line["message"]) for line in new)
        return new


class HostObserverPlugin:
    name = "hosts"

    def build(self, context: ObserverContext) -> list[HostObserver]:
        pings = [fact for fact in context.facts if FactRef.parse(fact).name in _PINGS]
        facts = [fact for fact in context.facts if fact not in pings]
        return [HostObserver(context.hosts, context.clock, context.reachable, facts, (*OPTIONAL_FACTS, *pings))]


OBSERVER = HostObserverPlugin()
