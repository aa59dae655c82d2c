"""What the lab predicts for a recorded cluster, from the first lists of the recording; and its boot times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from chaos.core.api_fact import PseudoFact
from chaos.core.decode import decode
from chaos.core.recording import EntryKind, RecordingEntry
from chaos.core.resources import RESOURCES
from chaos.core.timeline import Entry, Timeline
from chaos.lab.facade import Observation, forecast, parse
from chaos.rehearsal.copies import LabCopy, Source
from chaos.reports.comparison.side import Expected, Side
from chaos.verdicts.outcome.measure import Outcome
from chaos.verdicts.outcome.outcome import outcome_of
from chaos.verdicts.outcome.prediction import bands

_KINDS = ("persistentvolumeclaims", "nodes", "volumeattachments", "pods")
_ALL = 1 << 60  # entries: none is packed


def raw_entries(entries: Iterable[RecordingEntry]) -> list[dict[str, Any]]:
    """The entries as JSON has them, for the lab's replay."""
    return [msgspec.json.decode(msgspec.json.encode(entry)) for entry in entries]


def expected_of_recording(side: Side, entries: Iterable[RecordingEntry], seeds: Sequence[int]) -> Expected:
    """What the lab predicts from the first lists of ``entries``, which are those of ``side``. Raises ReplayError."""
    recorded = list(entries)
    raw, fault = raw_entries(recorded), _fault(recorded)
    findings: dict[str, None] = {}
    outcomes = [_outcome(raw, fault, seed, side, findings) for seed in seeds]
    return Expected(
        name=f"the first lists of {side.name}",
        simulated=True,
        experiment=side.experiment,
        experiment_hash=side.experiment_hash,
        targets=side.targets,
        actions=side.actions,
        outcomes=len(outcomes),
        horizon=min(outcome.observed for outcome in outcomes),
        measures=bands(outcomes),
        notes=tuple(f"not predicted: {text}" for text in findings),
    )


def _fault(recorded: Iterable[RecordingEntry]) -> list[Entry]:
    """The operations, and what the power controls said: both are the fault, not what the cluster made of it."""
    found = (decode(entry, 0) for entry in recorded if entry.kind in (EntryKind.ACTION, EntryKind.HOST))
    return [entry for entry in found if entry and (entry.kind == EntryKind.ACTION or entry.type == PseudoFact.MACHINE)]


def _outcome(
    raw: list[dict[str, Any]], fault: Sequence[Entry], seed: int, side: Side, findings: dict[str, None]
) -> Outcome:
    recording = parse(raw)
    observations = forecast(recording, seed)
    findings |= dict.fromkeys(recording.findings)
    meta = raw[0]["object"] if raw[0]["kind"] == "meta" else {}
    return outcome_of(timeline_of(observations, meta, fault), side.fault)


def timeline_of(
    observations: Mapping[str, Sequence[Observation]], meta: Mapping[str, Any], fault: Sequence[Entry] = ()
) -> Timeline:
    """A timeline of the lab's observations, with the entries about the ``fault`` up to their end."""
    timeline = Timeline(few=_ALL)
    timeline.meta.update(meta)
    entries = [
        Entry(0, item.t, kind, item.type, msgspec.convert(item.object, RESOURCES[kind].type))
        for kind in _KINDS
        for item in observations[kind]
    ]
    end = max((entry.t for entry in entries), default=0.0)
    entries += [entry for entry in fault if entry.t <= end]
    for seq, entry in enumerate(sorted(entries, key=lambda entry: entry.t)):
        timeline.add(msgspec.structs.replace(entry, seq=seq))
    return timeline


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
