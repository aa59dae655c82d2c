"""What a snapshot has in it, in the form in which it can be changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass
class Contents:
    """``objects``: by plural. ``configs``: of kubelets, ``hosts``: facts, both by node."""

    header: Object
    objects: dict[str, list[Object]]
    configs: dict[str, Object]
    hosts: dict[str, Object]

    def of(self, plural: str) -> list[Object]:
        """Objects of a kind."""
        return self.objects.setdefault(plural, [])


def name_of(obj: Object) -> str:
    """``NAMESPACE/NAME``; of an object without a namespace, its name."""
    namespace = obj["metadata"].get("namespace")
    return f"{namespace}/{obj['metadata']['name']}" if namespace else str(obj["metadata"]["name"])


def owner_uid(obj: Object) -> str:
    """uid of the object's controller, "" without one."""
    references = obj["metadata"].get("ownerReferences") or []
    return next((str(item.get("uid", "")) for item in references if item.get("controller")), "")
