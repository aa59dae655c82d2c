"""The rows of "what was seen": changes, not repetitions."""

from __future__ import annotations

from chaos.model.kube import Lease
from chaos.model.recording import BOOKMARK, LIST
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


def observations(timeline: Timeline, wanted: set[int], limit: int) -> tuple[list[tuple[Entry, str]], int]:
    """Entries that say something new, with their words, and how many of those were left out for ``limit``.

    Entries numbered in ``wanted`` and actions are always there. What lies before the run (listed events) is not new.
    """
    rows: list[tuple[Entry, str]] = []
    last: dict[tuple[str, str], str] = {}
    left_out = 0
    for entry in timeline.entries:
        told = describe(entry)
        key = _subject(entry)
        fresh = entry.kind in _KINDS and entry.type != BOOKMARK and last.get(key) != told
        if entry.type == LIST and (entry.kind == "events" or entry.kind not in _KINDS):
            fresh = False
        last[key] = told
        if entry.seq in wanted or entry.kind == "action" or (fresh and len(rows) < limit):
            rows.append((entry, told))
        elif fresh:
            left_out += 1
    return rows, left_out


def _subject(entry: Entry) -> tuple[str, str]:
    """What an entry is about: two entries about the same that say the same are a repetition."""
    metadata = getattr(entry.object, "metadata", None)
    if metadata is not None and not isinstance(entry.object, Lease):
        return entry.kind, metadata.uid or metadata.name
    return entry.kind, f"{entry.node} {entry.type if entry.kind in ('host', 'probe') else ''}"
