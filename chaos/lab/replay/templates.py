"""Pod templates of owners that were recorded without, as by ``nodefall run``: from the pods that the owners made."""

from __future__ import annotations

import re
from typing import Any

from chaos.lab.apiserver.admission.workloads import admit_workload
from chaos.lab.apiserver.store.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects.accessors import Object, claims_of, controller_of, labels_of, name_of, namespace_of, uid_of
from chaos.lab.replay.recording import Recording
from chaos.lab.replay.states import owner_of

TEMPLATE_KINDS = ("deployments", "replicasets", "statefulsets", "daemonsets")
_FIELDS = ("priorityClassName", "terminationGracePeriodSeconds", "restartPolicy", "tolerations")
_HASH = "pod-template-hash"
_GENERATED = (
    _HASH,
    "controller-revision-hash",
    "pod-template-generation",
    "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name",
)


def with_template(plural: str, obj: Object, recording: Recording) -> Object | None:
    """The owner with selector and template; None if no pod shows them. ``obj`` itself if it has a template."""
    if plural not in TEMPLATE_KINDS or "template" in obj["spec"]:
        return obj
    pods = [item.object for item in recording.observations["pods"] if _is_owner(plural, obj, item.object)]
    if not pods:
        return None
    new: Object = clone(obj)
    labels = {key: value for key, value in labels_of(pods[0]).items() if key not in _GENERATED}
    if plural == "replicasets":
        labels[_HASH] = labels_of(pods[0])[_HASH]
    new["spec"]["selector"] = {"matchLabels": dict(labels)}
    new["spec"]["template"] = {"metadata": {"labels": labels}, "spec": _pod_spec(pods[0])}
    if plural == "statefulsets":
        new["spec"] |= _claim_templates(pods[0], recording) | {"podManagementPolicy": _management(pods)}
    admit_workload(plural, new)
    return new


def create_priority_classes(cluster: Cluster, recording: Recording) -> None:
    """Create the PriorityClasses of recorded pods, as far as they were not recorded themselves."""
    for item in recording.observations["pods"]:
        name = item.object["spec"].get("priorityClassName")
        if name and cluster.store.get("priorityclasses", "", name) is None:
            body = {"metadata": {"name": name}, "value": item.object["spec"].get("priority") or 0}
            cluster.registry.create("priorityclasses", body)


def _is_owner(plural: str, obj: Object, pod: Object) -> bool:
    if plural == "deployments":
        owner = controller_of(pod) or {}
        return owner.get("kind") == "ReplicaSet" and owner_of(pod) == f"{namespace_of(obj)}/{name_of(obj)}"
    return (controller_of(pod) or {}).get("uid") == uid_of(obj)


def _pod_spec(pod: Object) -> dict[str, Any]:
    spec: dict[str, Any] = {key: clone(pod["spec"][key]) for key in _FIELDS if pod["spec"].get(key) is not None}
    spec["containers"] = [{"name": item["name"]} for item in pod["spec"]["containers"]]
    volumes = [item for item in pod["spec"].get("volumes") or [] if item.get("persistentVolumeClaim")]
    if volumes:
        spec["volumes"] = clone(volumes)
    return spec


def _claim_templates(pod: Object, recording: Recording) -> dict[str, Any]:
    """Claim templates by the names of the pod's claims, TEMPLATE-POD."""
    pattern = re.compile(rf"(.+)-{re.escape(name_of(pod))}$")
    claims = {name_of(item.object): item.object for item in recording.observations["persistentvolumeclaims"]}
    found = [(name, match[1]) for name in claims_of(pod) if (match := pattern.match(name))]
    default = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = []
    for name, template in found:
        spec = (claims.get(name) or {}).get("spec") or {}
        modes = {"accessModes": spec["accessModes"]} if spec.get("accessModes") else {}
        templates.append({"metadata": {"name": template}, "spec": default | modes})
    return {"volumeClaimTemplates": templates} if templates else {}


def _management(pods: list[Object]) -> str:
    """Parallel if a second pod was observed before the first ran; OrderedReady if it was not, or not seen."""
    running: set[str] = set()
    names: set[str] = set()
    for pod in pods:
        if name_of(pod) not in names and names and not running:
            return "Parallel"
        names.add(name_of(pod))
        if (pod.get("status") or {}).get("phase") == "Running":
            running.add(name_of(pod))
    return "OrderedReady"
