"""Errors of the Kubernetes API: an HTTP status code with a ``Status`` object.

Content negotiation, as k8s.io/apiserver/pkg/endpoints/handlers/negotiation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.deletion import EvictionRefused
from chaos.lab.apiserver.registry import ForbiddenError
from chaos.lab.apiserver.store import ConflictError, ExistsError, NotFoundError
from chaos.lab.http.resources import RESOURCES, RequestInfo, Resource

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
    504: "Timeout",
}


class ApiError(Exception):
    """Error response with HTTP status ``code``; ``details`` may hold causes and retryAfterSeconds."""

    def __init__(self, code: int, message: str, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.reason = code, message, reason or _REASONS[code]
        self.details = details or {}

    def headers(self) -> dict[str, str]:
        """Header Retry-After where the details have retryAfterSeconds."""
        seconds = self.details.get("retryAfterSeconds")
        return {"Retry-After": str(seconds)} if seconds else {}

    def status(self) -> dict[str, Any]:
        return {
            **({"details": self.details} if self.details else {}),
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }


STORE_ERRORS = (NotFoundError, ConflictError, InvalidError, ForbiddenError, EvictionRefused)
_CAUSES = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Duplicate value": "FieldValueDuplicate",
    "Too long": "FieldValueTooLong",
}
_PROBLEM = re.compile(rf"(\S+): ({'|'.join(_CAUSES)})(:|$)")


def to_api_error(error: Exception, info: RequestInfo) -> ApiError:
    """Convert an error of the store or registry (one of STORE_ERRORS)."""
    resource, name = info.resource, info.name
    details = {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.plural}
    if isinstance(error, EvictionRefused):
        return _eviction_error(error)
    if isinstance(error, NotFoundError):
        return not_found(error.plural, error.name)
    message = str(error.args[0])
    if isinstance(error, ExistsError):
        return ApiError(409, f'{resource.qualified_name} "{name}" already exists', "AlreadyExists", details)
    if isinstance(error, ConflictError):
        return ApiError(
            409, f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": {message}', "", details
        )
    if isinstance(error, ForbiddenError):
        head = f'{error.resource or resource.qualified_name} "{error.name or name}" is forbidden: '
        return ApiError(403, head + message, "", details | ({"causes": [error.cause]} if error.cause else {}))
    return invalid(resource, name, [str(problem) for problem in error.args])


def not_found(plural: str, name: str) -> ApiError:
    """ApiError 404 for an object of a known resource."""
    resource = next(item for item in RESOURCES.values() if item.plural == plural)
    details = {"name": name, **({"group": resource.group} if resource.group else {}), "kind": plural}
    return ApiError(404, f'{resource.qualified_name} "{name}" not found', "", details)


def invalid(resource: Resource, name: str, problems: list[str]) -> ApiError:
    """ApiError 422 as NewInvalid of k8s.io/apimachinery; kubectl shows only causes.

    A problem that does not start with a field is a limitation of the lab.
    """
    problems = [problem if _PROBLEM.match(problem) else f"spec: Forbidden: {problem}" for problem in problems]
    kind = resource.kind + (f".{resource.group}" if resource.group else "")
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    causes = [
        {"reason": _CAUSES[match[2]], "message": problem.removeprefix(f"{match[1]}: "), "field": match[1]}
        for problem in problems
        if (match := _PROBLEM.match(problem))
    ]
    details: dict[str, Any] = {"name": name, **({"group": resource.group} if resource.group else {})}
    details |= {"kind": resource.kind, "causes": causes}
    return ApiError(422, f'{kind} "{name}" is invalid: {text}', "", details)


def _eviction_error(error: EvictionRefused) -> ApiError:
    causes = [{"reason": "DisruptionBudget", "message": error.cause}] if error.cause else []
    details: dict[str, Any] = {"causes": causes} if causes else {}
    wait = {"retryAfterSeconds": error.retry_after} if error.retry_after else {}
    return ApiError(error.code, str(error.args[0]), details={**details, **wait})


_JSON = ("application/json", "application/*", "*/*")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of an Accept header: a media type with its parameters q, as (``kind``), g (``group``) and v."""

    media_type: str
    quality: float = 1.0
    kind: str = ""
    group: str = ""
    version: str = ""


def parse_accept(header: str) -> list[Clause]:
    """Clauses of an Accept header, by descending quality."""
    return sorted(_clauses(header or "*/*"), key=lambda clause: -clause.quality)


def _clauses(header: str) -> Iterator[Clause]:
    for part in header.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        params = dict(piece.partition("=")[::2] for piece in rest)
        try:
            quality = float(params.get("q", "1"))
        except ValueError:
            quality = 0.0
        yield Clause(media, quality, params.get("as", ""), params.get("g", ""), params.get("v", ""))


def negotiate(header: str, group: str, versions: tuple[str, ...], kinds: tuple[str, ...]) -> Clause:
    """First clause that can be served: plain JSON, or JSON as one of ``kinds``. Raises ApiError 406."""
    for clause in parse_accept(header):
        is_known = clause.group == group and clause.version in versions and clause.kind in kinds
        if clause.media_type in _JSON and (is_known or not (clause.kind or clause.group or clause.version)):
            return clause
    raise ApiError(406, "only the following media types are accepted: application/json")
