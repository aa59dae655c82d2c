"""How the lists and maps of a kind are merged by strategic merge patches: patchStrategy and patchMergeKey by path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from chaos.lab.apiserver.http.openapi import schemas
from chaos.lab.apiserver.http.resources import RESOURCES, Resource

_GVK = "x-kubernetes-group-version-kind"


@dataclass(frozen=True, slots=True)
class PatchMeta:
    """A field of Kubernetes' own schemas; without one, maps are merged and lists replaced."""

    schema: dict[str, Any]

    @property
    def merge_key(self) -> str:
        """Of a list of maps that is merged by this key."""
        return str(self.schema.get("x-kubernetes-patch-merge-key", "")) if self._has_strategy("merge") else ""

    @property
    def is_set(self) -> bool:
        """A list that is merged as a set."""
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
    """What a reference means; also one in an allOf, which stands beside a default."""
    (inner,) = schema.get("allOf", (schema,))
    reference = inner.get("$ref")
    return schemas()[reference.rpartition("/")[2]] if reference else inner


def schema_of(resource: Resource) -> dict[str, Any]:
    """The schema of a kind that is served."""
    group, _, version = resource.group_version.rpartition("/")
    wanted = {"group": group, "kind": resource.kind, "version": version}
    return next(schema for schema in schemas().values() if wanted in schema.get(_GVK, ()))


@cache
def patch_meta_of(plural: str) -> PatchMeta:
    """The shape of an object of this kind."""
    return PatchMeta(schema_of(next(found for found in RESOURCES.values() if found.plural == plural)))
