"""Label and field selectors of list and watch requests. Syntax: k8s.io/apimachinery/pkg/labels and /fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from chaos.lab.servers.errors import ApiError

Match = Callable[[dict[str, Any]], bool]
_SET = re.compile(r"\s*([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)\s*")
_EQUAL = re.compile(r"\s*([\w./-]+)\s*(==|!=|=)\s*([\w.-]*)\s*")
_EXISTS = re.compile(r"\s*(!?)\s*([\w./-]+)\s*")
_COMMA = re.compile(r",(?![^()]*\))")
_COMMON_FIELDS = ("metadata.name", "metadata.namespace")
_FIELDS = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}


def label_selector(text: str) -> list[Match]:
    """One test per requirement. Raises ApiError 400."""
    return [_requirement(part) for part in _COMMA.split(text) if part.strip()]


def _requirement(text: str) -> Match:
    if match := _SET.fullmatch(text):
        key, operator = match[1], match[2]
        values = {value.strip() for value in match[3].split(",")}
        return lambda obj: (_labels(obj).get(key) in values) == (operator == "in")
    if match := _EQUAL.fullmatch(text):
        key, same, value = match[1], match[2] != "!=", match[3]
        return lambda obj: (_labels(obj).get(key) == value) == same
    if match := _EXISTS.fullmatch(text):
        wanted, key = not match[1], match[2]
        return lambda obj: (key in _labels(obj)) == wanted
    raise ApiError(400, f"unable to parse requirement: {text!r}")


def field_selector(plural: str, text: str) -> list[Match]:
    """One test per field. Raises ApiError 400, also for a field that this kind does not offer."""
    return [_field(plural, part) for part in text.split(",") if part.strip()]


def _field(plural: str, text: str) -> Match:
    match = _EQUAL.fullmatch(text)
    if not match:
        raise ApiError(400, f"invalid field selector: {text!r}")
    path, same, value = match[1], match[2] != "!=", match[3]
    if path not in (*_COMMON_FIELDS, *_FIELDS.get(plural, ())):
        raise ApiError(400, f"field label not supported: {path}")
    keys = ["source", "component"] if path == "source" else path.split(".")
    return lambda obj: (_value(obj, keys) == value) == same


def _labels(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _value(obj: Any, keys: list[str]) -> str:
    for key in keys:
        obj = (obj or {}).get(key)
    if isinstance(obj, bool):
        return str(obj).lower()
    return "" if obj is None else str(obj)
