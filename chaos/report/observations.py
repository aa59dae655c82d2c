"""Rows of the observations table: changes, without repetitions."""

from __future__ import annotations

from chaos.model.kube import Lease
from chaos.model.recording import BOOKMARK, LIST, EntryKind
from chaos.model.timeline import Entry, Timeline
from chaos.report.describe import describe

_KINDS = frozenset(
    [
        "nodes",
        "pods",
        "events",
        "deployments",
        "statefulsets",
        "daemonsets",
        "jobs",
        "poddisruptionbudgets",
        "volumeattachments",
        "metrics",
        "host",
        "probe",
        "action",
        "blind",
    ]
)


def observations(timeline: Timeline, cited: set[int], limit: int) -> tuple[list[tuple[Entry, str]], int]:
    """Entries that differ from the previous one of their subject, with descriptions, and the number omitted.

    At most ``limit`` rows, but entries with a sequence number in ``cited`` and actions are always included. Listed
    events happened before the run and are no change.
    """
    rows: list[tuple[Entry, str]] = []
    last: dict[tuple[str, str], str] = {}
    omitted = 0
    for entry in timeline.entries:
        text = describe(entry)
        key = _subject(entry)
        is_new = entry.kind in _KINDS and entry.type != BOOKMARK and last.get(key) != text
        if entry.type == LIST and (entry.kind == "events" or entry.kind not in _KINDS):
            is_new = False
        last[key] = text
        if entry.seq in cited or entry.kind == EntryKind.ACTION or (is_new and len(rows) < limit):
            rows.append((entry, text))
        elif is_new:
            omitted += 1
    return rows, omitted


def _subject(entry: Entry) -> tuple[str, str]:
    """Subject of an entry: equal descriptions of the same subject are a repetition."""
    metadata = getattr(entry.object, "metadata", None)
    if metadata is not None and not isinstance(entry.object, Lease):
        return entry.kind, metadata.uid or metadata.name
    return entry.kind, f"{entry.node} {entry.type if entry.kind in ('host', 'probe') else ''}"
