"""Metadata for strategic merge patches: patchStrategy and patchMergeKey of each field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from chaos.lab.apiserver.http.openapi import schemas
from chaos.lab.apiserver.http.resources import RESOURCES, Resource

_GVK = "x-kubernetes-group-version-kind"


@dataclass(frozen=True, slots=True)
class PatchMeta:
    """Schema of a field; with an empty schema, maps are merged and lists replaced."""

    schema: dict[str, Any]

    @property
    def merge_key(self) -> str:
        """Key by which a list of maps is merged; "" for other lists."""
        return str(self.schema.get("x-kubernetes-patch-merge-key", "")) if self._has_strategy("merge") else ""

    @property
    def is_set(self) -> bool:
        """Whether a list is merged as a set."""
        return self._has_strategy("merge") and not self.merge_key

    @property
    def has_replace_strategy(self) -> bool:
        return self._has_strategy("replace")

    def _has_strategy(self, name: str) -> bool:
        return name in self.schema.get("x-kubernetes-patch-strategy", "").split(",")

    def child(self, name: str) -> PatchMeta:
        properties = resolve_reference(resolve_reference(self.schema).get("items", self.schema)).get("properties", {})
        return PatchMeta(properties.get(name, {}))


def resolve_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Schema that a reference points to, also inside an allOf, which is used for defaults."""
    (inner,) = schema.get("allOf", (schema,))
    reference = inner.get("$ref")
    return schemas()[reference.rpartition("/")[2]] if reference else inner


def schema_of(resource: Resource) -> dict[str, Any]:
    """Schema of a resource's kind."""
    group, _, version = resource.group_version.rpartition("/")
    gvk = {"group": group, "kind": resource.kind, "version": version}
    return next(schema for schema in schemas().values() if gvk in schema.get(_GVK, ()))


@cache
def patch_meta_of(plural: str) -> PatchMeta:
    """Patch metadata of a resource by plural."""
    return PatchMeta(schema_of(next(item for item in RESOURCES.values() if item.plural == plural)))
