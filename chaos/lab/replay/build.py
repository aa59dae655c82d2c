"""Build the lab of a recording: its LabSpec, and its initial objects."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import msgspec

from chaos.lab.apiserver.admission.defaults import PREFIX, default_pod_spec
from chaos.lab.apiserver.store.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.revisions import new_revision, revision_of
from chaos.lab.objects.accessors import (
    Object,
    controller_of,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.replay import locks
from chaos.lab.replay.recording import Recording, ReplayError, to_epoch
from chaos.lab.replay.states import owner_of
from chaos.lab.replay.templates import TEMPLATE_KINDS, create_priority_classes, with_template
from chaos.lab.replay.volumes import load_volumes, mount_volumes
from chaos.lab.spec import (
    DEFAULT_NAMESPACES,
    ControllerSpec,
    LabSpec,
    NodeSpec,
    PriorityGrace,
    SpecError,
    parse_duration,
)

_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_OWNERS = ("deployments", "replicasets", "statefulsets", "daemonsets", "poddisruptionbudgets")
_REVISION_KINDS = {"statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
_API_VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "Node": "v1"}
_NEVER = 1e9  # seconds
_NO_IMAGE = ("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")  # pkg/kubelet/images/types.go
_ADOPTION_TIME = 2.0  # seconds after which the kubelets have adopted their pods
_FINAL_DELETION_DELAY = 0.1
_CAPACITY_RESOURCES = ("cpu", "memory", "pods")
_ZONE = "topology.kubernetes.io/zone"


def lab_spec(recording: Recording, start: float, seed: int = 1) -> LabSpec:
    """LabSpec with the nodes and settings of the recording, starting at epoch seconds ``start``. Raises ReplayError."""
    meta = recording.meta
    kinds = ("pods", *_OWNERS)
    namespaces = {namespace_of(item.object) for kind in kinds for item in recording.observations[kind]}
    try:
        spec = LabSpec(
            nodes=[_node(node, recording) for node in recording.initial_objects("nodes")],
            kubernetes=str(meta.get("kubernetes") or "v1.36.2"),
            controllers=_controllers(meta),
            inhibitor_lost_after_cancel=locks.lost_after_cancel(recording),
            seed=seed,
            start=start,
            namespaces=sorted({*DEFAULT_NAMESPACES, *namespaces}),
        )
        spec.check()
    except (SpecError, msgspec.ValidationError, ValueError, TypeError) as error:
        raise ReplayError(f"cannot simulate the recorded cluster: {error}") from error
    return spec


def _controllers(meta: dict[str, Any]) -> ControllerSpec:
    manager, server = meta.get("controllerManager") or {}, meta.get("apiServer") or {}
    values: dict[str, Any] = {}
    for name, value in {**manager, **server}.items():
        values[name] = parse_duration(value) if isinstance(value, str) else value
    known = {field.encode_name for field in msgspec.structs.fields(ControllerSpec)}
    return msgspec.convert({key: value for key, value in values.items() if key in known}, ControllerSpec, strict=False)


def _node(node: Object, recording: Recording) -> NodeSpec:
    name, labels = name_of(node), labels_of(node)
    allocatable = node["status"].get("allocatable") or {}
    config = recording.configs.get(name, {})
    buckets = [
        PriorityGrace(priority=item["priority"], shutdown_grace_period_seconds=item["shutdownGracePeriodSeconds"])
        for item in config.get("shutdownGracePeriodByPodPriority") or []
    ]
    spec = NodeSpec(
        name=name,
        role="control-plane" if _CONTROL_PLANE in labels else "worker",
        zone=labels.get(_ZONE, ""),
        labels=dict(labels),
        shutdown_grace_period="0s" if buckets else config.get("shutdownGracePeriod", "0s"),
        shutdown_grace_period_critical_pods="0s" if buckets else config.get("shutdownGracePeriodCriticalPods", "0s"),
        shutdown_grace_period_by_pod_priority=buckets,
        boot_seconds=recording.boot_seconds(name),
        logind=locks.has_logind(recording, name),
        capacity={key: str(value) for key, value in allocatable.items() if key in _CAPACITY_RESOURCES},
    )
    if recording.meta.get("systemd"):
        spec.systemd = int(recording.meta["systemd"])
    return spec


def load_objects(cluster: Cluster, recording: Recording) -> None:
    """Create the initial objects in a cluster that has just started: volumes and owners, then pods with containers.

    Call before the kubelets sync their pods: they adopt running containers, as after a kubelet restart.
    """
    for obj in recording.initial_objects("priorityclasses"):
        if cluster.store.get("priorityclasses", "", name_of(obj)) is None:
            cluster.store.create("priorityclasses", clone(obj))
    create_priority_classes(cluster, recording)
    load_volumes(cluster, recording)
    _create_owners(cluster, recording)
    for (owner, node), times in recording.daemon_failures().items():
        cluster.controllers.daemon_sets.record_failures(owner, node, times)
    for pod in recording.initial_objects("pods"):
        new = add_behaviour("pods", pod, recording)
        cluster.store.create("pods", new)
        machine = cluster.machines.get(node_of(new))
        if machine is not None and new["status"].get("phase") == "Running":
            machine.runtime.start(new)
            mount_volumes(cluster, new)


def _create_owners(cluster: Cluster, recording: Recording) -> None:
    """Create workloads and budgets, without those that have no pods and whose templates are not known."""
    scaled_up = {uid_of(obj) for obj in recording.initial_objects("deployments") if obj["spec"].get("replicas")}
    for plural in _OWNERS:
        for obj in recording.initial_objects(plural):
            if plural == "replicasets" and not _is_current(obj, scaled_up):
                continue  # a revision of an earlier roll-out
            known = with_template(plural, obj, recording)
            if known is None:
                continue  # it has no pods
            created = cluster.store.create(plural, add_behaviour(plural, known, recording))
            if plural in _REVISION_KINDS:
                _create_revision(cluster, created, _REVISION_KINDS[plural], recording.initial_objects("pods"))


def resume_deletions(cluster: Cluster, recording: Recording) -> None:
    """Continue deletions that started before the recording: at the recorded time, or now with the remaining grace.

    Terminal pods go when the recording starts, as it started between two writes of the kubelet.
    """
    now = cluster.sim.now
    for pod in [pod for pod in recording.initial_objects("pods") if is_deleting(pod)]:
        due = to_epoch(pod["metadata"]["deletionTimestamp"])
        at = max(now + _ADOPTION_TIME, due - float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
        grace = max(1, round(due - at))
        if is_terminal(pod):
            at, grace = recording.start + _FINAL_DELETION_DELAY, 0
        cluster.sim.at(at, cluster.delete_object, "pods", namespace_of(pod), name_of(pod), grace)


def _create_revision(cluster: Cluster, owner: Object, kind: str, pods: list[Object]) -> None:
    """Create the ControllerRevision of the owner's pods under its recorded name, so that no rollout starts."""
    owned = [pod for pod in pods if (controller_of(pod) or {}).get("uid") == uid_of(owner)]
    hashes = {revision_of(pod).removeprefix(f"{name_of(owner)}-") for pod in owned}
    if len(hashes) > 1:
        raise ReplayError(f"{kind} {name_of(owner)}: rollout in progress: pods of revisions {', '.join(hashes)}")
    for digest in hashes:
        revision = new_revision(owner, kind, digest, 1)
        cluster.store.create("controllerrevisions", revision)


