"""Columns, and the small texts that many of them are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from chaos.lab.objects.accessors import Object
from chaos.lab.sim.clock import seconds_of

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
Cells = list[Any]
Summary = Callable[[Object, float], Cells]
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 86400 * 365


@dataclass(frozen=True, slots=True)
class Printer:
    """``cells`` makes one row of an object at the simulated time, with a cell for every column."""

    columns: tuple[dict[str, Any], ...]
    cells: Summary


def printer(headings: str, cells: Summary) -> Printer:
    """Headings are apart by blanks, have ``_`` for a blank of their own, ``:type`` if no strings, ``+`` if wide."""
    return Printer(tuple(_column(heading) for heading in headings.split()), cells)


def _column(heading: str) -> dict[str, Any]:
    wide = heading.endswith("+")
    text, _, type_ = heading.removesuffix("+").partition(":")
    title = text.replace("_", " ")
    format_ = "name" if title == "Name" else ""
    return {"name": title, "type": type_ or "string", "format": format_, "description": "", "priority": int(wide)}


def human_duration(seconds: float) -> str:
    """As k8s.io/apimachinery/pkg/util/duration HumanDuration."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 3 * _HOUR:
        return _with_rest(whole, _MINUTE, "m", 1, "s") if whole < 10 * _MINUTE else f"{whole // _MINUTE}m"
    if whole < 2 * _DAY:
        return _with_rest(whole, _HOUR, "h", _MINUTE, "m") if whole < 8 * _HOUR else f"{whole // _HOUR}h"
    if whole < 2 * _YEAR:
        return _with_rest(whole, _DAY, "d", _HOUR, "h") if whole < 8 * _DAY else f"{whole // _DAY}d"
    return _with_rest(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def _with_rest(seconds: int, unit: int, name: str, part: int, part_name: str) -> str:
    rest = seconds % unit // part
    return f"{seconds // unit}{name}" + (f"{rest}{part_name}" if rest else "")


def name(obj: Object) -> str:
    """The object's name; a bookmark has none."""
    return str(obj["metadata"].get("name", ""))


def since(timestamp: str | None, now: float) -> str:
    """The time passed since a timestamp of the API."""
    return human_duration(now - seconds_of(timestamp)) if timestamp else UNKNOWN


def age(obj: Object, now: float) -> str:
    """The time passed since the object was created."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def labels_text(labels: dict[str, str] | None) -> str:
    """As labels.FormatLabels."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Object | None) -> str:
    """As the string of a labels.Selector."""
    wanted = selector or {}
    found = [(key, f"{key}={value}") for key, value in (wanted.get("matchLabels") or {}).items()]
    found += [(item["key"], _expression(item)) for item in wanted.get("matchExpressions") or []]
    return ",".join(text for _, text in sorted(found, key=lambda pair: pair[0]))


def _expression(item: dict[str, Any]) -> str:
    key, operator = item["key"], item["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return key if operator == "Exists" else f"!{key}"
    return f"{key} {operator.lower()} ({','.join(sorted(item.get('values') or []))})"


def first_three(texts: Iterable[str]) -> str:
    """As listWithMoreString."""
    found = list(texts)
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or UNSET


def part(obj: Object, key: str) -> Object:
    """A part of an object such as spec; empty if there is none."""
    return obj.get(key) or {}


DEFAULT = printer("Name Created_At", lambda obj, _: [name(obj), obj["metadata"].get("creationTimestamp")])
