"""The LabSpec of a snapshot, and what a machine has on disk: manifests of static pods.

Revisions of workloads: a snapshot has no environment and no arguments, so templates that differ may look alike.
How containers of the copy start and end, by what was measured of their owners: annotations of pods and templates.
A start or an end within a few seconds is as the lab's default, and the lab has its own attaching of volumes. An
annotation that is there stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.lab import versions
from chaos.lab.apiserver.admission import PREFIX
from chaos.lab.apiserver.store import Store, clone
from chaos.lab.cluster import Cluster
from chaos.lab.controllers.workload import new_revision, revision_of
from chaos.lab.node.kubelet.static_pods import MANIFESTS, is_mirror
from chaos.lab.objects import (
    Object,
    condition_status,
    controller_of,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    parse_quantity,
    uid_of,
)
from chaos.lab.snapshot.reader import Snapshot, SnapshotError
from chaos.lab.snapshot.restored import control_plane, is_control_plane, owner_of, set_grace, zone_of
from chaos.lab.snapshot.unmodelled import Simplifier
from chaos.lab.spec import DEFAULT_NAMESPACES, LabSpec, NodeSpec, SpecError, Taint

_OLDEST_SYSTEMD, _DEFAULT_SYSTEMD = 251, 252
_OF_KUBELET = ("nodeName", "tolerations", "priority", "preemptionPolicy")  # set when a static pod is read


def lab_spec(snapshot: Snapshot, settings: Mapping[str, Any], simplifier: Simplifier) -> LabSpec:
    """The LabSpec with the snapshot's nodes; ``settings``: the other keys of a LabSpec. Raises SnapshotError."""
    namespaced = {namespace_of(obj) for plural in snapshot.lists for obj in snapshot.objects(plural)}
    names = {name_of(obj) for obj in snapshot.objects("namespaces")}
    recorded = str(snapshot.header.get("kubernetes") or "")
    version = versions.nearest_version(recorded)
    simplifier.note("other versions of Kubernetes", int(not recorded.startswith(version)))
    document = {
        "kubernetes": version,
        **{key: value for key, value in settings.items() if key not in ("nodes", "kubernetes", "controllers")},
        "namespaces": sorted({*DEFAULT_NAMESPACES, *names, *namespaced} - {""}),
    }
    try:
        controllers = control_plane(snapshot.header, settings.get("controllers") or {})
        document |= {"nodes": [], "controllers": msgspec.to_builtins(controllers)}
        spec = msgspec.convert(document, LabSpec)
        hosts = _HostFacts(snapshot)
        spec.nodes = [_node(node, hosts, snapshot, simplifier) for node in snapshot.objects("nodes")]
        spec.check()
    except (SpecError, msgspec.ValidationError, ValueError, TypeError, KeyError) as error:
        raise SnapshotError(f"cannot simulate this cluster: {error}") from error
    return spec


def _node(node: Object, hosts: _HostFacts, snapshot: Snapshot, simplifier: Simplifier) -> NodeSpec:
    name, status = name_of(node), node.get("status") or {}
    info, config = status.get("nodeInfo") or {}, snapshot.configs.get(name)
    if config is None:
        simplifier.note("kubelets without configuration")
    config = config or {}
    is_windows = info.get("operatingSystem") == "windows"
    spec = NodeSpec(
        name=name,
        os="windows" if is_windows else "linux",
        role="control-plane" if is_control_plane(node) and not is_windows else "worker",
        zone=zone_of(node),
        labels=dict(labels_of(node)),
        taints=[msgspec.convert(item, Taint) for item in config.get("registerWithTaints") or []],
        systemd=_systemd(hosts.get(node, "systemd"), simplifier),
        kubelet_service="nssm" if hosts.get(node, "kubeletService") == "nssm" else "service",
        fail_swap_on=config.get("failSwapOn", True) is not False,
        capacity=_quantities(status.get("allocatable") or {}),
    )
    set_grace(spec, config)
    swap = (info.get("swap") or {}).get("capacity")
    if swap and not spec.fail_swap_on and not is_windows:
        spec.swap = str(swap)
    return spec


