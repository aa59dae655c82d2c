"""What changed, without repetitions: rows of observations, and the fields that differ."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from msgspec import Struct, to_builtins

from chaos.core.kube import Lease
from chaos.core.recording import BOOKMARK, LIST, EntryKind
from chaos.core.text import printable
from chaos.core.timeline import Entry, Timeline
from chaos.reports.run.describe import describe

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


def observations(timeline: Timeline, cited: set[int], limit: int) -> tuple[list[tuple[Entry, Any]], int]:
    """Entries that differ from the previous one of their subject, and the number omitted.

    Each with the version of its object before, None for the first. At most ``limit`` rows, but entries with a sequence
    number in ``cited`` and actions are always included. Listed events happened before the run and are no change.
    """
    news, previous = News(), dict[tuple[str, str], Any]()
    rows, omitted = list[tuple[Entry, Any]](), 0
    for entry in timeline.entries:  # once: they may be many, and packed
        is_new, key = news.is_new(entry), object_identity(entry)
        if _is_row(entry, len(rows) < limit, cited, is_new=is_new):
            rows.append((entry, previous.get(key) if key else None))
        elif is_new:
            omitted += 1
        if key is not None:
            previous[key] = entry.object
    return rows, omitted


def object_identity(entry: Entry) -> tuple[str, str] | None:
    """What distinguishes the object of an entry from others, None for an entry without one."""
    metadata = getattr(entry.object, "metadata", None)
    return None if metadata is None else (entry.kind, metadata.uid or f"{metadata.namespace}/{metadata.name}")


class News:
    """Finds which entries, in their order, differ from the previous one of their subject."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str] = {}

    def is_new(self, entry: Entry) -> bool:
        """Whether the next entry is a change."""
        if entry.kind not in _KINDS:
            return False
        text, key = describe(entry), _subject(entry)
        before, self._last[key] = self._last.get(key), text
        is_listed_event = entry.type == LIST and entry.kind == "events"
        return entry.type != BOOKMARK and before != text and not is_listed_event


def select(entries: Iterable[tuple[Entry, bool]], cited: Container[int], limit: int) -> tuple[list[Entry], int]:
    """The rows among entries, each with whether it is new, and the number of those omitted."""
    rows: list[Entry] = []
    omitted = 0
    for entry, is_new in entries:
        if _is_row(entry, len(rows) < limit, cited, is_new=is_new):
            rows.append(entry)
        elif is_new:
            omitted += 1
    return rows, omitted


def _is_row(entry: Entry, has_room: bool, cited: Container[int], *, is_new: bool) -> bool:
    return entry.seq in cited or entry.kind == EntryKind.ACTION or (is_new and has_room)


def _subject(entry: Entry) -> tuple[str, str]:
    """Subject of an entry: equal descriptions of the same subject are a repetition."""
    metadata = getattr(entry.object, "metadata", None)
    if metadata is not None and not isinstance(entry.object, Lease):
        return entry.kind, metadata.uid or metadata.name
    return entry.kind, f"{entry.node} {entry.type if entry.kind in ('host', 'probe') else ''}"


_MAX_LENGTH, _MAX_CHANGES = 300, 40
# Change with every write and explain none.
_NOISE = frozenset({"resourceVersion", "managedFields", "lastHeartbeatTime", "observedGeneration"})
# Fields that identify the elements of a list, so that one element more does not shift the others.
_KEYS = ("type", "name", "key", "uid", "containerPort", "ip", "address")

Change = tuple[str, str, str]  # path, before, after; "" where the field is missing


def object_diff(before: Any, after: Any) -> list[Change]:
    """Fields that differ, sorted by path, at most 40."""
    found = sorted(_differences("", _plain(before), _plain(after)), key=lambda change: change[0])
    return [(printable(path, _MAX_LENGTH), _shown(old), _shown(new)) for path, old, new in found[:_MAX_CHANGES]]


def _shown(value: Any) -> str:
    return "" if value is None else printable(str(value), _MAX_LENGTH)


def _plain(value: Any) -> Any:
    return to_builtins(value, str_keys=True) if isinstance(value, Struct) else value


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Scalars that differ; None stands for a missing one. Equal parts are not searched."""
    before, after = _parts(old), _parts(new)
    for key in before.keys() | after.keys():
        if (first := before.get(key)) != (second := after.get(key)):
            inner = key if not path or key.startswith("[") else f".{key}"
            yield from _differences(path + inner, first, second)
    old, new = (None if isinstance(value, dict | list) else value for value in (old, new))
    if old != new:
        yield path, old, new


def _parts(value: Any) -> dict[str, Any]:
    """Fields of an object, elements of a list by what identifies them; none of a scalar."""
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if key not in _NOISE}
    if isinstance(value, list):
        return {f"[{_element(inner, index)}]": inner for index, inner in enumerate(value)}
    return {}


def _element(value: Any, index: int) -> str:
    if isinstance(value, dict):
        for key in _KEYS:
            if value.get(key):
                return str(value[key])
    return str(index)
