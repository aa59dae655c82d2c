"""Columns, and texts shared by several printers."""

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
    """Printer of a resource; ``cells`` returns the row of an object at a simulated time, one cell per column."""

    columns: tuple[dict[str, Any], ...]
    cells: Summary


def printer(headings: str, cells: Summary) -> Printer:
    """Printer for space-separated headings: ``_`` is a space, ``:type`` a type but string, ``+`` a wide column."""
    return Printer(tuple(_column(heading) for heading in headings.split()), cells)


def _column(heading: str) -> dict[str, Any]:
    wide = heading.endswith("+")
    text, _, type_ = heading.removesuffix("+").partition(":")
    title = text.replace("_", " ")
    format_ = "name" if title == "Name" else ""
    return {"name": title, "type": type_ or "string", "format": format_, "description": "", "priority": int(wide)}


def human_duration(seconds: float) -> str:
    """Duration as of HumanDuration of k8s.io/apimachinery/pkg/util/duration."""
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
    """Name of the object; "" for a bookmark."""
    return str(obj["metadata"].get("name", ""))


def since(timestamp: str | None, now: float) -> str:
    """Time since a timestamp of the API."""
    return human_duration(now - seconds_of(timestamp)) if timestamp else UNKNOWN


def age(obj: Object, now: float) -> str:
    """Time since the creation of the object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def labels_text(labels: dict[str, str] | None) -> str:
    """Labels as of labels.FormatLabels."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Object | None) -> str:
    """Selector as of labels.Selector.String."""
    wanted = selector or {}
    result = [(key, f"{key}={value}") for key, value in (wanted.get("matchLabels") or {}).items()]
    result += [(item["key"], _expression(item)) for item in wanted.get("matchExpressions") or []]
    return ",".join(text for _, text in sorted(result, key=lambda pair: pair[0]))


def _expression(item: dict[str, Any]) -> str:
    key, operator = item["key"], item["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return key if operator == "Exists" else f"!{key}"
    return f"{key} {operator.lower()} ({','.join(sorted(item.get('values') or []))})"


def first_three(texts: Iterable[str]) -> str:
    """First three texts, and the number of the others, as listWithMoreString."""
    result = list(texts)
    more = f" + {len(result) - 3} more..." if len(result) > 3 else ""
    return ",".join(result[:3]) + more or UNSET


def part(obj: Object, key: str) -> Object:
    """Part of an object such as spec; empty if absent."""
    return obj.get(key) or {}


DEFAULT = printer("Name Created_At", lambda obj, _: [name(obj), obj["metadata"].get("creationTimestamp")])
