"""What a lab has in it when it starts: machines without workloads, or the copy of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, SpecError


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
    from chaos.lab.snapshot.copy import Copy  # noqa: PLC0415 - few labs need it
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
