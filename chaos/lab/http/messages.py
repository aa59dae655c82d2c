"""Requests and responses, and the selectors in them.

Label and field selectors of list and watch requests. Syntax: k8s.io/apimachinery/pkg/labels and /fields.
Helpers for requests and responses, shared by all handlers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from aiohttp import web
from multidict import MultiMapping

from chaos.lab.cluster import Cluster
from chaos.lab.http.errors import ApiError, not_found
from chaos.lab.http.protobuf import CONTENT_TYPE, decode
from chaos.lab.http.resources import RequestInfo
from chaos.lab.objects import Object

Predicate = Callable[[dict[str, Any]], bool]
_SET = re.compile(r"\s*([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)\s*", re.ASCII)
_EQUAL = re.compile(r"\s*([\w./-]+)\s*(==|!=|=)\s*([\w.-]*)\s*", re.ASCII)
_NUMBER = re.compile(r"\s*([\w./-]+)\s*([<>])\s*(-?\d+)\s*", re.ASCII)
_EXISTS = re.compile(r"\s*(!?)\s*([\w./-]+)\s*", re.ASCII)
_COMMA = re.compile(r",(?![^()]*\))")
_TERM = re.compile(r"(?:\\.?|[^,\\])+", re.DOTALL)  # an escaped comma does not end the term
_FIELD = re.compile(r"(.*?)(==|!=|=)((?:\\[\\,=]|[^\\,=])*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")
# Supported fields by resource, with the values that stand for absent ones.
# Sources: pkg/apis/core/v1/conversion.go and the ToSelectableFields of pkg/registry.
_COMMON_FIELDS = {"metadata.name": "", "metadata.namespace": ""}
_FIELDS = {
    "pods": {
        **dict.fromkeys(("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"), ""),
        **dict.fromkeys(("status.phase", "status.podIP", "status.nominatedNodeName"), ""),
        "spec.hostNetwork": "false",
    },
    "nodes": {"spec.unschedulable": "false"},
    "namespaces": {"status.phase": ""},
    "replicasets": {"status.replicas": "0"},
    "jobs": {"status.successful": "0"},
    "events": dict.fromkeys(
        (
            *(f"involvedObject.{key}" for key in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")),
            "involvedObject.resourceVersion",
            *("reason", "reportingComponent", "source", "type"),
        ),
        "",
    ),
}
_FIELD_PATHS = {"source": "source.component", "status.successful": "status.succeeded"}


def parse_label_selector(text: str) -> list[Predicate]:
    """Predicates of a label selector, one per requirement. Raises ApiError 400."""
    return [_requirement(part) for part in _COMMA.split(text) if part.strip()]


def _requirement(text: str) -> Predicate:
    if match := _SET.fullmatch(text):
        key, operator = match[1], match[2]
        values = {value.strip() for value in match[3].split(",")}
        return lambda obj: (_labels(obj).get(key) in values) == (operator == "in")
    if match := _EQUAL.fullmatch(text):
        key, is_equal, value = match[1], match[2] != "!=", match[3]
        return lambda obj: (_labels(obj).get(key) == value) == is_equal
    if match := _NUMBER.fullmatch(text):
        key, is_greater, number = match[1], match[2] == ">", int(match[3])
        return lambda obj: _compare_number(_labels(obj).get(key), is_greater, number)
    if match := _EXISTS.fullmatch(text):
        is_present, key = not match[1], match[2]
        return lambda obj: (key in _labels(obj)) == is_present
    raise ApiError(400, f"unable to parse requirement: {text!r}")


def _compare_number(label: str | None, is_greater: bool, number: int) -> bool:
    if label is None or not re.fullmatch(r"-?\d+", label, re.ASCII):
        return False
    return int(label) > number if is_greater else int(label) < number


def parse_field_selector(plural: str, text: str) -> list[Predicate]:
    """Predicates of a field selector, one per field. Raises ApiError 400, also for an unsupported field."""
    return [_field(plural, part) for part in _TERM.findall(text)]


def _field(plural: str, text: str) -> Predicate:
    match = _FIELD.fullmatch(text)
    if not match:
        raise ApiError(400, f"invalid selector: {text!r}")
    path, is_equal, value = match[1], match[2] != "!=", _ESCAPED.sub(r"\1", match[3])
    fields = _COMMON_FIELDS | _FIELDS.get(plural, {})
    if path not in fields:
        raise ApiError(400, f"field label not supported: {path}")
    keys, default = _FIELD_PATHS.get(path, path).split("."), fields[path]
    return lambda obj: (_value(obj, keys, default) == value) == is_equal


def _labels(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _value(obj: Any, keys: list[str], default: str) -> str:
    for key in keys:
        obj = (obj or {}).get(key)
    if isinstance(obj, bool):
        return str(obj).lower()
    return default if obj is None else str(obj)


_LARGE, _PIECE = 1 << 22, 1 << 18  # bytes


class Request(Protocol):
    """The parts of a request that handlers read: one of aiohttp, or one that is made in this process."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def match_info(self) -> Mapping[str, str]: ...

    @property
    def query(self) -> MultiMapping[str]: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def content_type(self) -> str: ...

    @property
    def can_read_body(self) -> bool: ...

    async def read(self) -> bytes: ...


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Handle = Callable[[], Awaitable[web.StreamResponse]]  # a handler with its request


class PiecedResponse(web.Response):
    """A response whose body is written in pieces; ``whole`` is that body."""

    def __init__(self, whole: bytes, status: int, headers: dict[str, str]) -> None:
        super().__init__(body=_pieces(whole), status=status, headers={**headers, "Content-Length": str(len(whole))})
        self.whole = whole


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Response with a JSON body; a large one is written in pieces, as each layer copies what is written at once."""
    headers, data = {"Content-Type": "application/json", **(headers or {})}, msgspec.json.encode(body)
    if len(data) <= _LARGE:
        return web.Response(body=data, status=status, headers=headers)
    return PiecedResponse(data, status, headers)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


async def read_body(request: Request) -> Any:
    """Decode a body in JSON or protobuf. Raises ApiError 400 and 415."""
    if request.content_type == CONTENT_TYPE:
        return decode(await request.read())
    try:
        body = msgspec.json.decode(await request.read())
    except msgspec.DecodeError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict) and request.content_type != "application/json-patch+json":
        raise ApiError(400, "the body is not an object")
    return body


def parse_whole_number(text: str) -> int:
    """Parse a query parameter. Raises ApiError 400."""
    if not text.isdecimal():
        raise ApiError(400, f"{text[:40]!r} is not a whole number")
    return int(text)


def parse_selectors(request: Request, info: RequestInfo) -> list[Predicate]:
    """Predicates of the request's label and field selectors. Raises ApiError 400."""
    query = request.query
    return [
        *parse_label_selector(query.get("labelSelector", "")),
        *parse_field_selector(info.resource.plural, query.get("fieldSelector", "")),
    ]


def get_object(cluster: Cluster, info: RequestInfo) -> Object:
    """Stored object of a URL. Raises ApiError 404."""
    obj = cluster.store.get(info.resource.plural, info.namespace, info.name)
    if obj is None:
        raise not_found(info.resource.plural, info.name)
    return obj
