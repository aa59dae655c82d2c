"""What recordings and snapshots of clusters restore in the same way.

Settings of the control plane and of kubelets, as a recording or a snapshot has them, for a LabSpec.
Pod specs of recordings as the lab can run them, without what it does not simulate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.lab.apiserver.admission import PREFIX, default_pod_spec
from chaos.lab.apiserver.volumes import mounted_names
from chaos.lab.cluster import Cluster
from chaos.lab.objects import Object, claims_of, controller_of, labels_of, name_of, namespace_of, node_of, uid_of
from chaos.lab.spec import ControllerSpec, NodeSpec, PriorityGrace, parse_duration

_NO_IMAGE = ("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")  # pkg/kubelet/images/types.go
_NEVER = 1e9  # seconds
_API_VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "Node": "v1"}
_CONTROL_PLANE, _ZONE = "node-role.kubernetes.io/control-plane", "topology.kubernetes.io/zone"


def control_plane(meta: Mapping[str, Any], defaults: Mapping[str, Any]) -> ControllerSpec:
    """Flags of kube-controller-manager and kube-apiserver in ``meta``, by their names in a LabSpec, else ``defaults``.

    Raises ValueError, TypeError and msgspec.ValidationError for a value that the lab cannot have.
    """
    known = {field.encode_name for field in msgspec.structs.fields(ControllerSpec)}
    flags = {**(meta.get("controllerManager") or {}), **(meta.get("apiServer") or {})}
    found = {key: parse_duration(value) if isinstance(value, str) else value for key, value in flags.items()}
    known_flags = {key: value for key, value in found.items() if key in known}
    return msgspec.convert({**defaults, **known_flags}, ControllerSpec, strict=False)


def is_control_plane(node: Object) -> bool:
    """Whether the Node has the label of kubeadm."""
    return _CONTROL_PLANE in labels_of(node)


def zone_of(node: Object) -> str:
    """The Node's zone; "" without one."""
    return str(labels_of(node).get(_ZONE, ""))


def set_grace(spec: NodeSpec, config: Object) -> None:
    """Graceful shutdown by a kubelet's configuration: by priorities, or by two periods."""
    buckets = config.get("shutdownGracePeriodByPodPriority") or []
    spec.shutdown_grace_period_by_pod_priority = [
        PriorityGrace(priority=item["priority"], shutdown_grace_period_seconds=item["shutdownGracePeriodSeconds"])
        for item in buckets
    ]
    spec.shutdown_grace_period = "0s" if buckets else config.get("shutdownGracePeriod", "0s")
    spec.shutdown_grace_period_critical_pods = "0s" if buckets else config.get("shutdownGracePeriodCriticalPods", "0s")


_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_SPREAD = ("nodeTaintsPolicy", "minDomains", "matchLabelKeys")


def adapt_template(template: Object) -> None:
    """Adapt a copied template or pod in place: probes delay readiness."""
    if delay := probe_delay(template["spec"]):
        notes = template["metadata"].get("annotations") or {}
        template["metadata"]["annotations"] = notes | {f"{PREFIX}ready-after": str(delay)}
    _adapt_pod_spec(template["spec"])


def _adapt_pod_spec(spec: dict[str, Any]) -> None:
    for container in spec["containers"]:
        for probe in _PROBES:
            container.pop(probe, None)
        lifecycle = container.get("lifecycle") or {}
        lifecycle.pop("postStart", None)
        if "sleep" not in (lifecycle.get("preStop") or {}):
            lifecycle.pop("preStop", None)
        if not lifecycle:
            container.pop("lifecycle", None)
    spec.pop("initContainers", None)
    spec.pop("schedulerName", None)
    for item in spec.get("topologySpreadConstraints") or []:
        item.setdefault("maxSkew", 1)
        for key in _SPREAD:
            item.pop(key, None)
    default_pod_spec(spec)


def probe_delay(spec: dict[str, Any]) -> float:
    """Seconds from the start of the containers to the first success of their slowest probe."""
    return max((_first_probe(item) for item in spec["containers"]), default=0.0)


def _first_probe(container: Object) -> float:
    probes = [container.get(name) or {} for name in ("startupProbe", "readinessProbe")]
    return sum(float(probe.get("initialDelaySeconds") or 0) for probe in probes)


def mount_volumes(cluster: Cluster, pod: Object) -> None:
    """Mount the volumes of a pod that is restored with running containers."""
    if claims_of(pod):
        cluster.machines[node_of(pod)].runtime.mounts[uid_of(pod)] = mounted_names(cluster.store, pod)


def owner_of(pod: Object) -> str:
    """Namespace/name of the owner: the Deployment of a ReplicaSet's pod, and a pod without controller itself."""
    owner = controller_of(pod)
    if owner is None:
        return f"{namespace_of(pod)}/{name_of(pod)}"
    name = str(owner["name"])
    digest = (pod["metadata"].get("labels") or {}).get("pod-template-hash")
    if owner["kind"] == "ReplicaSet" and digest:
        name = re.sub(f"-{re.escape(digest)}$", "", name)
    return f"{namespace_of(pod)}/{name}"


def lacks_image(pod: Object) -> bool:
    """Whether a container waits for an image that the node does not get."""
    states = [item.get("state") or {} for item in pod["status"].get("containerStatuses") or []]
    return any((state.get("waiting") or {}).get("reason") in _NO_IMAGE for state in states)


def add_api_versions(obj: Object) -> None:
    """Complete the owner references of an object in place; runs of nodefall record them without apiVersion."""
    for reference in obj["metadata"].get("ownerReferences") or []:
        reference.setdefault("apiVersion", _API_VERSIONS.get(reference["kind"], "apps/v1"))


def adapt_pod(pod: Object) -> None:
    """Adapt a copied pod in place, without what shows that it was being deleted."""
    pod.setdefault("status", {})
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        pod["metadata"].pop(key, None)
    if not pod["metadata"].get("annotations"):
        pod["metadata"].pop("annotations", None)
    adapt_template(pod)  # runs of nodefall record no images
    if lacks_image(pod):
        pod["metadata"].setdefault("annotations", {})[f"{PREFIX}starts-after"] = str(_NEVER)
