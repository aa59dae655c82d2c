"""Representations of objects: complete, metadata only, or rows of a table.

Source: k8s.io/apiserver/pkg/endpoints/handlers/response.go. Unlike there, each table of a watch has column definitions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Request
from chaos.lab.apiserver.http.negotiation import negotiate
from chaos.lab.apiserver.http.printers import printer_of
from chaos.lab.apiserver.http.resources import Resource
from chaos.lab.objects.accessors import Object
from chaos.lab.sim.clock import SimClock

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
