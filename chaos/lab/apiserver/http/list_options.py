"""Options of list requests.

Sources: validation of ListOptions in k8s.io/apimachinery, and "Resource versions" of Kubernetes' API concepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import parse_whole_number
from chaos.lab.apiserver.http.watch_options import parse_resource_version, raise_for_errors

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """``resource_version``: exactly this version if ``is_exact``, else not older; 0 for any version."""

    resource_version: int = 0
    is_exact: bool = False
    limit: int = 0
    continue_token: str = ""


def parse_list_options(query: Mapping[str, str]) -> ListOptions:
    """Parse and validate list options. Raises ApiError 400, 422, 500."""
    version, match, token = (query.get(key, "") for key in ("resourceVersion", "resourceVersionMatch", "continue"))
    raise_for_errors(_errors(version, match, token, "sendInitialEvents" in query))
    if token and version not in ("", "0"):
        raise ApiError(400, "specifying resource version is not allowed when using continue")
    start, limit = parse_resource_version(version), parse_whole_number(query.get("limit") or "0")
    exact = match == _EXACT or bool(start and limit and not match)
    return ListOptions(start, exact, limit, token)


def _errors(version: str, match: str, token: str, sends_initial_events: bool) -> list[str]:
    problems = []
    if match and not version:
        problems.append("Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match and token:
        problems.append("Forbidden: resourceVersionMatch is forbidden when continue is provided")
    if match not in ("", _EXACT, _NOT_OLDER):
        problems.append(f'Unsupported value: "{match}": supported values: "{_EXACT}", "{_NOT_OLDER}", ""')
    if match == _EXACT and version == "0":
        problems.append('Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    errors = [f"resourceVersionMatch: {text}" for text in problems]
    return (
        [*errors, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"]
        if sends_initial_events
        else errors
    )
