"""Write requests: create, replace, patch and delete.

Server-side apply: PATCH with application/apply-patch+yaml. handlers/patch.go, applyPatcher.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from chaos.lab.apiserver.eviction import before_deletion
from chaos.lab.apiserver.registry import Record, WriteOptions
from chaos.lab.apiserver.store import ConflictError
from chaos.lab.cluster import Cluster
from chaos.lab.http.errors import STORE_ERRORS, ApiError, invalid, not_found, to_api_error
from chaos.lab.http.field_sets import FieldType, Path, SchemaError, field_type_of, path_element
from chaos.lab.http.managed_fields import Writer, apply_configuration, record_update
from chaos.lab.http.messages import Request, get_object, json_response, parse_selectors, read_body
from chaos.lab.http.options import (
    DeleteOptions,
    is_dry_run,
    parse_field_manager,
    parse_field_validation,
    parse_force,
    read_delete_options,
)
from chaos.lab.http.ownership import ApplyConflict, Manager
from chaos.lab.http.patches import json_patch, merge_patch, strategic_merge
from chaos.lab.http.resources import RequestInfo, Resource
from chaos.lab.http.schemas import PatchMeta, patch_meta_of, validate_object
from chaos.lab.objects import Object, generated_name

_JSON_PATCH, _MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
_PATCHES = (_JSON_PATCH, _MERGE_PATCH, "application/strategic-merge-patch+json")


class WriteHandlers:
    """Handlers of write requests."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._registry = cluster, cluster.registry

    async def create(self, request: Request, info: RequestInfo) -> web.Response:
        if info.resource.namespaced and not info.namespace:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        sent = validate_object(await read_body(request), info, parse_field_validation(request))
        metadata = sent.object["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated_name(str(metadata["generateName"]), self._cluster.sim.rng)
        info = replace(info, name=str(metadata.get("name", "")))
        stored = self._create(info, sent.object, WriteOptions(is_dry_run(request), record=self._record(request, info)))
        return json_response(info.resource.show(stored), 201, sent.headers())

    async def replace(self, request: Request, info: RequestInfo) -> web.Response:
        sent = validate_object(await read_body(request), info, parse_field_validation(request))
        get_object(self._cluster, info)
        if info.resource.conditional and not sent.object["metadata"].get("resourceVersion"):
            reason = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
            raise invalid(replace(info.resource, kind=info.resource.plural), info.name, [reason])
        return json_response(info.resource.show(self.update_object(request, info, sent.object)), headers=sent.headers())

    async def patch(self, request: Request, info: RequestInfo) -> web.Response:
        if request.content_type == APPLY_PATCH:
            return await self._apply(request, info)
        patch, before = await read_patch(request), get_object(self._cluster, info)
        parse_force(request, is_apply=False)
        after = patch_object(request.content_type, before, patch, patch_meta_of(info.resource.plural))
        sent = validate_object(after, info, parse_field_validation(request))
        return json_response(info.resource.show(self.update_object(request, info, sent.object)), headers=sent.headers())

    async def _apply(self, request: Request, info: RequestInfo) -> web.Response:
        writer = self._writer(request, info, info.subresource, applies=True)
        is_forced, is_dry = parse_force(request, is_apply=True), is_dry_run(request)
        parse_field_validation(request)
        patch = await read_apply_patch(request, info)
        live = self._cluster.store.get(info.resource.plural, info.namespace, info.name)
        if live is None and info.subresource:
            raise not_found(info.resource.plural, info.name)
        new, entries = server_side_apply(writer, info, live, patch, is_forced)

        def record(_: Object | None, obj: Object) -> None:
            if entries:
                obj["metadata"]["managedFields"] = entries

        if live is None:
            if uid := patch["metadata"].get("uid"):
                reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise to_api_error(ConflictError(reason), info)
            return json_response(info.resource.show(self._create(info, new, WriteOptions(is_dry, record=record))), 201)
        return json_response(info.resource.show(self.update_object(request, info, new, record)))

    def _create(self, info: RequestInfo, obj: Object, options: WriteOptions) -> Object:
        try:
            return self._registry.create(info.resource.plural, obj, options)
        except STORE_ERRORS as error:
            raise to_api_error(error, info) from error

    def update_object(self, request: Request, info: RequestInfo, obj: Object, record: Record | None = None) -> Object:
        """Replace the stored object. Raises ApiError.

        An update of the scale subresource is stored as an update of its object.
        """
        metadata, stored = obj["metadata"], get_object(self._cluster, info)["metadata"]
        expect, uid = metadata.get("resourceVersion") or None, metadata.get("uid") or stored["uid"]
        subresource = "" if info.subresource == "scale" else info.subresource
        try:
            if uid != stored["uid"]:
                reason = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored['uid']}"
                raise ConflictError(reason)
            options = WriteOptions(is_dry_run(request), record=record or self._record(request, info))
            return self._registry.update(info.resource.plural, obj, subresource, expect, options)
        except STORE_ERRORS as error:
            raise to_api_error(error, info) from error

    def _writer(self, request: Request, info: RequestInfo, subresource: str, applies: bool = False) -> Writer:
        name = parse_field_manager(request, applies)
        return Writer(name, info.resource, subresource, self._cluster.sim.timestamp())

    def _record(self, request: Request, info: RequestInfo) -> Record:
        return partial(record_update, self._writer(request, info, info.subresource))

    async def delete(self, request: Request, info: RequestInfo) -> web.Response:
        options = await read_delete_options(request, info)
        obj = self._delete(info, options)
        plural = info.resource.plural
        if plural == "pods" or self._cluster.store.get(plural, info.namespace, info.name):
            return json_response(info.resource.show(obj))
        group = {"group": info.resource.group} if info.resource.group else {}
        details = {"name": info.name, **group, "kind": plural, "uid": obj["metadata"]["uid"]}
        return json_response({**_SUCCESS, "details": details})

    async def delete_collection(self, request: Request, info: RequestInfo) -> web.Response:
        matches, options = parse_selectors(request, info), await read_delete_options(request, info)
        stored = self._cluster.store.list(info.resource.plural, info.namespace)
        chosen = [obj for obj in stored if all(match(obj) for match in matches)]
        for obj in chosen:
            metadata = obj["metadata"]
            self._delete(replace(info, namespace=metadata.get("namespace", ""), name=metadata["name"]), options)
        head = {"kind": info.resource.kind + "List", "apiVersion": info.resource.group_version}
        return json_response(
            {**head, "metadata": {"resourceVersion": str(self._cluster.store.version)}, "items": chosen}
        )

    def _delete(self, info: RequestInfo, options: DeleteOptions) -> Object:
        try:
            before_deletion(self._registry, info.resource.plural, info.namespace, info.name)
            return self._registry.delete(
                info.resource.plural,
                info.namespace,
                info.name,
                options.grace_period_seconds,
                options.preconditions,
                options.write_options,
            )
        except STORE_ERRORS as error:
            raise to_api_error(error, info) from error


_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


async def read_patch(request: Request) -> Any:
    """Read a JSON, merge or strategic merge patch. Raises ApiError 415."""
    if request.content_type not in _PATCHES:
        accepted = ", ".join((*_PATCHES, APPLY_PATCH))
        reason = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise ApiError(415, reason)
    return await read_body(request)


def patch_object(kind: str, before: Object, patch: Any, meta: PatchMeta) -> Any:
    """Apply a JSON, merge or strategic merge patch to a copy of ``before``. Raises ApiError."""
    if kind == _JSON_PATCH:
        return json_patch(before, patch)
    return merge_patch(before, patch) if kind == _MERGE_PATCH else strategic_merge(before, patch, meta)


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
