"""Observer plug-ins: what an observer is built from, the port of a plug-in, and the clock offsets that it measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec

from chaos.cluster.api import ClusterApi
from chaos.core.blame import Blame, Hook, Kind
from chaos.core.experiment import Experiment
from chaos.core.field_types import Secret
from chaos.core.inventory import Inventory
from chaos.core.kube import Node
from chaos.core.plan import Plan
from chaos.core.ports import Clock, Observer, PowerControl, Sink
from chaos.core.recording import EntryKind, RecordingEntry
from chaos.core.time_bounds import CLOCK_OFFSETS, ClockOffset

OffsetFunc = Callable[[], Mapping[str, ClockOffset]]  # by source


class FactReader(Protocol):
    """The machines behind the nodes."""

    def read(self, node: str, fact: str, given: Mapping[str, Any] = ...) -> Any:
        """The current value of a fact. Raises NodefallError."""

    def has_fact(self, node: str, fact: str) -> bool:
        """Whether the operating system of the node's host has such a fact."""

    def power(self, node: str) -> PowerControl | None: ...


class ServerHealth(Protocol):
    """Observer of the API server's health."""

    @property
    def reason(self) -> str:
        """Why it is unavailable now, or ""."""


class KnownNodes(Protocol):
    """The nodes of the cluster, once they are synced."""

    def node(self, name: str) -> Node | None:
        """The last known state of a node; None if unknown or deleted."""


class WatchCurrency(Protocol):
    """Proofs of how current the watches are."""

    def prove_at(self, moments: Iterable[float]) -> None:
        """Take a proof at each of ``moments`` as well."""

    def watch_closely(self) -> AbstractContextManager[None]:
        """Take a proof now, and more of them until the block ends."""


class ObservedCluster(Protocol):
    """The observers of a cluster; ``watches`` start before all others."""

    @property
    def health(self) -> ServerHealth: ...

    @property
    def nodes(self) -> KnownNodes: ...

    @property
    def currency(self) -> WatchCurrency: ...

    @property
    def watches(self) -> Sequence[Observer]: ...


@dataclass(frozen=True, slots=True)
class ObserverContext:
    """A planned run, before its first side effect.

    ``cluster`` are the observers of the cluster, which have synced when others start. ``nodes`` are the targets,
    ``reachable`` those whose host has a session. ``facts`` are host facts that steps are proven by, of those that a
    host may have; ``sources`` name
    further sources of metrics that assertions use. ``read_secret`` raises Refused.
    """

    api: ClusterApi
    clock: Clock
    hosts: FactReader
    cluster: ObservedCluster
    experiment: Experiment
    inventory: Inventory
    plan: Plan
    nodes: Sequence[str]
    reachable: Sequence[str]
    facts: Sequence[str]
    sources: frozenset[str]
    read_secret: Callable[[Secret], str]


class ObserverPlugin(Protocol):
    """A kind of observer; its modules name it ``OBSERVER``, other distributions an entry point ``nodefall.observers``.

    Its observers start once those of the cluster have synced.
    """

    name: str

    def build(self, context: ObserverContext) -> Sequence[Observer]:
        """The observers that the run needs, none if it needs no such observer. Raises NodefallError."""


@runtime_checkable
class OffsetSource(Protocol):
    """An observer that measures clocks."""

    def offsets(self) -> Mapping[str, ClockOffset]:
        """The offsets of clocks from the run's clock, by the name of the source."""


@runtime_checkable
class FinalSampler(Protocol):
    """An observer that takes a sample before the final judgement."""

    def final_sample(self) -> None: ...


class ClockOffsetObserver:
    """Records, in its final sample, the offsets that other observers have measured."""

    name = "clock offsets"

    def __init__(self, clock: Clock, sources: Sequence[OffsetFunc]) -> None:
        self._clock, self._sources = clock, sources
        self._sink: Sink | None = None

    def start(self, sink: Sink) -> None:
        self._sink = sink

    def stop(self) -> None:
        self._sink = None

    def has_synced(self) -> bool:
        return True

    def final_sample(self) -> None:
        """Record the offsets known so far."""
        offsets = {source: offset for measure in self._sources for source, offset in measure().items()}
        if self._sink and offsets:
            value = msgspec.Raw(msgspec.json.encode({CLOCK_OFFSETS: offsets}))
            self._sink(RecordingEntry(self._clock.now(), EntryKind.META, "clocks", value))


_NOTHING = type(None)
_OBSERVER_HOOKS = {
    **dict.fromkeys(("start", "stop", "final_sample"), Hook(_NOTHING)),
    "has_synced": Hook(bool),
    "offsets": Hook(Mapping),
}


def _guard_observers(built: Sequence[Observer], blame: Blame, *_: object) -> list[Observer]:
    guarded = []
    for observer in built:
        if missing := [name for name in ("name", "start", "stop", "has_synced") if not hasattr(observer, name)]:
            raise blame.error("build", f"it returned an observer that has no {' and no '.join(missing)}")
        guarded.append(blame.guard_methods(observer, _OBSERVER_HOOKS))
    return guarded


KIND = Kind(
    "observer",
    ("name", "build"),
    lambda plugin, blame: blame.guard_methods(
        plugin, {"build": Hook((list, tuple), items=object, adapt=_guard_observers)}
    ),
)
