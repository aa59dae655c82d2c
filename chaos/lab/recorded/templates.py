"""Pod templates of owners that were recorded without, as by ``nodefall run``: from the pods that the owners made.

Volumes of a recording, restored in the lab. Facts 7.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import Any

from chaos.lab.apiserver.admission_workloads import admit_workload, check_job
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import (
    Object,
    claims_of,
    controller_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from chaos.lab.recorded.recording import Recording
from chaos.lab.snapshot.restored import adapt_template, owner_of

TEMPLATE_KINDS = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs")
_EDITS = "replay/edits"  # annotation of a template
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
    """The owner with selector and template; None if no pod shows them. ``obj`` itself in a whole recording.

    Edits of what is not recorded show in the generation alone: they mark the template, so that it is rolled out.
    """
    if plural not in TEMPLATE_KINDS:
        return obj
    if is_whole(obj):
        return obj
    new: Object = clone(obj)
    if "template" in new["spec"]:
        new["spec"]["template"].setdefault("metadata", {})
    elif not _restore_template(plural, new, recording):
        return None
    if edits := _edits(plural, obj, recording):
        new["spec"]["template"]["metadata"].setdefault("annotations", {})[_EDITS] = str(edits)
    adapt_template(new["spec"]["template"])
    if plural == "statefulsets":
        pods = [item.object for item in recording.observations["pods"] if _is_owner(plural, obj, item.object)]
        if pods:
            new["spec"] = (
                _claim_templates(pods[0], recording) | {"podManagementPolicy": _management(pods)} | new["spec"]
            )
    if plural == "jobs":
        check_job(new["spec"])
    else:
        admit_workload(plural, new)
    return new


def is_whole(owner: Object) -> bool:
    """Whether the owner was recorded whole, with its template's images."""
    containers = ((owner["spec"].get("template") or {}).get("spec") or {}).get("containers") or [{}]
    return "image" in containers[0]


def _restore_template(plural: str, new: Object, recording: Recording) -> bool:
    """Set selector and template as of the first recorded pod of the owner; False without one."""
    pods = [item.object for item in recording.observations["pods"] if _is_owner(plural, new, item.object)]
    if not pods:
        return False
    labels = {key: value for key, value in labels_of(pods[0]).items() if key not in _GENERATED}
    if plural == "replicasets":
        labels[_HASH] = labels_of(pods[0])[_HASH]
    if plural != "jobs":
        new["spec"]["selector"] = {"matchLabels": dict(labels)}
    new["spec"]["template"] = {"metadata": {"labels": labels}, "spec": _pod_spec(pods[0])}
    return True


def _edits(plural: str, obj: Object, recording: Recording) -> int:
    """Number of changes of the owner's generation, up to this version, that no recorded field shows."""
    versions = [item.object for item in recording.observations[plural] if uid_of(item.object) == uid_of(obj)]
    generation = obj["metadata"].get("generation") or 0
    return sum(
        (before["metadata"].get("generation") or 0) < (after["metadata"].get("generation") or 0) <= generation
        and before["spec"] == after["spec"]
        for before, after in pairwise(versions)
    )


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


VOLUME_KINDS = ("persistentvolumes", "persistentvolumeclaims", "volumeattachments")
_STATUS_FIELDS = ("volumesAttached", "volumesInUse")


def load_volumes(cluster: Cluster, recording: Recording) -> None:
    """Create the initial volumes, claims and attachments; call before their pods and owners are created."""
    for plural in VOLUME_KINDS:
        for obj in recording.initial_objects(plural):
            new: Object = clone(obj)
            for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
                new["metadata"].pop(key, None)
            cluster.store.create(plural, new)
    for node in recording.initial_objects("nodes"):
        status = {key: clone(node["status"][key]) for key in _STATUS_FIELDS if node["status"].get(key)}
        cluster.store.patch("nodes", "", name_of(node), partial(_set_status, status))


def _set_status(status: Object, node: Object) -> None:
    node["status"].update(status)
