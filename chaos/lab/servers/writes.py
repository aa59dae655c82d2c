"""Writing requests: create, replace, patch and delete."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.objects import Object, random_suffix
from chaos.lab.registry import WriteOptions
from chaos.lab.servers.errors import STORE_ERRORS, ApiError, translate
from chaos.lab.servers.messages import answer, find, read_body, selection
from chaos.lab.servers.patches import json_patch, merge
from chaos.lab.servers.resources import Place
from chaos.lab.servers.shapes import Shape, shape_of
from chaos.lab.servers.strategic import strategic_merge
from chaos.lab.servers.types import unknown_fields, wrong_types
from chaos.lab.servers.write_options import DeleteOptions, delete_options, dry_run
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
        obj = checked(await read_body(request), place, _strict(request))
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = str(metadata["generateName"]) + random_suffix(self._cluster.sim.rng)
        place = replace(place, name=str(metadata.get("name", "")))
        options = WriteOptions(dry_run(request))
        try:
            stored = self._registry.create(place.resource.plural, obj, options)
        except STORE_ERRORS as error:
            raise translate(error, place) from error
        return answer(place.resource.show(stored), 201)

    async def replace(self, request: web.Request, place: Place) -> web.Response:
        obj = checked(await read_body(request), place, _strict(request))
        find(self._cluster, place)
        return answer(place.resource.show(self.store(request, place, obj)))

    async def patch(self, request: web.Request, place: Place) -> web.Response:
        patch, before = await read_patch(request), find(self._cluster, place)
        after = patched(request.content_type, before, patch, shape_of(place.resource.plural))
        return answer(place.resource.show(self.store(request, place, checked(after, place, _strict(request)))))

    def store(self, request: web.Request, place: Place, obj: Object) -> Object:
        """Put the object in the place of the one that is there. Raises ApiError."""
        metadata, found = obj["metadata"], find(self._cluster, place)["metadata"]
        expect, uid = metadata.get("resourceVersion") or None, metadata.get("uid") or found["uid"]
        try:
            if uid != found["uid"]:
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found['uid']}"
                raise ConflictError(why)
            options = WriteOptions(dry_run(request))
            return self._registry.update(place.resource.plural, obj, place.subresource, expect, options)
        except STORE_ERRORS as error:
            raise translate(error, place) from error

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


def _strict(request: web.Request) -> bool:
    return request.query.get("fieldValidation") == "Strict"


async def read_patch(request: web.Request) -> Any:
    """Raises ApiError 415 for server-side apply too, which is not simulated."""
    if request.content_type not in _PATCHES:
        accepted = ", ".join(_PATCHES)
        why = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise ApiError(415, why)
    return await read_body(request)


def patched(kind: str, before: Object, patch: Any, shape: Shape) -> Any:
    """``before`` with a patch of one of the three types. Raises ApiError."""
    if kind == _JSON_PATCH:
        return json_patch(before, patch)
    return merge(before, patch) if kind == _MERGE_PATCH else strategic_merge(before, patch, shape)


def checked(obj: Any, place: Place, strict: bool = False) -> Object:
    """The object to store: of the URL's kind, name and namespace. Raises ApiError 400.

    ``strict`` refuses fields that the kind does not have.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "metadata: Required value")
    for field, wanted in (("kind", place.resource.kind), ("apiVersion", place.resource.group_version)):
        if (obj.get(field) or wanted) != wanted:
            raise ApiError(400, f"{field} {obj[field]!r} does not match the expected {wanted!r}")
    for field, named in (("namespace", place.namespace), ("name", place.name)):
        if named and (metadata.get(field) or named) != named:
            raise ApiError(400, f"the {field} of the object ({metadata[field]}) does not match the URL's ({named})")
        if named:
            metadata[field] = named
    problems = wrong_types(obj, place.resource)
    if problems:
        problems = [f"json: {problems[0]}"]
    elif strict:
        problems = [f'unknown field "{path}"' for path in unknown_fields(obj, place.resource)]
        problems = [f"strict decoding error: {', '.join(problems)}"] if problems else []
    if problems:
        kind = place.resource.kind
        what = f'{kind} in version "{place.resource.group_version.rpartition("/")[2]}" cannot be handled as a {kind}'
        raise ApiError(400, f"{what}: {problems[0]}")
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
