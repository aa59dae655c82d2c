"""Representations of objects: complete, metadata only, or rows of a table.

Source: k8s.io/apiserver/pkg/endpoints/handlers/response.go. Unlike there, each table of a watch has column definitions.
Read requests: get, list and watch.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.http.errors import ApiError, negotiate
from chaos.lab.http.messages import Predicate, Request, get_object, json_response, parse_selectors
from chaos.lab.http.options import ListOptions, Paginator, parse_bool, parse_list_options, parse_watch_options
from chaos.lab.http.printer_table import printer_of
from chaos.lab.http.resources import RequestInfo, Resource
from chaos.lab.http.watches import Selection, WatchServer
from chaos.lab.objects import Object
from chaos.lab.sim import SimClock

_META = "meta.k8s.io"
_KINDS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_PHASES = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


class Representation(Hashable, Protocol):
    """Representation of objects in responses. Equal representations give equal results."""

    def show(self, obj: Object) -> dict[str, Any]:
        """Representation of a stored object."""

    def show_list(self, items: Sequence[Object], metadata: dict[str, Any]) -> dict[str, Any]:
        """Representation of a list of stored objects."""


@dataclass(frozen=True, slots=True)
class ObjectRepresentation:
    resource: Resource

    def show(self, obj: Object) -> dict[str, Any]:
        return self.resource.show(obj)

    def show_list(self, items: Sequence[Object], metadata: dict[str, Any]) -> dict[str, Any]:
        head = {"kind": self.resource.kind + "List", "apiVersion": self.resource.group_version, "metadata": metadata}
        return {**head, "items": items}


@dataclass(frozen=True, slots=True)
class PartialObjectMetadata:
    version: str

    def show(self, obj: Object) -> dict[str, Any]:
        return {"kind": _KINDS[1], "apiVersion": f"{_META}/{self.version}", "metadata": obj["metadata"]}

    def show_list(self, items: Sequence[Object], metadata: dict[str, Any]) -> dict[str, Any]:
        head = {"kind": _KINDS[2], "apiVersion": f"{_META}/{self.version}", "metadata": metadata}
        return {**head, "items": [self.show(obj) for obj in items]}


@dataclass(frozen=True, slots=True)
class Table:
    """Table of objects; ``include`` is the part of the object in each row: None, Metadata or Object."""

    resource: Resource
    version: str
    include: str
    sim: SimClock

    def show(self, obj: Object) -> dict[str, Any]:
        return self._table([obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})

    def show_list(self, items: Sequence[Object], metadata: dict[str, Any]) -> dict[str, Any]:
        return self._table(items, metadata)

    def _table(self, items: Sequence[Object], metadata: dict[str, Any]) -> dict[str, Any]:
        head = {"kind": "Table", "apiVersion": f"{_META}/{self.version}", "metadata": metadata}
        printer, now = printer_of(self.resource.plural), self.sim.now
        rows = [{"cells": printer.cells(obj, now), **self._extras(obj)} for obj in items]
        return {**head, "columnDefinitions": printer.columns, "rows": rows}

    def _extras(self, obj: Object) -> dict[str, Any]:
        render = {"Object": self.resource.show, "Metadata": PartialObjectMetadata(self.version).show}.get(self.include)
        phase = (obj.get("status") or {}).get("phase") if self.resource.plural == "pods" else None
        extras: dict[str, Any] = {"object": render(obj) if render else None}
        if phase in _PHASES:
            completed = {"type": "Completed", "status": "True", "reason": phase, "message": _PHASES[phase]}
            extras["conditions"] = [completed]
        return extras


def negotiate_representation(request: Request, resource: Resource, sim: SimClock, is_list: bool) -> Representation:
    """Representation for the request's Accept header. Raises ApiError 400, 406."""
    clause = negotiate(request.headers.get("Accept", ""), _META, ("v1", "v1beta1"), _KINDS)
    if not clause.kind:
        return ObjectRepresentation(resource)
    if clause.kind == "Table":
        include = request.query.get("includeObject", "Metadata")
        if include not in ("None", "Metadata", "Object"):
            raise ApiError(400, f'unrecognized includeObject value: "{include}"')
        return Table(resource, clause.version, include, sim)
    if (clause.kind == _KINDS[2]) != is_list:
        other = "a list" if is_list else "not a list"
        raise ApiError(406, f"you requested {clause.kind}, but the requested object is {other} ({resource.kind})")
    return PartialObjectMetadata(clause.version)


class ReadHandlers:
    """Handlers of read requests."""

    def __init__(self, cluster: Cluster, watches: WatchServer) -> None:
        self._cluster, self._watches = cluster, watches
        self._paginator = Paginator(cluster.sim)

    async def get(self, request: Request, info: RequestInfo) -> web.Response:
        representation = negotiate_representation(request, info.resource, self._cluster.sim, is_list=False)
        return json_response(representation.show(get_object(self._cluster, info)))

    async def list_or_watch(self, request: Request, info: RequestInfo) -> web.StreamResponse:
        predicates = parse_selectors(request, info)
        if parse_bool(request.query, "watch"):
            return await self._watch(request, info, predicates)
        return await self._list(request, info, predicates)

    async def _watch(self, request: Request, info: RequestInfo, predicates: list[Predicate]) -> web.StreamResponse:
        options = parse_watch_options(request.query, self._cluster.spec.has_feature("watch-list"))
        representation = negotiate_representation(request, info.resource, self._cluster.sim, is_list=False)
        selection = Selection(info.resource.plural, representation, info.namespace, predicates)
        return await self._watches.serve(request, selection, options)

    async def _list(self, request: Request, info: RequestInfo, predicates: list[Predicate]) -> web.Response:
        options = parse_list_options(request.query)
        representation = negotiate_representation(request, info.resource, self._cluster.sim, is_list=True)
        if options.continue_token:
            version, items = self._paginator.resume(options.continue_token)
        else:
            version, stored = await self._state(info, options)
            items = [obj for obj in stored if all(predicate(obj) for predicate in predicates)]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if 0 < options.limit < len(items):
            metadata["continue"] = self._paginator.issue_token(version, items[options.limit :])
            if not predicates:  # with a selector the count is unknown, as in Kubernetes
                metadata["remainingItemCount"] = len(items) - options.limit
            items = items[: options.limit]
        return json_response(representation.show_list(items, metadata))

    async def _state(self, info: RequestInfo, options: ListOptions) -> tuple[int, Iterable[Object]]:
        """Version to list, and all objects at that version. Raises ApiError 410, 504."""
        store, plural = self._cluster.store, info.resource.plural
        await self._watches.wait_until_fresh(options.resource_version)
        if options.is_exact:
            return options.resource_version, self._watches.list_at(plural, info.namespace, options.resource_version)
        return store.version, store.list(plural, info.namespace)
