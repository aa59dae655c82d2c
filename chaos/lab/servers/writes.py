"""Writing requests: create, replace, patch and delete."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.objects import Object, generated_name
from chaos.lab.registry import Record, WriteOptions
from chaos.lab.servers.applies import APPLY_PATCH, merged, read_apply
from chaos.lab.servers.checks import checked
from chaos.lab.servers.errors import STORE_ERRORS, ApiError, invalid, not_found, translate
from chaos.lab.servers.managed_fields import Writer, record_update
from chaos.lab.servers.messages import answer, find, read_body, selection
from chaos.lab.servers.patches import json_patch, merge
from chaos.lab.servers.resources import Place
from chaos.lab.servers.shapes import Shape, shape_of
from chaos.lab.servers.strategic import strategic_merge
from chaos.lab.servers.write_options import (
    DeleteOptions,
    delete_options,
    dry_run,
    field_manager,
    field_validation,
    force,
)
from chaos.lab.store import ConflictError

_JSON_PATCH, _MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
_PATCHES = (_JSON_PATCH, _MERGE_PATCH, "application/strategic-merge-patch+json")


class Writes:
    """The handlers of writing requests."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._registry = cluster, cluster.registry

    async def create(self, request: web.Request, place: Place) -> web.Response:
        if place.resource.namespaced and not place.namespace:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        sent = checked(await read_body(request), place, field_validation(request))
        metadata = sent.object["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated_name(str(metadata["generateName"]), self._cluster.sim.rng)
        place = replace(place, name=str(metadata.get("name", "")))
        stored = self._create(place, sent.object, WriteOptions(dry_run(request), record=self._record(request, place)))
        return answer(place.resource.show(stored), 201, sent.headers())

    async def replace(self, request: web.Request, place: Place) -> web.Response:
        sent = checked(await read_body(request), place, field_validation(request))
        find(self._cluster, place)
        if place.resource.conditional and not sent.object["metadata"].get("resourceVersion"):
            why = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
            raise invalid(replace(place.resource, kind=place.resource.plural), place.name, [why])
        return answer(place.resource.show(self.store(request, place, sent.object)), headers=sent.headers())

    async def patch(self, request: web.Request, place: Place) -> web.Response:
        if request.content_type == APPLY_PATCH:
            return await self._apply(request, place)
        patch, before = await read_patch(request), find(self._cluster, place)
        force(request, applies=False)
        after = patched(request.content_type, before, patch, shape_of(place.resource.plural))
        sent = checked(after, place, field_validation(request))
        return answer(place.resource.show(self.store(request, place, sent.object)), headers=sent.headers())

    async def _apply(self, request: web.Request, place: Place) -> web.Response:
        writer = self._writer(request, place, place.subresource, applies=True)
        forced, dry = force(request, applies=True), dry_run(request)
        field_validation(request)
        patch = await read_apply(request, place)
        live = self._cluster.store.get(place.resource.plural, place.namespace, place.name)
        if live is None and place.subresource:
            raise not_found(place.resource.plural, place.name)
        new, entries = merged(writer, place, live, patch, forced)

        def record(_: Object | None, obj: Object) -> None:
            if entries:
                obj["metadata"]["managedFields"] = entries

        if live is None:
            if uid := patch["metadata"].get("uid"):
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise translate(ConflictError(why), place)
            return answer(place.resource.show(self._create(place, new, WriteOptions(dry, record=record))), 201)
        return answer(place.resource.show(self.store(request, place, new, record)))

    def _create(self, place: Place, obj: Object, options: WriteOptions) -> Object:
        try:
            return self._registry.create(place.resource.plural, obj, options)
        except STORE_ERRORS as error:
            raise translate(error, place) from error

    def store(self, request: web.Request, place: Place, obj: Object, record: Record | None = None) -> Object:
        """Put the object in the place of the one that is there. Raises ApiError.

        The scale subresource is stored with the object that it is of.
        """
        metadata, found = obj["metadata"], find(self._cluster, place)["metadata"]
        expect, uid = metadata.get("resourceVersion") or None, metadata.get("uid") or found["uid"]
        subresource = "" if place.subresource == "scale" else place.subresource
        try:
            if uid != found["uid"]:
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found['uid']}"
                raise ConflictError(why)
            options = WriteOptions(dry_run(request), record=record or self._record(request, place))
            return self._registry.update(place.resource.plural, obj, subresource, expect, options)
        except STORE_ERRORS as error:
            raise translate(error, place) from error

    def _writer(self, request: web.Request, place: Place, subresource: str, applies: bool = False) -> Writer:
        name = field_manager(request, applies)
        return Writer(name, place.resource, subresource, self._cluster.sim.timestamp())

    def _record(self, request: web.Request, place: Place) -> Record:
        return partial(record_update, self._writer(request, place, place.subresource))

    async def delete(self, request: web.Request, place: Place) -> web.Response:
        options = await delete_options(request, place)
        obj = self._delete(place, options)
        plural = place.resource.plural
        if plural == "pods" or self._cluster.store.get(plural, place.namespace, place.name):
            return answer(place.resource.show(obj))
        group = {"group": place.resource.group} if place.resource.group else {}
        details = {"name": place.name, **group, "kind": plural, "uid": obj["metadata"]["uid"]}
        return answer({**_SUCCESS, "details": details})

    async def delete_collection(self, request: web.Request, place: Place) -> web.Response:
        matches, options = selection(request, place), await delete_options(request, place)
        stored = self._cluster.store.list(place.resource.plural, place.namespace)
        chosen = [obj for obj in stored if all(match(obj) for match in matches)]
        for obj in chosen:
            metadata = obj["metadata"]
            self._delete(replace(place, namespace=metadata.get("namespace", ""), name=metadata["name"]), options)
        head = {"kind": place.resource.kind + "List", "apiVersion": place.resource.group_version}
        return answer({**head, "metadata": {"resourceVersion": str(self._cluster.store.version)}, "items": chosen})

    def _delete(self, place: Place, options: DeleteOptions) -> Object:
        try:
            return self._registry.delete(
                place.resource.plural, place.namespace, place.name, options.grace, options.preconditions, options.write
            )
        except STORE_ERRORS as error:
            raise translate(error, place) from error


_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


async def read_patch(request: web.Request) -> Any:
    """Of the three types that need nothing but the object. Raises ApiError 415."""
    if request.content_type not in _PATCHES:
        accepted = ", ".join((*_PATCHES, APPLY_PATCH))
        why = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise ApiError(415, why)
    return await read_body(request)


def patched(kind: str, before: Object, patch: Any, shape: Shape) -> Any:
    """``before`` with a patch of one of the three types. Raises ApiError."""
    if kind == _JSON_PATCH:
        return json_patch(before, patch)
    return merge(before, patch) if kind == _MERGE_PATCH else strategic_merge(before, patch, shape)
