"""Build the lab of a recording: its LabSpec, and its initial objects."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import msgspec

from chaos.lab import versions
from chaos.lab.apiserver.admission import PREFIX, InvalidError
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.workload import new_revision, revision_of
from chaos.lab.node.kubelet.static_pods import MANIFESTS, is_mirror, read_manifests
from chaos.lab.node.machine import Machine
from chaos.lab.objects import (
    Object,
    condition_status,
    controller_of,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.recorded.implied import has_lock_initially, is_cancelled
from chaos.lab.recorded.recording import Operation, Recording, ReplayError, to_epoch
from chaos.lab.recorded.templates import TEMPLATE_KINDS, create_priority_classes, load_volumes, with_template
from chaos.lab.snapshot.restored import (
    adapt_pod,
    adapt_template,
    add_api_versions,
    control_plane,
    is_control_plane,
    mount_volumes,
    owner_of,
    set_grace,
    zone_of,
)
from chaos.lab.spec import DEFAULT_NAMESPACES, LabSpec, NodeSpec, SpecError

_OWNERS = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "poddisruptionbudgets")
_REVISION_KINDS = {"statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
_CANCELS = 257  # the first systemd that cancels a shutdown in flight (facts 1.7)
_ADOPTION_TIME = 2.0  # seconds after which the kubelets have adopted their pods
_FINAL_DELETION_DELAY = 0.1
_CAPACITY_RESOURCES = ("cpu", "memory", "pods")
_MIRROR = "kubernetes.io/config.mirror"
_FIELDS = ("containers", "priority", "priorityClassName", "terminationGracePeriodSeconds", "hostNetwork")


@dataclass(frozen=True, slots=True)
class Session:
    """A simulated cluster, and the recording whose operations are done to it."""

    cluster: Cluster
    recording: Recording

    def machine(self, operation: Operation) -> Machine:
        """Machine of an operation's node."""
        return self.cluster.machines[operation.node]


def lab_spec(recording: Recording, start: float, seed: int = 1) -> LabSpec:
    """LabSpec with the nodes and settings of the recording, starting at epoch seconds ``start``. Raises ReplayError."""
    meta = recording.meta
    kinds = ("pods", *_OWNERS)
    namespaces = {namespace_of(item.object) for kind in kinds for item in recording.observations[kind]}
    try:
        spec = LabSpec(
            nodes=[_node(node, recording) for node in recording.initial_objects("nodes")],
            kubernetes=versions.nearest_version(str(meta.get("kubernetes") or "")),
            controllers=control_plane(meta, {}),
            seed=seed,
            start=start,
            namespaces=sorted({*DEFAULT_NAMESPACES, *namespaces}),
        )
        spec.check()
    except (SpecError, msgspec.ValidationError, ValueError, TypeError) as error:
        raise ReplayError(f"cannot simulate the recorded cluster: {error}") from error
    return spec


def _node(node: Object, recording: Recording) -> NodeSpec:
    name, allocatable = name_of(node), node["status"].get("allocatable") or {}
    spec = NodeSpec(
        name=name,
        role="control-plane" if is_control_plane(node) else "worker",
        zone=zone_of(node),
        labels=dict(labels_of(node)),
        boot_seconds=recording.boot_seconds(name),
        logind=has_lock_initially(recording, name) is not False,
        capacity={key: str(value) for key, value in allocatable.items() if key in _CAPACITY_RESOURCES},
    )
    set_grace(spec, recording.configs.get(name, {}))
    if recording.meta.get("systemd"):
        spec.systemd = int(recording.meta["systemd"])
    elif any(is_cancelled(recording, item) for item in recording.operations if item.node == name):
        spec.systemd = _CANCELS
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
        _restore_static_pod(cluster, new)
        cluster.store.create("pods", new)
        machine = cluster.machines.get(node_of(new))
        if machine is not None and new["status"].get("phase") == "Running" and not is_mirror(new):
            machine.runtime.start(new)
            mount_volumes(cluster, new)


def _restore_static_pod(cluster: Cluster, mirror: Object) -> None:
    """Write the manifest of a restored mirror pod that is Ready; the mirror names it. Others stay as they are."""
    machine = cluster.machines.get(node_of(mirror))
    if machine is None or not is_mirror(mirror) or condition_status(mirror, "Ready") != "True":
        return
    name = name_of(mirror).removesuffix(f"-{machine.name}")
    spec: dict[str, Any] = {key: mirror["spec"][key] for key in _FIELDS if mirror["spec"].get(key) is not None}
    notes = {key: value for key, value in mirror["metadata"]["annotations"].items() if not key.startswith("kubernetes")}
    metadata = {"name": name, "namespace": namespace_of(mirror), "annotations": notes}
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).decode()
    path = f"{MANIFESTS}{name}.yaml"
    machine.files[path] = text
    mirror["metadata"]["annotations"][_MIRROR] = read_manifests({path: text}, machine.name)[0]["metadata"]["uid"]


def _create_owners(cluster: Cluster, recording: Recording) -> None:
    """Create workloads and budgets, without those that have no pods and whose templates are not known."""
    scaled_up = {uid_of(obj) for obj in recording.initial_objects("deployments") if obj["spec"].get("replicas")}
    for plural in _OWNERS:
        for obj in recording.initial_objects(plural):
            if plural == "replicasets" and not _is_current(obj, scaled_up):
                continue  # a revision of an earlier roll-out
            try:
                known = with_template(plural, obj, recording)
            except InvalidError as error:
                recording.add_finding(f"{plural} {namespace_of(obj)}/{name_of(obj)} is not replayed: {error}")
                continue
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
    """Create the ControllerRevision of the owner's pods under its recorded name, so that no rollout starts.

    During one, that of the newest pod: the roll-out continues.
    """
    owned = [pod for pod in pods if (controller_of(pod) or {}).get("uid") == uid_of(owner)]
    if not owned:
        return
    newest = max(owned, key=lambda pod: pod["metadata"].get("creationTimestamp") or "")
    digest = revision_of(newest).removeprefix(f"{name_of(owner)}-")
    cluster.store.create("controllerrevisions", new_revision(owner, kind, digest, 1))


def _is_current(replica_set: Object, scaled_up: set[str]) -> bool:
    """Whether the ReplicaSet has replicas, or its Deployment has none."""
    owner = controller_of(replica_set)
    return bool(replica_set["spec"].get("replicas")) or (owner is not None and owner["uid"] not in scaled_up)


def add_behaviour(plural: str, obj: Object, recording: Recording) -> Object:
    """Copy of a recorded object, with annotations for the recorded behaviour of its containers."""
    new: Object = clone(obj)
    add_api_versions(new)
    behaviour = recording.meta.get("behaviour") or {}
    if plural in TEMPLATE_KINDS:
        name = owner_of({"metadata": {**new["metadata"]}}) if plural == "replicasets" else ""
        rules = _behaviour_rules(behaviour, name or f"{namespace_of(new)}/{name_of(new)}")
        _annotate_pod(new["spec"]["template"], rules)
        adapt_template(new["spec"]["template"])
    elif plural == "pods":
        _annotate_pod(new, _behaviour_rules(behaviour, owner_of(new)))
        adapt_pod(new)
        if cpu := recording.cpu_requests.get(uid_of(new)):
            new["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return new


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
