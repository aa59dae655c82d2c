"""Options of write requests, in query and body: dryRun, field manager, validation, and DeleteOptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.http.errors import ApiError, invalid
from chaos.lab.apiserver.http.messages import Request, read_body
from chaos.lab.apiserver.http.resources import RequestInfo, Resource
from chaos.lab.apiserver.registry import WriteOptions
from chaos.lab.objects.accessors import Object

_MAX_MANAGER_BYTES = 128
_VALIDATIONS = ("Ignore", "Strict", "Warn")
_POLICIES = ("Orphan", "Background", "Foreground")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_period_seconds: int | None
    preconditions: Object
    write_options: WriteOptions


def is_dry_run(request: Request, body: Object | None = None) -> bool:
    """Whether the request is a dry run. Raises ApiError 422."""
    values = [*request.query.getall("dryRun", []), *((body or {}).get("dryRun") or [])]
    for value in values:
        if value != "All":
            raise _invalid(f'dryRun: Unsupported value: "{value}": supported values: "All"')
    return bool(values)


def parse_field_manager(request: Request, is_apply: bool = False) -> str:
    """Field manager of the query, or else of the User-Agent. Raises ApiError 422."""
    name = request.query.get("fieldManager", "")
    if is_apply and not name:
        raise _invalid("fieldManager: Required value: is required for apply patch", "PatchOptions")
    if len(name.encode()) > _MAX_MANAGER_BYTES:
        raise _invalid(f"fieldManager: Too long: must have at most {_MAX_MANAGER_BYTES} bytes", "PatchOptions")
    agent = request.headers.get("User-Agent", "").partition("/")[0]
    return name or "".join(filter(str.isprintable, agent))[:_MAX_MANAGER_BYTES]


def parse_force(request: Request, is_apply: bool) -> bool:
    """Whether an apply takes fields from other managers. Raises ApiError 422."""
    value = request.query.get("force")
    if value is not None and not is_apply:
        raise _invalid("force: Forbidden: may not be specified for non-apply patch", "PatchOptions")
    return value in ("true", "1")


def parse_field_validation(request: Request) -> str:
    """Ignore, Warn or Strict. Raises ApiError 422."""
    value = request.query.get("fieldValidation") or "Warn"
    if value not in _VALIDATIONS:
        allowed = ", ".join(f'"{known}"' for known in ("", *_VALIDATIONS))
        raise _invalid(f'fieldValidation: Unsupported value: "{value}": supported values: {allowed}', "UpdateOptions")
    return value


async def read_delete_options(request: Request, info: RequestInfo) -> DeleteOptions:
    """Read DeleteOptions of a DELETE request. Raises ApiError 400 and 422."""
    body = await read_body(request) if request.can_read_body else {}
    return parse_delete_options(request, body, info)


def parse_delete_options(request: Request, body: Any, info: RequestInfo) -> DeleteOptions:
    """Parse DeleteOptions of the body, or else of the query. Raises ApiError 400 and 422."""
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
    write = WriteOptions(is_dry_run(request, body), propagation=_propagation(request, body, info))
    return DeleteOptions(seconds, preconditions, write)


def _propagation(request: Request, body: Object, info: RequestInfo) -> str:
    """Propagation policy; by default Jobs orphan their pods: pkg/registry/batch/job/strategy.go."""
    if body.get("orphanDependents") is not None:
        return "Orphan" if body["orphanDependents"] else "Background"
    default = "Orphan" if info.resource.plural == "jobs" else "Background"
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or default
    if policy not in _POLICIES:
        allowed = ", ".join(f'"{known}"' for known in _POLICIES)
        raise _invalid(f'propagationPolicy: Unsupported value: "{policy}": supported values: {allowed}')
    return str(policy)


def _invalid(problem: str, kind: str = "DeleteOptions") -> ApiError:
    return invalid(Resource("", kind, "meta.k8s.io/v1"), "", [problem])
