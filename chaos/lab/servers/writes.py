"""Writing requests: create, replace, patch, delete and evict."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.eviction import ATTEMPTS, BudgetBusy
from chaos.lab.lockstep import Lockstep
from chaos.lab.objects import Object
from chaos.lab.servers.errors import ApiError
from chaos.lab.servers.messages import answer, find, read_body, selection, whole_number
from chaos.lab.servers.patches import json_patch, merge
from chaos.lab.servers.resources import Place
from chaos.lab.servers.strategic import strategic_merge
from chaos.lab.shapes import shape_of


class Writes:
    """The handlers of writing requests."""

    def __init__(self, cluster: Cluster, lockstep: Lockstep) -> None:
        self._cluster, self._lockstep = cluster, lockstep

    async def create(self, request: web.Request, place: Place) -> web.Response:
        obj = checked(await read_body(request), place)
        if place.resource.namespaced and not place.namespace:
            raise ApiError(405, "create within a namespace")
        return answer(place.resource.show(self._cluster.create_object(place.resource.plural, obj)), 201)

    async def replace(self, request: web.Request, place: Place) -> web.Response:
        return self._store(checked(await read_body(request), place), place)

    async def patch(self, request: web.Request, place: Place) -> web.Response:
        patch, kind = await read_body(request), request.content_type
        before = find(self._cluster, place)
        if kind == "application/json-patch+json":
            after = json_patch(before, patch)
        elif kind == "application/merge-patch+json":
            after = merge(before, patch)
        elif kind == "application/strategic-merge-patch+json":
            after = strategic_merge(before, patch, shape_of(place.resource.plural))
        else:
            raise ApiError(415, f"the body of the request was in an unknown format - {kind}", "UnsupportedMediaType")
        return self._store(checked(after, place), place)

    def _store(self, obj: Object, place: Place) -> web.Response:
        expect = obj["metadata"].get("resourceVersion") or None
        stored = self._cluster.update_object(place.resource.plural, obj, place.subresource, expect)
        return answer(place.resource.show(stored))

    async def delete(self, request: web.Request, place: Place) -> web.Response:
        options = await read_body(request) if request.can_read_body else {}
        grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        obj = self._cluster.delete_object(
            place.resource.plural,
            place.namespace,
            place.name,
            None if grace is None else whole_number(str(grace)),
            options.get("preconditions"),
        )
        if place.resource.plural == "pods" or self._cluster.store.get(
            place.resource.plural, place.namespace, place.name
        ):
            return answer(place.resource.show(obj))
        details = {"name": place.name, "kind": place.resource.plural, "uid": obj["metadata"]["uid"]}
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return answer({**head, "details": details})

    async def evict(self, request: web.Request, place: Place) -> web.Response:
        body = await read_body(request)
        if (body.get("metadata") or {}).get("name") != place.name:
            raise ApiError(400, "name in URL does not match name in Eviction object")
        options = body.get("deleteOptions") or {}
        dry_run = bool(options.get("dryRun") or request.query.get("dryRun"))
        for _ in range(ATTEMPTS - 1):
            try:
                self._cluster.evict_pod(place.namespace, place.name, options, dry_run)
                break
            except BudgetBusy as busy:
                await self._lockstep.wait_until(self._cluster.sim.now + busy.again)
        else:
            self._cluster.evict_pod(place.namespace, place.name, options, dry_run)
        return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    async def delete_collection(self, request: web.Request, place: Place) -> web.Response:
        matches = selection(request, place)
        options = await read_body(request) if request.can_read_body else {}
        stored = list(self._cluster.store.list(place.resource.plural, place.namespace))
        chosen = [obj for obj in stored if all(match(obj) for match in matches)]
        for obj in chosen:
            metadata = obj["metadata"]
            self._cluster.delete_object(
                place.resource.plural,
                metadata.get("namespace", ""),
                metadata["name"],
                options.get("gracePeriodSeconds"),
            )
        head = {"kind": place.resource.kind + "List", "apiVersion": place.resource.group_version}
        return answer({**head, "metadata": {"resourceVersion": str(self._cluster.store.version)}, "items": chosen})


def checked(obj: Any, place: Place) -> Object:
    """The object to store: of the URL's kind, name and namespace. Raises ApiError 400."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "metadata: Required value")
    for field, wanted in (("kind", place.resource.kind), ("apiVersion", place.resource.group_version)):
        if obj.get(field, wanted) != wanted:
            raise ApiError(400, f"{field} {obj[field]!r} does not match the expected {wanted!r}")
    for field, named in (("namespace", place.namespace), ("name", place.name)):
        if named and metadata.setdefault(field, named) != named:
            raise ApiError(400, f"the {field} of the object ({metadata[field]}) does not match the URL's ({named})")
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
