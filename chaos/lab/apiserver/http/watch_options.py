"""Options of watch requests. Sources: validation and defaults of ListOptions in k8s.io/apimachinery/pkg/apis/meta."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from chaos.lab.apiserver.http.errors import ApiError

_NOT_OLDER = "NotOlderThan"
_NO_WATCH_LIST = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
_WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watch; ``resource_version`` is 0 for any, ``timeout_seconds`` 0 if unset."""

    resource_version: int = 0
    send_initial_events: bool = True
    allow_bookmarks: bool = False
    timeout_seconds: int = 0


def parse_bool(query: Mapping[str, str], key: str) -> bool:
    """Parse a boolean as k8s.io/apimachinery/pkg/runtime/conversion.go."""
    return key in query and query[key].lower() not in ("0", "false")


def parse_watch_options(query: Mapping[str, str], has_watch_list: bool = True) -> WatchOptions:
    """Parse and validate watch options. ``has_watch_list``: the feature WatchList. Raises ApiError 400, 422, 500."""
    _check(query, has_watch_list)
    version = query.get("resourceVersion", "")
    legacy = version in ("", "0") and "sendInitialEvents" not in query and not query.get("resourceVersionMatch")
    initial = parse_bool(query, "sendInitialEvents") or legacy  # SetListOptionsDefaults, with the feature WatchList
    return WatchOptions(
        parse_resource_version(version),
        initial,
        parse_bool(query, "allowWatchBookmarks"),
        _parse_seconds(query.get("timeoutSeconds", "")),
    )


def _check(query: Mapping[str, str], has_watch_list: bool) -> None:
    match, is_set = query.get("resourceVersionMatch", ""), "sendInitialEvents" in query
    problems, forbidden = [], []
    if is_set and match != _NOT_OLDER:
        problems.append(f"Forbidden: sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}")
    if is_set and not has_watch_list:
        forbidden.append(f"sendInitialEvents: Forbidden: {_NO_WATCH_LIST}")
    if match and not is_set:
        problems.append("Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if match not in ("", _NOT_OLDER):
        problems.append(f'Unsupported value: "{match}": supported values: "{_NOT_OLDER}"')
    if match and query.get("continue"):
        problems.append("Forbidden: resourceVersionMatch is forbidden when continue is provided")
    raise_for_errors([*(f"resourceVersionMatch: {text}" for text in problems), *forbidden])


def raise_for_errors(errors: list[str]) -> None:
    """Raise ApiError 422 if there are errors."""
    if errors:
        message = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise ApiError(422, f'ListOptions.meta.k8s.io "" is invalid: {message}')


def parse_resource_version(text: str) -> int:
    """Parse a resourceVersion, 0 for any. Raises ApiError 500, as the storage's error is not a Status."""
    if text in ("", "0"):
        return 0
    if not text.isascii() or not text.isdecimal():
        reason = f'strconv.ParseUint: parsing "{text[:40]}": invalid syntax'
        raise ApiError(500, f'resourceVersion: Invalid value: "{text[:40]}": {reason}')
    return int(text)


def _parse_seconds(text: str) -> int:
    if text and not _WHOLE.fullmatch(text):
        raise ApiError(400, f'strconv.ParseInt: parsing "{text[:40]}": invalid syntax')
    return int(text or 0)