class _HostFacts:
    """Facts of the hosts that were read, which stand for those with the same OS image and kernel."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._own = snapshot.hosts
        self._of_images: dict[tuple[str, str], Object] = {}
        for node in snapshot.objects("nodes"):
            if found := self._own.get(name_of(node)):
                self._of_images[_image(node)] = found

    def get(self, node: Object, key: str) -> Any:
        """None if neither the host nor one that is like it was read."""
        return {**self._of_images.get(_image(node), {}), **(self._own.get(name_of(node)) or {})}.get(key)


def _systemd(found: Any, simplifier: Simplifier) -> int:
    version = int(found or _DEFAULT_SYSTEMD)
    if version >= _OLDEST_SYSTEMD:
        return version
    simplifier.note("systemd before 251")
    return _DEFAULT_SYSTEMD


def _image(node: Object) -> tuple[str, str]:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("osImage")), str(info.get("kernelVersion"))


def _quantities(amounts: Object) -> dict[str, str]:
    """The quantities that can be parsed."""
    result = {}
    for key, value in amounts.items():
        try:
            parse_quantity(value)
        except ValueError:
            continue
        result[key] = str(value)
    return result


def is_ready_node(node: Object) -> bool:
    """Whether the node was Ready; one without conditions counts as Ready."""
    return condition_status(node, "Ready") in ("True", "")


def write_manifests(cluster: Cluster, snapshot: Snapshot, simplifier: Simplifier) -> None:
    """Write the manifests of static pods, from their mirrors, before the kubelets start."""
    for pod in snapshot.objects("pods"):
        machine = cluster.machines.get(node_of(pod))
        if machine is None or not is_mirror(pod):
            continue
        name = name_of(pod).removesuffix(f"-{machine.name}")
        body: Object = {key: value for key, value in clone(pod["spec"]).items() if key not in _OF_KUBELET}
        simplifier.simplify_pod(body)
        annotations = (pod["metadata"].get("annotations") or {}).items()
        metadata = {
            "name": name,
            "namespace": namespace_of(pod),
            "annotations": {key: value for key, value in annotations if key.startswith(PREFIX)},
            **({"labels": dict(labels_of(pod))} if labels_of(pod) else {}),
        }
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}
        machine.files[f"{MANIFESTS}{name}.yaml"] = msgspec.json.encode(document).decode() + "\n"


_REVISION = "deployment.kubernetes.io/revision"
_EARLIER = "nodefall.dev/earlier-revision"
_PLURALS = {"StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}


def with_marked_templates(replica_sets: list[Object]) -> list[Object]:
    """ReplicaSets, with an annotation in the templates of those that are not the last of their Deployment.

    So the Deployment finds its own set.
    """
    last: dict[str, int] = defaultdict(int)
    for item in replica_sets:
        last[_owner_uid(item)] = max(last[_owner_uid(item)], _number(item))
    result = []
    for item in replica_sets:
        new: Object = clone(item)
        if _owner_uid(item) and _number(item) < last[_owner_uid(item)]:
            _mark(new["spec"]["template"], str(_number(item)))
        result.append(new)
    return result


def with_template_data(revisions: list[Object], store: Store) -> list[Object]:
    """ControllerRevisions with the template of their owner; earlier ones with an annotation in it."""
    last: dict[str, int] = defaultdict(int)
    for item in revisions:
        last[_owner_uid(item)] = max(last[_owner_uid(item)], int(item.get("revision") or 0))
    result = []
    for item in revisions:
        reference = controller_of(item) or {}
        plural = _PLURALS.get(str(reference.get("kind")), "")
        owner = store.get(plural, namespace_of(item), str(reference.get("name"))) if plural else None
        if owner is None or uid_of(owner) != reference["uid"]:
            continue
        number = int(item.get("revision") or 0)
        template: Object = clone(owner["spec"]["template"])
        if number < last[reference["uid"]]:
            _mark(template, str(number))
        new: Object = clone(item)
        result.append({**new, "data": {"spec": {"template": {**template, "$patch": "replace"}}}, "revision": number})
    return result


def inferred_revisions(plural: str, owner: Object, pods: list[Object]) -> list[Object]:
    """Revisions of a StatefulSet or DaemonSet of which none could be read, by the labels of its ``pods``.

    The last one is updateRevision of a StatefulSet, and that of the youngest pod of a DaemonSet.
    """
    kind = next(kind for kind, each in _PLURALS.items() if each == plural)
    prefix = f"{name_of(owner)}-"
    ordered = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    digests = list(
        dict.fromkeys(revision_of(pod).removeprefix(prefix) for pod in reversed(ordered) if revision_of(pod))
    )
    update = str((owner.get("status") or {}).get("updateRevision") or "").removeprefix(prefix)
    if update:
        digests = [update, *(digest for digest in digests if digest != update)]
    result = []
    for index, digest in enumerate(digests):
        revision = new_revision(owner, kind, digest, len(digests) - index)
        if index:
            _mark(revision["data"]["spec"]["template"], digest)
        result.append(revision)
    return result


def _number(replica_set: Object) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(_REVISION) or 0)


def _owner_uid(obj: Object) -> str:
    return str((controller_of(obj) or {}).get("uid", ""))


def _mark(template: Object, value: str) -> None:
    metadata = template.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _EARLIER: value}


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
