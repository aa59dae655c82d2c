"""Boot times of a run, for the rehearsals that it is compared with: how long a machine boots is not Kubernetes'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from chaos.core.recording import RecordingEntry
from chaos.lab.facade import parse
from chaos.rehearsal.copies import LabCopy, Source
from chaos.rehearsal.futures import raw_entries


def boot_times(entries: Iterable[RecordingEntry], nodes: Iterable[str]) -> dict[str, float]:
    """Seconds from power-on to the start of the kubelet, of those nodes that were powered on. Raises ReplayError."""
    recording = parse(raw_entries(entries))
    return {node: seconds for node in sorted({*nodes}) if (seconds := recording.boot_seconds(node))}


def with_boot_times(source: Source, seconds: Mapping[str, float]) -> Source:
    """The same, with machines that boot in that time."""
    return replace(source, make=partial(_make, source, seconds)) if seconds else source


def _make(source: Source, seconds: Mapping[str, float]) -> LabCopy:
    made = source.make()
    nodes = [
        msgspec.structs.replace(node, boot_seconds=seconds.get(node.name, node.boot_seconds))
        for node in made.spec.nodes
    ]
    return replace(made, spec=msgspec.structs.replace(made.spec, nodes=nodes))
