"""Writes chaos/lab/http/schemas.json: the fields of the kinds that the lab serves, without descriptions.

Source: the OpenAPI definitions of Kubernetes as packed by kubernetes-validate, an extra for development.
Run it after a change of KINDS or of the version: ``python tools/lab_schemas.py``.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VERSION = "v1.36.0-local"
TARGET = Path(__file__).parent.parent / "chaos/lab/http/schemas.json"
KINDS = {
    "core.v1": "Binding ConfigMap Event Namespace Node PersistentVolume PersistentVolumeClaim Pod Secret "
    "Service ServiceAccount",
    "apps.v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.v1": "SelfSubjectAccessReview SelfSubjectRulesReview",
    "autoscaling.v1": "Scale",
    "batch.v1": "CronJob Job",
    "coordination.v1": "Lease",
    "discovery.v1": "EndpointSlice",
    "networking.v1": "NetworkPolicy",
    "policy.v1": "Eviction PodDisruptionBudget",
    "rbac.v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.v1": "PriorityClass",
    "storage.v1": "CSIDriver StorageClass VolumeAttachment",
}
_EXCLUDED_KEYS = ("description", "enum", "default", "x-kubernetes-unions")
_REF = "#/components/schemas/"


def main() -> None:
    TARGET.write_text(generate())


def generate() -> str:
    """The file, one type per line."""
    package = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / VERSION
    definitions = json.loads((package / "_definitions.json").read_text())["$defs"]
    wanted = [f"io.k8s.api.{group}.{kind}" for group, kinds in KINDS.items() for kind in kinds.split()]
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = _strip(definitions[name])
            wanted += _references(found[name])
    lines = [f"{json.dumps(name)}:{json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _strip(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as published by Kubernetes: without the additions of the package, and without descriptions."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _strip(item) for name, item in value.items()}
        elif key == "oneOf":
            result[key] = [_strip(item) for item in value]
        elif key in ("items", "additionalProperties"):
            result[key] = _strip(value)
        elif key == "type":
            result[key] = value[0] if isinstance(value, list) else value
        elif key == "$ref":
            result[key] = _REF + value.rpartition("/")[2]
        elif key not in _EXCLUDED_KEYS:
            result[key] = value
    return result


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix(_REF)
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


if __name__ == "__main__":
    main()
