"""Helpers for requests and responses, shared by all handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from aiohttp import web
from multidict import MultiMapping

from chaos.lab.apiserver.http.errors import ApiError, not_found
from chaos.lab.apiserver.http.protobuf import CONTENT_TYPE, decode
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.apiserver.http.selectors import Predicate, parse_field_selector, parse_label_selector
from chaos.lab.cluster import Cluster
from chaos.lab.objects.accessors import Object

_LARGE, _PIECE = 1 << 22, 1 << 18  # bytes


class Request(Protocol):
    """What handlers read of a request: one of aiohttp, or one that is made in this process."""

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
