"""What the query and the body of a writing request ask for: dryRun, and the DeleteOptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from chaos.lab.objects import Object
from chaos.lab.registry import WriteOptions
from chaos.lab.servers.errors import ApiError
from chaos.lab.servers.messages import read_body
from chaos.lab.servers.resources import Place

_POLICIES = ("Orphan", "Background", "Foreground")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace: int | None
    preconditions: Object
    write: WriteOptions


def dry_run(request: web.Request, body: Object | None = None) -> bool:
    """Whether nothing is to be stored. Raises ApiError 422."""
    asked = [*request.query.getall("dryRun", []), *((body or {}).get("dryRun") or [])]
    for value in asked:
        if value != "All":
            raise _invalid(f'dryRun: Unsupported value: "{value}": supported values: "All"')
    return bool(asked)


async def delete_options(request: web.Request, place: Place) -> DeleteOptions:
    """Raises ApiError 400 and 422."""
    body = await read_body(request) if request.can_read_body else {}
    return parse_delete_options(request, body, place)


def parse_delete_options(request: web.Request, body: Any, place: Place) -> DeleteOptions:
    """Of the body, or else of the query. Raises ApiError 400 and 422."""
    if not isinstance(body, dict):
        raise ApiError(400, "the DeleteOptions are not an object")
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError) as error:
        raise ApiError(400, f"gracePeriodSeconds: {grace!r} is not a whole number") from error
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise ApiError(400, "preconditions: not an object")
    if seconds is not None and seconds < 0:
        seconds = 1  # rest.BeforeDelete
    write = WriteOptions(dry_run(request, body), propagation=_propagation(request, body, place))
    return DeleteOptions(seconds, preconditions, write)


def _propagation(request: web.Request, body: Object, place: Place) -> str:
    """Jobs keep their pods unless told otherwise: pkg/registry/batch/job/strategy.go."""
    if body.get("orphanDependents") is not None:
        return "Orphan" if body["orphanDependents"] else "Background"
    default = "Orphan" if place.resource.plural == "jobs" else "Background"
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or default
    if policy not in _POLICIES:
        allowed = ", ".join(f'"{known}"' for known in _POLICIES)
        raise _invalid(f'propagationPolicy: Unsupported value: "{policy}": supported values: {allowed}')
    return str(policy)


def _invalid(problem: str) -> ApiError:
    field, _, message = problem.partition(": ")
    causes = [{"reason": "FieldValueNotSupported", "message": message, "field": field}]
    details = {"group": "meta.k8s.io", "kind": "DeleteOptions", "causes": causes}
    return ApiError(422, f'DeleteOptions.meta.k8s.io "" is invalid: {problem}', "", details)
