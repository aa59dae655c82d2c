"""Options of a lab's servers; its content is in the LabSpec.

What a lab has in it when it starts: machines without workloads, or the copy of a cluster.
Tuning of Python's garbage collector: objects of the store are long-lived and have no reference cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from chaos.lab.apiserver.store import Change, Store
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, SpecError


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a lab's servers.

    ``speed``: maximum of simulated seconds per wall second; with ``free``, time runs at that speed without lockstep;
    ``careful``: as of Lockstep. ``linger``: wall seconds without a client after which a lab without owner ends.
    ``watch_cache_size``: maximum number of changes per resource from which a watch can continue. ``name``: context of
    the kubeconfig. ``port`` of the API server, 0 for any free port.
    """

    speed: float = 20.0
    free: bool = False
    linger: float = 120.0
    watch_cache_size: int = 10_000
    name: str = "nodefall-lab"
    port: int = 0
    careful: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """``start`` starts the cluster of ``spec``; after it, ``facts`` has more for the ready line."""

    spec: LabSpec
    start: Callable[[Cluster], None] = Cluster.start
    facts: dict[str, Any] = field(default_factory=dict)


def content_of(text: bytes, snapshot: Path | None) -> Content:
    """Content by a LabSpec in JSON, which has no nodes if there is a snapshot. Raises SpecError."""
    if snapshot is None:
        return Content(LabSpec.from_json(text))
    from chaos.lab.snapshot.load import Copy  # noqa: PLC0415 - few labs need it
    from chaos.lab.snapshot.reader import SnapshotError, read_snapshot  # noqa: PLC0415

    facts: dict[str, Any] = {}
    try:
        copy = Copy(read_snapshot(snapshot), msgspec.json.decode(text, type=dict[str, Any]))
    except (SnapshotError, msgspec.DecodeError) as error:
        raise SpecError(str(error)) from error
    spec = copy.spec

    def start(cluster: Cluster) -> None:
        try:
            copy.start(cluster)
        except SnapshotError as error:
            raise SpecError(str(error)) from error
        workers = sum(node.role == "worker" for node in spec.nodes)
        facts["snapshot"] = {"kubernetes": spec.kubernetes, "workers": workers, "notModelled": copy.not_modelled}

    return Content(spec, start, facts)


_GROWTH = 500  # objects
_GENERATIONS = (50_000, 20, 100)


class GcTuner:
    """Excludes live objects from collection each time the store has grown by 500 objects beyond its largest size."""

    def __init__(self, store: Store) -> None:
        self._size, self._largest = 0, 0
        gc.set_threshold(*_GENERATIONS)
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type == "ADDED":
            self._size += 1
            if self._size > self._largest + _GROWTH:
                self._largest = self._size
                gc.freeze()
        elif change.type == "DELETED":
            self._size -= 1
