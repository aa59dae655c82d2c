"""Options of list, watch and write requests, and the pages of lists.

Options of watch requests. Sources: validation and defaults of ListOptions in k8s.io/apimachinery/pkg/apis/meta.
Options of list requests.
Sources: validation of ListOptions in k8s.io/apimachinery, and "Resource versions" of Kubernetes' API concepts.
Pagination of lists: the remaining items are stored at the version of the first page.
Options of write requests, in query and body: dryRun, field manager, validation, and DeleteOptions.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.registry import WriteOptions
from chaos.lab.http.errors import ApiError, invalid
from chaos.lab.http.messages import Request, parse_whole_number, read_body
from chaos.lab.http.resources import RequestInfo, Resource
from chaos.lab.objects import Object
from chaos.lab.sim import SimClock

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


_EXACT = "Exact"


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


_MAX_TOKENS = 64  # unfinished lists
_COMPACTION_INTERVAL = 300.0  # simulated seconds in which an old version can be read; --etcd-compaction-interval


class Paginator:
    """Remaining items of unfinished lists, by continue token."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._remainders: OrderedDict[int, tuple[float, list[Object]]] = OrderedDict()
        self._last_key = 0

    def issue_token(self, version: int, rest: list[Object]) -> str:
        """Continue token for the remaining items of a list at a resource version."""
        self._last_key += 1
        self._remainders[self._last_key] = (self._sim.now, rest)
        while len(self._remainders) > _MAX_TOKENS:
            self._remainders.popitem(last=False)
        return base64.urlsafe_b64encode(json.dumps([self._last_key, version]).encode()).decode()

    def resume(self, token: str) -> tuple[int, list[Object]]:
        """Version and remaining items of a continue token. Raises ApiError 400 or 410."""
        try:
            key, version = (int(number) for number in json.loads(base64.urlsafe_b64decode(token)))
        except (binascii.Error, ValueError, TypeError) as error:
            raise ApiError(400, "continue key is not valid") from error
        since, rest = self._remainders.get(key, (-math.inf, []))
        if self._sim.now - since > _COMPACTION_INTERVAL:
            raise ApiError(410, "The provided continue parameter is too old to display a consistent list result.")
        return version, rest


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
