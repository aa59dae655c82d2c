"""A snapshot as JSON lines: a header, then one line for each object, kubelet, host and measured owner.

``{"kind": "header", "object": {...}}``, ``{"kind": "pods", "object": {...}}``, ``{"kind": "configz", "node": NODE,
"object": {...}}``, ``{"kind": "host", "node": NODE, "object": {...}}``, ``{"kind": "measured", "object": {...}}``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Struct, field

FORMAT = 1
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
Object = dict[str, Any]


class Missing(Struct, frozen=True, rename="camel"):
    """A missing part of a snapshot, and why it is missing. ``is_object``: objects of the cluster are missing."""

    what: str
    why: str
    is_object: bool = False


class Header(Struct, rename="camel"):
    """First line of a snapshot. ``taken``: seconds since the epoch. ``counts``: lines by kind.

    ``controller_manager`` and ``api_server`` have flags as the lab names them, as far as they are visible.
    """

    format: int
    nodefall: str
    taken: float
    kubernetes: str
    anonymized: bool = False
    simulated: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    controller_manager: dict[str, Any] = field(default_factory=dict)
    api_server: dict[str, Any] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)


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


def is_control_plane(node: Object) -> bool:
    """Whether the Node has the label of a control plane, by its present or former name."""
    return any(key in (node["metadata"].get("labels") or {}) for key in _CONTROL_PLANE)


def owner_uid(obj: Object) -> str:
    """The UID of the object's controller, or ""."""
    references = obj["metadata"].get("ownerReferences") or []
    return next((str(item.get("uid", "")) for item in references if item.get("controller")), "")
