"""How the lists and maps of the kinds served are merged: by strategic merge patches and by server-side apply.

Sources: the struct tags patchStrategy and patchMergeKey in k8s.io/api, and listType, listMapKey, mapType and structType
there. A list or map that is not named here is a list that is one value, or a map that is merged field by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """``keys``: a list of maps with these keys, the first is the patchMergeKey. ``primitive``: a list that is a set.

    ``atomic``: one value for server-side apply. ``replace``: one value for a strategic merge patch.
    """

    fields: Mapping[str, Shape] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    primitive: bool = False
    atomic: bool = False
    replace: bool = False

    def child(self, name: str) -> Shape:
        return self.fields.get(name, PLAIN)


PLAIN = Shape()
_SET = Shape(primitive=True)
_ATOMIC = Shape(atomic=True)


def _by(*keys: str, **fields: Shape) -> Shape:
    return Shape(fields, keys)


def _map(**fields: Shape) -> Shape:
    return Shape(fields)


_META = _map(finalizers=_SET, ownerReferences=Shape(keys=("uid",), atomic=True))  # atomic: each reference
_CONDITIONS = _map(conditions=_by("type"))
_SOURCES = ("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef")
_CONTAINERS = _by(
    "name",
    ports=_by("containerPort", "protocol"),
    env=_by("name", valueFrom=_map(**dict.fromkeys(_SOURCES, _ATOMIC))),
    volumeMounts=_by("mountPath"),
    volumeDevices=_by("devicePath"),
)
_POD_SPEC = _map(
    affinity=_map(nodeAffinity=_map(requiredDuringSchedulingIgnoredDuringExecution=_ATOMIC)),
    containers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    hostAliases=_by("ip"),
    imagePullSecrets=Shape(keys=("name",), atomic=True),
    initContainers=_CONTAINERS,
    nodeSelector=_ATOMIC,
    schedulingGates=_by("name"),
    topologySpreadConstraints=_by("topologyKey", "whenUnsatisfiable", labelSelector=_ATOMIC),
    volumes=_by("name"),
)
_TEMPLATE = _map(metadata=_META, spec=_POD_SPEC)


def _kind(spec: Shape = PLAIN, status: Shape = _CONDITIONS, **fields: Shape) -> Shape:
    return _map(metadata=_META, spec=spec, status=status, **fields)


_WORKLOAD = _kind(_map(selector=_ATOMIC, template=_TEMPLATE))
_SHAPES = {
    "deployments": _WORKLOAD,
    "replicasets": _WORKLOAD,
    "statefulsets": _WORKLOAD,
    "daemonsets": _WORKLOAD,
    "jobs": _WORKLOAD,
    "pods": _kind(_POD_SPEC, _map(conditions=_by("type"), podIPs=_by("ip"), hostIPs=_by("ip"))),
    "nodes": _kind(_map(podCIDRs=_SET), _map(conditions=_by("type"), addresses=_by("type"))),
    "services": _kind(_map(ports=_by("port", "protocol"), selector=_ATOMIC)),
    "serviceaccounts": _kind(secrets=Shape(keys=("name",), atomic=True)),
    "persistentvolumeclaims": _kind(_map(selector=_ATOMIC, dataSource=_ATOMIC)),
    "persistentvolumes": _kind(_map(nodeAffinity=_map(required=_ATOMIC))),
    "poddisruptionbudgets": _kind(_map(selector=Shape(atomic=True, replace=True))),
    "events": _kind(involvedObject=_ATOMIC, related=_ATOMIC),
}
_OTHER = _kind()


def shape_of(plural: str) -> Shape:
    """The shape of an object of this kind."""
    return _SHAPES.get(plural, _OTHER)


def check_shape(value: Any, shape: Shape, path: str = "") -> str:
    """What is of another JSON type than the shape says, or nothing."""
    if value is None:
        return ""
    if shape.keys:
        if not isinstance(value, list):
            return f"{_type(value)} into {path} of type list"
        return next((wrong for item in value if (wrong := _check_map(item, shape, path))), "")
    if shape.primitive:
        fine = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return "" if fine else f"{_type(value)} into {path} of type list of strings"
    return _check_map(value, shape, path)


def _check_map(value: Any, shape: Shape, path: str) -> str:
    if not isinstance(value, dict):
        return f"{_type(value)} into {path} of type object"
    for name, child in shape.fields.items():
        if wrong := check_shape(value.get(name), child, f"{path}.{name}".removeprefix(".")):
            return wrong
    return ""


def _type(value: Any) -> str:
    names = {bool: "bool", str: "string", list: "array", dict: "object"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "number")
