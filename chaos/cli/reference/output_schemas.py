"""JSON Schemas of what nodefall writes for programs, from the records that it is made of.

All of them: keys in snake_case, a ``version``, moments in seconds since the epoch with RFC 3339 beside them
(``started_rfc3339``), durations in seconds. Within a version keys are only added: no schema forbids other keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.core.moments import MOMENT_KEYS, RFC3339
from chaos.core.plan import Plan
from chaos.core.result import RunResult
from chaos.core.store.journal_format import Record
from chaos.documents.schema import DIALECT
from chaos.rehearsal.forecast.document import Rehearsal
from chaos.rehearsal.suggest.document import Suggestion
from chaos.reports.comparison.document import ComparisonDocument
from chaos.reports.day.document import DayDocument
from chaos.reports.run.outline import Evidence

_WHAT: Mapping[str, tuple[type, str]] = {
    "result": (RunResult, "result.json of a run, and run --json, judge --json and show --json"),
    "plan": (Plan, "plan.json of a run, plan --out and plan --json"),
    "journal": (Record, "one line of journal.jsonl of a run"),
    "rehearsal": (Rehearsal, "rehearsal.json, and rehearse --json of one experiment"),
    "suggestion": (Suggestion, "suggest.json, and suggest --json"),
    "comparison": (ComparisonDocument, "compare --json"),
    "day": (DayDocument, "report.json of a game day"),
}
_DATED = {"result", "day"}  # of a plan, what an undo needs is as the action made it
_VERSION = {"type": "integer", "minimum": 1}
_MORE: Mapping[str, dict[str, Any]] = {
    "plan": {"version": _VERSION},
    "result": {"resolved": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Evidence"}}},
}


def output_schema(kind: str) -> dict[str, Any]:
    """The schema of one kind of output, one of those that ``nodefall schema`` takes."""
    record, title = _WHAT[kind]
    (reference, _), definitions = msgspec.json.schema_components([record, Evidence], ref_template="#/$defs/{name}")
    name = reference["$ref"].rpartition("/")[2]
    top = definitions[name]
    top["properties"] |= _MORE.get(kind, {})
    top["required"] = sorted({*top.get("required", ()), "version"})
    used = {name: definitions[name] for name in _reachable(name, definitions)}
    for definition in [top] if kind == "plan" else used.values() if kind in _DATED else ():
        _add_dates(definition.get("properties", {}))
    return {
        "$schema": DIALECT,
        "$id": f"https://nodefall.dev/schema/{kind}-v1.json",
        "title": title,
        "$ref": reference["$ref"],
        "$defs": dict(sorted(used.items())),
    }


def _add_dates(fields: dict[str, Any]) -> None:
    """RFC 3339 beside each moment that is a number."""
    for key in [key for key in fields if key in MOMENT_KEYS and fields[key].get("type") != "boolean"]:
        fields[f"{key}{RFC3339}"] = {"type": "string", "format": "date-time"}


def _reachable(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that one needs, with those that they need."""
    found, open_ = set[str](), [name]
    while open_:
        current = open_.pop()
        if current not in found:
            found.add(current)
            open_ += _references(definitions[current])
    return found


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"].rpartition("/")[2]] if isinstance(value.get("$ref"), str) else []
    return own + [name for item in value.values() for name in _references(item)]
