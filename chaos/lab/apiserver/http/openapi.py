"""OpenAPI v2 and v3 of the resources: field names and types, and the parameters that kubectl needs.

The schemas are those of Kubernetes without descriptions; ``tools/lab_schemas.py`` generates them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from chaos.lab.apiserver.http.discovery import group_versions
from chaos.lab.apiserver.http.resources import RESOURCES, Resource

Schemas = dict[str, dict[str, Any]]
_GVK = "x-kubernetes-group-version-kind"
_REF = b"#/components/schemas/"
_OBJECT_METHODS = ("get", "put", "patch", "delete")
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
