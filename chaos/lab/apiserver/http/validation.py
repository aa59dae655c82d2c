"""Validation of objects that clients send, before they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.apiserver.http.type_check import check_types
from chaos.lab.objects.accessors import Object


@dataclass(frozen=True, slots=True)
class ValidatedObject:
    """An object to store, and warnings for its sender."""

    object: Object
    warnings: list[str]

    def headers(self) -> dict[str, str]:
        """Warning header (RFC 7234, 5.5), as of k8s.io/apimachinery/pkg/util/net."""
        texts = ['299 - "{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"')) for text in self.warnings]
        return {"Warning": ", ".join(texts)} if texts else {}


def validate_object(obj: Any, info: RequestInfo, validation: str = "Ignore") -> ValidatedObject:
    """Validate kind, name and namespace against the URL, and drop unknown fields. Raises ApiError 400.

    ``validation`` of unknown fields: Ignore, Warn, or Strict, which rejects the object.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "metadata: Required value")
    _match_url(obj, metadata, info)
    type_errors, unknown = check_types(obj, info.resource)
    if type_errors:
        raise _decode_error(info, f"json: {type_errors[0]}")
    unknown = [f'unknown field "{path}"' for path in unknown]
    if unknown and validation == "Strict":
        raise _decode_error(info, f"strict decoding error: {', '.join(unknown)}")
    stored = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return ValidatedObject(stored, unknown if validation == "Warn" else [])


def _match_url(obj: Object, metadata: Object, info: RequestInfo) -> None:
    for field, expected in (("kind", info.resource.kind), ("apiVersion", info.resource.group_version)):
        if (obj.get(field) or expected) != expected:
            raise ApiError(400, f"{field} {obj[field]!r} does not match the expected {expected!r}")
    for field, expected in (("namespace", info.namespace), ("name", info.name)):
        if expected and (metadata.get(field) or expected) != expected:
            raise ApiError(400, f"the {field} of the object ({metadata[field]}) does not match the URL's ({expected})")
        if expected:
            metadata[field] = expected


def _decode_error(info: RequestInfo, reason: str) -> ApiError:
    kind, version = info.resource.kind, info.resource.group_version.rpartition("/")[2]
    return ApiError(400, f'{kind} in version "{version}" cannot be handled as a {kind}: {reason}')