def _is_current(replica_set: Object, scaled_up: set[str]) -> bool:
    """Whether the ReplicaSet has replicas, or its Deployment has none."""
    owner = controller_of(replica_set)
    return bool(replica_set["spec"].get("replicas")) or (owner is not None and owner["uid"] not in scaled_up)


def add_behaviour(plural: str, obj: Object, recording: Recording) -> Object:
    """Copy of a recorded object, with annotations for the recorded behaviour of its containers."""
    new: Object = clone(obj)
    for reference in new["metadata"].get("ownerReferences") or []:
        reference.setdefault("apiVersion", _API_VERSIONS.get(reference["kind"], "apps/v1"))  # not in runs of nodefall
    behaviour = recording.meta.get("behaviour") or {}
    if plural in TEMPLATE_KINDS:
        name = owner_of({"metadata": {**new["metadata"]}}) if plural == "replicasets" else ""
        rules = _behaviour_rules(behaviour, name or f"{namespace_of(new)}/{name_of(new)}")
        _annotate_pod(new["spec"]["template"], rules)
    elif plural == "pods":
        new.setdefault("status", {})
        default_pod_spec(new["spec"])  # runs of nodefall record no images
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            new["metadata"].pop(key, None)
        _annotate_pod(new, _behaviour_rules(behaviour, owner_of(new)))
        if _lacks_image(new):
            new["metadata"].setdefault("annotations", {})[f"{PREFIX}starts-after"] = str(_NEVER)
    return new


def _lacks_image(pod: Object) -> bool:
    """Whether a container waits for an image that the node does not get."""
    states = [item.get("state") or {} for item in pod["status"].get("containerStatuses") or []]
    return any((state.get("waiting") or {}).get("reason") in _NO_IMAGE for state in states)


def _behaviour_rules(behaviour: dict[str, Any], owner: str) -> dict[str, Any]:
    return next((rules for pattern, rules in behaviour.items() if fnmatch(owner, pattern)), {})


def _annotate_pod(pod: Object, rules: dict[str, Any]) -> None:
    """Describe reactions to SIGTERM by the lab's annotations, and preStop hooks by sleep actions."""
    annotations = pod.setdefault("metadata", {}).get("annotations") or {}
    pod["metadata"]["annotations"] = annotations
    if "stopsAfter" in rules:
        # recorded containers check for signals once a second (meta.behaviourNote): the mean delay of the last one
        number = len(pod["spec"]["containers"])
        annotations[f"{PREFIX}stops-after"] = str(rules["stopsAfter"] + number / (number + 1))
    if rules.get("ignoresSIGTERM"):
        annotations[f"{PREFIX}ignores-sigterm"] = "true"
    elif rules.get("exit"):
        annotations[f"{PREFIX}exit-code"] = str(rules["exit"])
    for container in pod["spec"]["containers"]:
        if (container.get("lifecycle") or {}).get("preStop") and rules.get("preStop") is not None:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": rules["preStop"]}}}
    if not annotations:
        del pod["metadata"]["annotations"]  # the API server drops empty maps, and a template must stay the same
