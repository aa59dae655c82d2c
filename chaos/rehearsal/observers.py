"""The observers of a rehearsed cluster: every change is recorded as the store makes it, at its exact time.

So each resource is current at every moment, which one proof says that is never overtaken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from chaos.cluster.observers.cluster import RECORDED
from chaos.cluster.watch_codec import DecodedObject, WatchCodec
from chaos.core.kube import Node
from chaos.core.ports import Clock, Observer, Sink
from chaos.core.recording import LIST, Currency, EntryKind, RecordingEntry
from chaos.core.resources import RESOURCES
from chaos.core.time_bounds import ClockOffset
from chaos.lab.facade import Change, DirectLab

_ALWAYS = 253402300799.0  # seconds since the epoch: the end of the year 9999
_CURRENT = msgspec.Raw(msgspec.json.encode(Currency(_ALWAYS, complete=_ALWAYS)))


class StoreObserver:
    """Records every object that exists, and then every change."""

    name = "store"

    def __init__(self, lab: DirectLab, clock: Clock) -> None:
        self._lab, self._clock = lab, clock
        self._sink: Sink | None = None
        self._codecs = {plural: WatchCodec(RESOURCES[plural]) for plural in RECORDED}

    def start(self, sink: Sink) -> None:
        self._sink = sink
        for plural in RECORDED:
            for obj in self._lab.objects(plural):
                self._emit(plural, LIST, obj)
            sink(RecordingEntry(self._clock.now(), EntryKind.CURRENT, plural, _CURRENT))
        self._lab.subscribe(self._on_change, *RECORDED)

    def stop(self) -> None:
        self._sink = None

    def has_synced(self) -> bool:
        return True

    def _on_change(self, change: Change) -> None:
        if self._sink:
            self._emit(change.plural, change.type, change.object)

    def _emit(self, plural: str, type_: str, obj: Mapping[str, object]) -> None:
        assert self._sink is not None  # noqa: S101 - both callers have looked
        self._sink(self._decode(plural, obj).entry(self._clock.now(), plural, type_))

    def _decode(self, plural: str, obj: Mapping[str, object]) -> DecodedObject:
        try:
            value = msgspec.convert(obj, RESOURCES[plural].type)
        except msgspec.ValidationError:  # as an observer over the network, which says what it could not read
            return self._codecs[plural].decode_object(msgspec.Raw(msgspec.json.encode(obj)))
        return DecodedObject(value.metadata, value)


class _Health:
    """The server is always available, and has the time of the run."""

    reason = ""

    def offsets(self) -> dict[str, ClockOffset]:
        return {"the API server": ClockOffset(0.0, 0.0)}


class _Nodes:
    def __init__(self, lab: DirectLab) -> None:
        self._lab = lab

    def node(self, name: str) -> Node | None:
        found = self._lab.cluster.store.get("nodes", "", name)
        return msgspec.convert(found, Node) if found else None


class _Exact:
    """What is recorded is current at every moment."""

    def prove_at(self, moments: Iterable[float]) -> None:
        """No-op."""

    def watch_closely(self) -> AbstractContextManager[None]:
        return nullcontext()


class DirectObservers:
    """Implements ``chaos.cluster.observers.plugin.ObservedCluster``."""

    def __init__(self, lab: DirectLab, clock: Clock) -> None:
        self.health, self.nodes, self.currency = _Health(), _Nodes(lab), _Exact()
        self.watches: Sequence[Observer] = (StoreObserver(lab, clock),)
