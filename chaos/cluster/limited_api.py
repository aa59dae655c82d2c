"""The API server as the steps of a run may use it: with the permissions that were shown and reviewed, no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chaos.core.errors import Refused
from chaos.core.permission import Permission, permission_for_request
from chaos.core.ports import RequestApi, Response


class LimitedApi:
    """Implements RequestApi: sends a request only if one of ``permissions`` covers it, and raises Refused otherwise."""

    def __init__(self, api: RequestApi, permissions: Sequence[Permission]) -> None:
        self._api, self._permissions = api, tuple(permissions)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        """See RequestApi."""
        try:
            required = permission_for_request(method, path)
        except ValueError as error:
            raise Refused(f"not sent: {error}") from error
        if not any(permission.covers(required) for permission in self._permissions):
            hint = "report this as a bug, with the experiment"
            raise Refused(f"not sent: {method} {path} is not among the requests that the plan shows", hint=hint)
        return self._api.request(method, path, query=query, body=body, content_type=content_type)
