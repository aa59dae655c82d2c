"""How containers of the copy start and end, by what was measured of their owners: annotations of pods and templates.

A start or an end within a few seconds is as the lab's default, and the lab has its own attaching of volumes. An
annotation that is there stays.
"""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.admission.defaults import PREFIX
from chaos.lab.objects.accessors import Object, controller_of, name_of, namespace_of
from chaos.lab.replay.states import owner_of
from chaos.lab.snapshot.reader import Snapshot

_SLOW_START, _OWN_START = 3.0, 1.0  # seconds; the lab takes about one to start a pod
_SLOW_END = 1.0
_KINDS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "jobs": "Job"}


def annotate_owner(plural: str, obj: Object, snapshot: Snapshot) -> None:
    """Annotate the template of a workload, in place."""
    kind, name = _KINDS.get(plural, "ReplicaSet"), f"{namespace_of(obj)}/{name_of(obj)}"
    owner = controller_of(obj)
    if plural == "replicasets" and owner is not None:
        kind, name = str(owner["kind"]), f"{namespace_of(obj)}/{owner['name']}"
    template = obj["spec"]["template"]
    measured = snapshot.measured.get((kind, name)) or {}
    if obj["spec"].get("volumeClaimTemplates"):
        measured = {key: value for key, value in measured.items() if key != "start"}
    _annotate(template, measured)


def annotate_pod(pod: Object, snapshot: Snapshot) -> None:
    """Annotate a pod as the template of its owner."""
    owner, name = controller_of(pod), owner_of(pod)
    kind = "Pod" if owner is None else str(owner["kind"])
    if owner is not None and kind == "ReplicaSet" and name != f"{namespace_of(pod)}/{owner['name']}":
        kind = "Deployment"
    _annotate(pod, snapshot.measured.get((kind, name)))


def _annotate(template: Object, measured: dict[str, Any] | None) -> None:
    found = annotations_of(measured or {}, template.get("spec") or {})
    before = template.setdefault("metadata", {}).get("annotations") or {}
    if found:
        template["metadata"]["annotations"] = {**found, **before}


def annotations_of(measured: dict[str, Any], spec: Object) -> dict[str, str]:
    """Annotations for measured times: the medians, without the sleep of preStop hooks."""
    found: dict[str, str] = {}
    start, end = measured.get("start") or {}, measured.get("end") or {}
    if start.get("p50", 0.0) >= _SLOW_START and not _has_volumes(spec):
        found[PREFIX + "starts-after"] = f"{start['p50'] - _OWN_START:g}"
    if 2 * int(end.get("killed") or 0) > int(end.get("number") or 0):
        return found | {PREFIX + "ignores-sigterm": "true"}
    hooks = [
        ((item.get("lifecycle") or {}).get("preStop") or {}).get("sleep") or {} for item in spec.get("containers", [])
    ]
    taken = float(end.get("p50") or 0.0) - max((float(item.get("seconds") or 0) for item in hooks), default=0.0)
    if taken >= _SLOW_END:
        found[PREFIX + "stops-after"] = f"{taken:g}"
    if end.get("exitCode"):
        found[PREFIX + "exit-code"] = str(end["exitCode"])
    return found


def _has_volumes(spec: Object) -> bool:
    return any(item.get("persistentVolumeClaim") for item in spec.get("volumes") or [])
