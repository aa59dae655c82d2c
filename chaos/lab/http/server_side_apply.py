"""Server-side apply: PATCH with application/apply-patch+yaml. handlers/patch.go, applyPatcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chaos.lab.http.errors import ApiError
from chaos.lab.http.field_sets import FieldType, Path, SchemaError, field_type_of, path_element
from chaos.lab.http.managed_fields import Writer, apply_configuration
from chaos.lab.http.messages import Request
from chaos.lab.http.ownership import ApplyConflict, Manager
from chaos.lab.http.resources import RequestInfo, Resource
from chaos.lab.http.schemas import validate_object
from chaos.lab.objects.accessors import Object

APPLY_PATCH = "application/apply-patch+yaml"


async def read_apply_patch(request: Request, info: RequestInfo) -> Object:
    """Read and validate an apply patch. Raises ApiError 400, 500.

    kubectl and client-go send JSON, which is YAML; other YAML is rejected.
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
    patch = _drop_nulls(patch)
    if problems := list(_schema_errors(patch, field_type_of(info.resource), "")):
        raise typed_patch_error(info, problems)
    return validate_object(patch, info).object


def server_side_apply(
    writer: Writer, info: RequestInfo, live: Object | None, patch: Object, force: bool
) -> tuple[Object, list[Object]]:
    """Object to store, and its managedFields. Raises ApiError 409, 500."""
    try:
        return apply_configuration(writer, live or {}, patch, force)
    except ApplyConflict as error:
        raise _conflict_error(error, info.resource) from error
    except SchemaError as error:
        raise typed_patch_error(info, [str(error)]) from error


def typed_patch_error(info: RequestInfo, problems: list[str]) -> ApiError:
    """ApiError 500 for a patch that does not fit the schema."""
    group, _, version = info.resource.group_version.rpartition("/")
    head = f"failed to create field_type patch object ({info.namespace}/{info.name}; {group}/{version}, "
    text = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
    return ApiError(500, f"{head}Kind={info.resource.kind}): {text}")


def _schema_errors(value: Any, field_type: FieldType, path: str) -> Iterator[str]:
    """Undeclared fields, and invalid or duplicate list items."""
    if field_type.is_leaf:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if field_type.is_struct and not field_type.has_field("f:" + key):
                yield f"{path}.{key}: field not declared in schema"
            else:
                yield from _schema_errors(item, field_type.child(key), f"{path}.{key}")
    elif isinstance(value, list):
        yield from _item_errors(value, field_type, path)


def _item_errors(items: list[Any], field_type: FieldType, path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items):
        try:
            name = path_element(item, field_type)
        except SchemaError as error:
            yield f"{path}: element {index}: {error}"
            continue
        if name in seen:
            yield f"{path}: duplicate entries for key {_path_text((name,))}"
        seen.add(name)
        yield from _schema_errors(item, field_type.item_type, path + _path_text((name,)))


def _conflict_error(error: ApplyConflict, resource: Resource) -> ApiError:
    """ApiError 409 for a conflict: internal/conflict.go."""
    conflicts = [(_manager_text(manager, resource), _path_text(path)) for manager, path in error.conflicts]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        text = f"Apply failed with 1 conflict: conflict with {conflicts[0][0]}: {conflicts[0][1]}"
    else:
        groups = [
            "\n".join([f"conflicts with {manager}:", *(f"- {path}" for known, path in conflicts if known == manager)])
            for manager in dict.fromkeys(manager for manager, _ in conflicts)
        ]
        text = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(groups)
    return ApiError(409, text, details={"causes": causes})


def _manager_text(manager: Manager, resource: Resource) -> str:
    name = msgspec.json.encode(manager.name).decode()
    if manager.subresource:
        name += f' with subresource "{manager.subresource}"'
    return name + (f" using {resource.group_version}" if manager.operation == "Update" else "")


def _path_text(path: Path) -> str:
    """Path as fieldpath.Path.String."""
    return "".join(map(_element_text, path))


def _element_text(name: str) -> str:
    kind, _, text = name.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    keys = msgspec.json.decode(text)
    return "[" + ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items()) + "]"


def _drop_nulls(value: Any) -> Any:
    """Copy without null values."""
    if isinstance(value, dict):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    return [_drop_nulls(item) for item in value] if isinstance(value, list) else value
