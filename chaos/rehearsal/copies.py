"""What is rehearsed on: a copy of a cluster from a snapshot or a recording, or the simulated one of an inventory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from chaos.app.lab_spec import lab_spec
from chaos.cluster.snapshot.document import Contents, name_of
from chaos.cluster.snapshot.whatif.change import ChangeError
from chaos.cluster.snapshot.whatif.changes import Change, apply_changes, parse_change
from chaos.core.api_fact import PseudoFact
from chaos.core.decode import decode
from chaos.core.errors import UsageError, bad_input
from chaos.core.files import missing_file_hint, read_regular
from chaos.core.kube import RESOURCES
from chaos.core.lab_settings import Lab
from chaos.core.recording import EntryKind, RecordingEntry
from chaos.core.timeline import Entry, Timeline
from chaos.lab.facade import (
    Copy,
    DirectLab,
    LabSpec,
    Observation,
    Snapshot,
    SnapshotError,
    forecast,
    parse,
    read_snapshot,
)
from chaos.reports.comparison.side import Expected, Side
from chaos.verdicts.outcome.measure import Outcome
from chaos.verdicts.outcome.outcome import outcome_of
from chaos.verdicts.outcome.prediction import bands

_START = 1_795_000_000.0  # of a lab without a snapshot: the same seed gives the same bytes
_SETTLE = 120.0  # simulated seconds in which controllers and kubelets do what follows from changes
_HINT = "take it again with nodefall snapshot"


@dataclass(frozen=True, slots=True)
class LabCopy:
    """A lab that has not started; ``start`` is called once. Complete after it: ``not_modelled``, one line each."""

    spec: LabSpec
    start: Callable[[DirectLab], None]
    not_modelled: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Source:
    """``make`` gives a new lab each time.

    ``name``: for people. ``digest``: SHA-256 of the snapshot, "" without one. ``missing``: what the snapshot lacks, and
    ``changes``: what differs from it, one line each.
    """

    name: str
    digest: str
    kubernetes: str
    make: Callable[[], LabCopy]
    missing: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def lab_source(lab: Lab, name: str) -> Source:
    """The simulated cluster of an inventory, without workloads."""
    document = lab_spec(lab, lab.seed, _START)

    def make() -> LabCopy:
        return LabCopy(msgspec.convert(document, LabSpec), DirectLab.start, tuple)

    return Source(name, "", lab.kubernetes, make)


def snapshot_source(path: Path, changes: Sequence[Change] = ()) -> Source:
    """The copy of a cluster, after ``changes``. Raises BadInput, UsageError."""
    snapshot = _read(path)
    digest = hashlib.sha256(read_regular(path)).hexdigest()
    missing = [f"{item['what']}: {item['why']}" for item in snapshot.header.get("missing", ())]
    _check(snapshot, path)
    contents = _contents_of(snapshot)
    try:
        applied = apply_changes(contents, changes)
    except ChangeError as error:
        raise UsageError(f"--what-if {error}", hint=error.hint) from error
    for plural, objects in contents.objects.items():
        snapshot.replace(plural, objects)
    make = partial(_copy, snapshot, path, bool(changes))
    return Source(path.name, digest, make().spec.kubernetes, make, tuple(missing), tuple(applied))


def read_contents(path: Path) -> Contents:
    """What a snapshot has in it. Raises BadInput."""
    return _contents_of(_read(path))


def parse_changes(texts: Sequence[str]) -> tuple[Change, ...]:
    """Changes of ``--what-if``. Raises UsageError."""
    try:
        return tuple(parse_change(text) for text in texts)
    except ChangeError as error:
        raise UsageError(f"--what-if: {error}", hint=error.hint) from error


def _read(path: Path) -> Snapshot:
    try:
        return read_snapshot(path)
    except SnapshotError as error:
        hint = missing_file_hint(path) if not path.exists() else _HINT
        raise bad_input(str(path), str(error).removeprefix(f"{path}: "), hint) from error


def _check(snapshot: Snapshot, path: Path) -> None:
    """Raises BadInput for an object that the API server would not have."""
    for plural, resource in RESOURCES.items():
        for obj in snapshot.objects(plural) if plural in snapshot.lists else ():
            try:
                msgspec.convert(obj, resource.type)
            except msgspec.ValidationError as error:
                raise bad_input(str(path), f"{plural} {name_of(obj)}: {error}", _HINT) from error


def _contents_of(snapshot: Snapshot) -> Contents:
    objects = {plural: snapshot.objects(plural) for plural in snapshot.lists}
    return Contents(snapshot.header, objects, snapshot.configs, snapshot.hosts)


def _copy(snapshot: Snapshot, path: Path, is_changed: bool) -> LabCopy:
    """A lab of the snapshot. Raises BadInput for one that has no lab."""
    settings: Mapping[str, Any] = {"start": float(snapshot.header["taken"])}
    try:
        copy = Copy(snapshot, settings)
    except SnapshotError as error:
        raise bad_input(str(path), str(error), _HINT) from error

    def start(lab: DirectLab) -> None:
        try:
            lab.start(copy.start)
        except SnapshotError as error:
            raise bad_input(str(path), str(error), _HINT) from error
        if is_changed:
            lab.sim.run_until(lab.sim.now + _SETTLE)

    return LabCopy(copy.spec, start, lambda: copy.not_modelled)


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
