"""Types of fields in server-side apply: atomic, or a map or list of fields.

Source: x-kubernetes-list-type, -list-map-keys and -map-type; kube-openapi/pkg/schemaconv.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

from chaos.lab.apiserver.http.patch_meta import resolve_reference, schema_of
from chaos.lab.apiserver.http.resources import Resource


class FieldType:
    """Type of a field; children are created on first use."""

    def __init__(self, field: dict[str, Any]) -> None:
        self._field, self._schema = field, resolve_reference(field)
        self._properties: dict[str, Any] = self._schema.get("properties", {})
        self._children: dict[str, FieldType] = {}
        self.list_map_keys: list[str] = field.get("x-kubernetes-list-map-keys", [])
        self.is_leaf = self._is_leaf()
        self.is_struct = bool(self._properties)

    def _is_leaf(self) -> bool:
        if self._schema.get("type") == "array":
            return bool(self._field.get("x-kubernetes-list-type", "atomic") == "atomic")
        if not (self._properties or self._schema.get("additionalProperties")):
            return True
        relation = self._field.get("x-kubernetes-map-type") or self._schema.get("x-kubernetes-map-type")
        return bool(relation == "atomic")

    def has_field(self, name: str) -> bool:
        """Whether the struct has a field of this path element."""
        return name.startswith("f:") and name[2:] in self._properties

    def child(self, key: str) -> FieldType:
        """Type of a field of a struct or map; an unknown field is a leaf."""
        if key not in self._properties:
            return self._additional_type
        if key not in self._children:
            self._children[key] = FieldType(self._properties[key])
        return self._children[key]

    @cached_property
    def _additional_type(self) -> FieldType:
        return FieldType(self._schema.get("additionalProperties") or {})

    @cached_property
    def item_type(self) -> FieldType:
        """Type of the items of a list."""
        return FieldType(self._schema.get("items", {}))

    def child_at(self, name: str) -> FieldType:
        """Type at a path element."""
        return self.child(name[2:]) if name.startswith("f:") else self.item_type


LEAF = FieldType({})


@cache
def field_type_of(resource: Resource) -> FieldType:
    """Type of the objects of a resource."""
    return FieldType(schema_of(resource))
