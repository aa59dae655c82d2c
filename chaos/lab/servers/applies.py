"""Server-side apply: PATCH with application/apply-patch+yaml. handlers/patch.go, applyPatcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from aiohttp import web

from chaos.lab.objects import Object
from chaos.lab.servers.checks import checked
from chaos.lab.servers.errors import ApiError
from chaos.lab.servers.field_sets import Path, SchemaError, element
from chaos.lab.servers.managed_fields import Writer, applied
from chaos.lab.servers.ownership import ApplyConflict, Manager
from chaos.lab.servers.resources import Place, Resource
from chaos.lab.servers.typed import Typed, typed_of

APPLY_PATCH = "application/apply-patch+yaml"


async def read_apply(request: web.Request, place: Place) -> Object:
    """What somebody applies. Raises ApiError 400, 500.

    kubectl and client-go send JSON, which is YAML; other YAML is refused.
    """
    try:
        patch = msgspec.json.decode(await request.read())
    except msgspec.DecodeError as error:
        raise ApiError(400, f"error decoding YAML: the lab reads YAML only if it is JSON: {error}") from error
    for field in ("kind", "apiVersion"):
        if not isinstance(patch, dict) or not patch.get(field):
            raise ApiError(400, f"{field} must be set in an apply patch")
    if (patch.get("metadata") or {}).get("managedFields") is not None:
        raise ApiError(400, "metadata.managedFields must be nil")
    patch = _without_nulls(patch)
    if problems := list(_problems(patch, typed_of(place.resource), "")):
        raise untyped(place, problems)
    return checked(patch, place).object


def merged(
    writer: Writer, place: Place, live: Object | None, patch: Object, force: bool
) -> tuple[Object, list[Object]]:
    """The object to store with its managedFields. Raises ApiError 409, 500."""
    try:
        return applied(writer, live or {}, patch, force)
    except ApplyConflict as error:
        raise _conflict(error, place.resource) from error
    except SchemaError as error:
        raise untyped(place, [str(error)]) from error


def untyped(place: Place, problems: list[str]) -> ApiError:
    """As Kubernetes answers a patch that its schema cannot hold."""
    group, _, version = place.resource.group_version.rpartition("/")
    head = f"failed to create typed patch object ({place.namespace}/{place.name}; {group}/{version}, "
    text = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
    return ApiError(500, f"{head}Kind={place.resource.kind}): {text}")


def _problems(value: Any, typed: Typed, path: str) -> Iterator[str]:
    """Fields that are not declared, and lists whose items are not told apart."""
    if typed.leaf:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if typed.struct and not typed.declares("f:" + key):
                yield f"{path}.{key}: field not declared in schema"
            else:
                yield from _problems(item, typed.child(key), f"{path}.{key}")
    elif isinstance(value, list):
        yield from _problems_of_items(value, typed, path)


def _problems_of_items(items: list[Any], typed: Typed, path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items):
        try:
            name = element(item, typed)
        except SchemaError as error:
            yield f"{path}: element {index}: {error}"
            continue
        if name in seen:
            yield f"{path}: duplicate entries for key {_shown((name,))}"
        seen.add(name)
        yield from _problems(item, typed.item, path + _shown((name,)))


def _conflict(error: ApplyConflict, resource: Resource) -> ApiError:
    """internal/conflict.go."""
    found = [(_named(manager, resource), _shown(path)) for manager, path in error.conflicts]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in found
    ]
    if len(found) == 1:
        text = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        groups = [
            "\n".join([f"conflicts with {manager}:", *(f"- {path}" for known, path in found if known == manager)])
            for manager in dict.fromkeys(manager for manager, _ in found)
        ]
        text = f"Apply failed with {len(found)} conflicts: " + "\n".join(groups)
    return ApiError(409, text, details={"causes": causes})


def _named(manager: Manager, resource: Resource) -> str:
    name = msgspec.json.encode(manager.name).decode()
    if manager.subresource:
        name += f' with subresource "{manager.subresource}"'
    return name + (f" using {resource.group_version}" if manager.operation == "Update" else "")


def _shown(path: Path) -> str:
    """As fieldpath.Path.String."""
    return "".join(map(_shown_element, path))


def _shown_element(name: str) -> str:
    kind, _, text = name.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    keys = msgspec.json.decode(text)
    return "[" + ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items()) + "]"


def _without_nulls(value: Any) -> Any:
    """A null says nothing."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
