"""What is checked of every object that a client sends, before it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.apiserver.http.types import check_types
from chaos.lab.objects.accessors import Object


@dataclass(frozen=True, slots=True)
class ValidatedObject:
    """An object to store, and what its sender should know."""

    object: Object
    warnings: list[str]

    def headers(self) -> dict[str, str]:
        """RFC 7234, 5.5, as k8s.io/apimachinery/pkg/util/net writes it."""
        texts = ['299 - "{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"')) for text in self.warnings]
        return {"Warning": ", ".join(texts)} if texts else {}


def validate_object(obj: Any, place: RequestInfo, validation: str = "Ignore") -> ValidatedObject:
    """Of the URL's kind, name and namespace, without fields that the kind does not have. Raises ApiError 400.

    ``validation`` is what becomes of such fields: Ignore, Warn, or Strict, which refuses them.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "metadata: Required value")
    _match_url(obj, metadata, place)
    wrong, unknown = check_types(obj, place.resource)
    if wrong:
        raise _decode_error(place, f"json: {wrong[0]}")
    unknown = [f'unknown field "{path}"' for path in unknown]
    if unknown and validation == "Strict":
        raise _decode_error(place, f"strict decoding error: {', '.join(unknown)}")
    stored = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return ValidatedObject(stored, unknown if validation == "Warn" else [])


def _match_url(obj: Object, metadata: Object, place: RequestInfo) -> None:
    for field, wanted in (("kind", place.resource.kind), ("apiVersion", place.resource.group_version)):
        if (obj.get(field) or wanted) != wanted:
            raise ApiError(400, f"{field} {obj[field]!r} does not match the expected {wanted!r}")
    for field, named in (("namespace", place.namespace), ("name", place.name)):
        if named and (metadata.get(field) or named) != named:
            raise ApiError(400, f"the {field} of the object ({metadata[field]}) does not match the URL's ({named})")
        if named:
            metadata[field] = named


def _decode_error(place: RequestInfo, why: str) -> ApiError:
    kind, version = place.resource.kind, place.resource.group_version.rpartition("/")[2]
    return ApiError(400, f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')
