"""OpenAPI v2 and v3 of the resources: field names and types, and the parameters that kubectl needs.

The schemas are those of Kubernetes without descriptions; ``tools/lab_schemas.py`` generates them.
OpenAPI v2 in protobuf, which kubectl requires: it validates the items of a ``kind: List`` with it.
Field numbers: OpenAPIv2.proto of github.com/google/gnostic. It has no paths: kubectl uses only the definitions.
Routes of discovery and OpenAPI.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from chaos.lab.http import resources
from chaos.lab.http.errors import ApiError, negotiate, parse_accept
from chaos.lab.http.messages import Request, json_response
from chaos.lab.http.resources import RESOURCES, Resource, group_version_of, group_versions

Schemas = dict[str, dict[str, Any]]
_GVK = "x-kubernetes-group-version-kind"
_REF = b"#/components/schemas/"
_WRITES = ("post", "put", "patch")


@cache
def schemas() -> Schemas:
    """Schemas by type name."""
    result: Schemas = msgspec.json.decode((Path(__file__).parent / "schemas.json").read_bytes())
    return result


@cache
def document(group_version: str) -> bytes:
    """OpenAPI v3 document of a group version."""
    return msgspec.json.encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "unversioned"},
            "paths": dict(_paths(group_version)),
            "components": {"schemas": _schemas_of(group_version)},
        }
    )


@cache
def index() -> dict[str, Any]:
    """URLs of the v3 documents; the hash makes them cacheable."""
    paths = {}
    for name in group_versions():
        digest = hashlib.sha256(document(name)).hexdigest().upper()
        root = _root(name).removeprefix("/")
        paths[root] = {"serverRelativeURL": f"/openapi/v3/{root}?hash={digest}"}
    return {"paths": paths}


@cache
def swagger() -> bytes:
    """OpenAPI v2 document of all group versions."""
    paths = {path: item for name in group_versions() for path, item in _paths(name)}
    head = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"}}
    return msgspec.json.encode({**head, "paths": paths, "definitions": schemas()}).replace(_REF, b"#/definitions/")


def _root(group_version: str) -> str:
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


def _paths(group_version: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for (known, _), resource in RESOURCES.items():
        if known == group_version:
            scope = "/namespaces/{namespace}" if resource.namespaced else ""
            collection = f"{_root(group_version)}{scope}/{resource.plural}"
            yield collection, _operations(resource, {"get": "list", "post": "post", "delete": "deletecollection"})
            yield (
                collection + "/{name}",
                _operations(resource, {name: name for name in ("get", "put", "patch", "delete")}),
            )


def _operations(resource: Resource, actions: dict[str, str]) -> dict[str, Any]:
    group, _, version = resource.group_version.rpartition("/")
    gvk = {"group": group, "version": version, "kind": resource.kind}
    return {
        method: {
            "parameters": [_query("dryRun"), _query("fieldValidation")] if method in _WRITES else [],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            _GVK: gvk,
        }
        for method, action in actions.items()
    }


def _query(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}


def _schemas_of(group_version: str) -> Schemas:
    """Types of a group version, with all types that they refer to."""
    result: Schemas = {}
    pending = [name for name in schemas() if _belongs_to(name, group_version)]
    while pending:
        name = pending.pop()
        if name not in result:
            result[name] = schemas()[name]
            pending += [item.rpartition("/")[2] for item in _references(result[name])]
    return result


def _belongs_to(name: str, group_version: str) -> bool:
    kinds = schemas()[name].get(_GVK, [])
    return any(f"{kind['group']}/{kind['version']}".lstrip("/") == group_version for kind in kinds)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_REF, _FORMAT, _REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 1, 2, 19, 21, 22, 23, 25, 31


@cache
def swagger_protobuf() -> bytes:
    """OpenAPI v2 document as a Document message."""
    info = _text(1, "Kubernetes") + _text(2, "unversioned")
    return _text(1, "2.0") + _bytes(2, info) + _bytes(9, _named_schemas(schemas()))


def _named_schemas(schemas_by_name: dict[str, Any]) -> bytes:
    """Message of NamedSchema messages only: Definitions, Properties."""
    return b"".join(_bytes(1, _text(1, name) + _bytes(2, _schema(schema))) for name, schema in schemas_by_name.items())


def _schema(schema: dict[str, Any]) -> bytes:
    return b"".join(_parts(schema))


def _parts(schema: dict[str, Any]) -> Iterator[bytes]:
    """Fields of a Schema message. Version 2 has no ``oneOf``: such a type accepts any value."""
    for key, value in schema.items():
        if key == "$ref":
            yield _text(_V2_REF, value.replace("/components/schemas/", "/definitions/"))
        elif key == "format":
            yield _text(_FORMAT, value)
        elif key == "required":
            yield from (_text(_REQUIRED, name) for name in value)
        elif key == "additionalProperties":
            yield _bytes(_ADDITIONAL, _bytes(1, _schema(value)))
        elif key == "type":
            yield _bytes(_TYPE, _text(1, value))
        elif key == "items":
            yield _bytes(_ITEMS, _bytes(1, _schema(value)))
        elif key == "properties":
            yield _bytes(_PROPERTIES, _named_schemas(value))
        elif key.startswith("x-"):
            yaml = msgspec.json.encode(value) + b"\n"
            yield _bytes(_EXTENSION, _text(1, key) + _bytes(2, _bytes(2, yaml)))


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def routes() -> list[web.RouteDef]:
    """Routes of discovery and OpenAPI."""
    return [
        web.get("/api", _core),
        web.get("/apis", _groups),
        web.get("/apis/{group}", _group),
        web.get("/api/{version}", _resources),
        web.get("/apis/{group}/{version}", _resources),
        web.get("/openapi/v2", _swagger),
        web.get("/openapi/v3", _index),
        web.get("/openapi/v3/api/{version}", _document),
        web.get("/openapi/v3/apis/{group}/{version}", _document),
    ]


async def _core(request: Request) -> web.Response:
    versions = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    return _discovery_response(request, versions, core=True)


async def _groups(request: Request) -> web.Response:
    return _discovery_response(request, resources.group_list(), core=False)


def _discovery_response(request: Request, plain: dict[str, Any], core: bool) -> web.Response:
    """Aggregated discovery if the client accepts it, else ``plain``."""
    clause = negotiate(request.headers.get("Accept", ""), "apidiscovery.k8s.io", ("v2",), ("APIGroupDiscoveryList",))
    if not clause.kind:
        return json_response(plain)
    return json_response(
        resources.aggregated_discovery(core), headers={"Content-Type": resources.AGGREGATED_CONTENT_TYPE}
    )


async def _group(request: Request) -> web.Response:
    return json_response(_require(resources.group(request.match_info["group"])))


async def _resources(request: Request) -> web.Response:
    return json_response(_require(resources.resource_list(group_version_of(request.match_info))))


async def _index(_: Request) -> web.Response:
    return json_response(index())


async def _document(request: Request) -> web.Response:
    name = group_version_of(request.match_info)
    _require(resources.resource_list(name))
    return web.Response(body=document(name), content_type="application/json")


async def _swagger(request: Request) -> web.Response:
    header = request.headers.get("Accept", "")
    if any(clause.media_type == MEDIA_TYPE for clause in parse_accept(header)):
        return web.Response(body=swagger_protobuf(), content_type=CONTENT_TYPE)
    negotiate(header, "", (), ())
    return web.Response(body=swagger(), content_type="application/json")


def _require(document: dict[str, Any] | None) -> dict[str, Any]:
    if document is None:
        raise ApiError(404, "the server could not find the requested resource")
    return document
