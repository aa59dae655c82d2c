"""Refusals in the shape of the Kubernetes API: an HTTP status with a ``Status`` object."""

from __future__ import annotations

from typing import Any

from chaos.lab.admission import InvalidError
from chaos.lab.eviction import EvictionRefused
from chaos.lab.registry import ForbiddenError
from chaos.lab.store import ConflictError, NotFoundError

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
    504: "Timeout",
}


class ApiError(Exception):
    """A request is refused with ``code``; ``details`` may hold causes and retryAfterSeconds."""

    def __init__(self, code: int, message: str, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.reason = code, message, reason or _REASONS[code]
        self.details = details or {}

    def headers(self) -> dict[str, str]:
        """Retry-After, if the client may try again after a time that is known."""
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


def translate(error: Exception, creating: bool = False) -> ApiError:
    """The API's answer to an error of the store or registry (one of STORE_ERRORS)."""
    message = str(error.args[0])
    if isinstance(error, EvictionRefused):
        causes = [{"reason": "DisruptionBudget", "message": error.cause}] if error.cause else []
        details = {"causes": causes} if causes else {}
        wait = {"retryAfterSeconds": error.retry_after} if error.retry_after else {}
        return ApiError(error.code, message, details={**details, **wait})
    if isinstance(error, NotFoundError):
        return ApiError(404, message)
    if isinstance(error, ConflictError):
        return ApiError(409, message, "AlreadyExists" if creating else "")
    return ApiError(403 if isinstance(error, ForbiddenError) else 422, message)
