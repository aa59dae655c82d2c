"""Restores the objects of a snapshot in a cluster that has just started, and its machines.

The copy of a cluster: a LabSpec, and how a lab of it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.admission_workloads import WORKLOADS, admit_workload, check_job
from chaos.lab.apiserver.registry import CLUSTER_WIDE
from chaos.lab.apiserver.store import clone
from chaos.lab.apiserver.volumes import attachment_name, unique_name
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.static_pods import is_mirror
from chaos.lab.objects import Object, controller_of, is_deleting, is_ready, is_terminal, name_of, node_of, uid_of
from chaos.lab.sim import rfc3339, seconds_of
from chaos.lab.snapshot.contents import (
    annotate_owner,
    annotate_pod,
    inferred_revisions,
    is_ready_node,
    lab_spec,
    with_marked_templates,
    with_template_data,
    write_manifests,
)
from chaos.lab.snapshot.reader import Snapshot, SnapshotError
from chaos.lab.snapshot.restored import adapt_pod, add_api_versions, mount_volumes
from chaos.lab.snapshot.unmodelled import Simplifier

_REGISTRATION = 0.5  # seconds after which nodes are registered, before kubelets sync their pods
_ADOPTION = 2.0  # seconds after which the kubelets have adopted their pods
_PLAIN = (
    "priorityclasses", "storageclasses", "csidrivers", "persistentvolumes", "persistentvolumeclaims",
    "poddisruptionbudgets", "cronjobs",
)  # fmt: skip
_PROTECTED = ("persistentvolumes", "persistentvolumeclaims")  # a claim that is being deleted binds no new pod
_TRACKING = "batch.kubernetes.io/job-tracking"
_FINALIZERS = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection", _TRACKING)

_ATTACHER = "external-attacher/"


def start_from_snapshot(cluster: Cluster, snapshot: Snapshot, simplifier: Simplifier) -> None:
    """Start a new cluster, which has the machines of the snapshot's LabSpec, with the snapshot's objects.

    The kubelets adopt the pods that ran, as after a restart. It takes some simulated seconds.
    """
    write_manifests(cluster, snapshot, simplifier)
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + _REGISTRATION)
    _Loader(cluster, snapshot, simplifier).load()
    cluster.sim.run_until(cluster.sim.now + _ADOPTION)
    for machine in cluster.machines.values():
        machine.kubelet.rephase_pressure_rounds()


class _Loader:
    def __init__(self, cluster: Cluster, snapshot: Snapshot, simplifier: Simplifier) -> None:
        self._cluster, self._store, self._snapshot, self._simplifier = cluster, cluster.store, snapshot, simplifier
        self._owners = {  # uids of owners that the lab has
            str(obj["metadata"].get("uid")) for plural in snapshot.lists for obj in snapshot.objects(plural)
        }

    def load(self) -> None:
        """Restore all objects, what is referred to before what refers to it."""
        self._restore_namespaces()
        for node in self._snapshot.objects("nodes"):
            self._store.patch("nodes", "", name_of(node), partial(_restore_node, node))
        for plural in _PLAIN:
            for obj in self._snapshot.objects(plural):
                new: Object = clone(obj)
                self._drop_strange_owner(new)
                self._create(plural, new)
        self._simplifier.note("CronJobs", len(self._snapshot.objects("cronjobs")))
        self._restore_attachments()
        for service in self._snapshot.objects("services"):
            self._cluster.registry.create("services", service)
        self._restore_owners()
        ready = {name_of(node) for node in self._snapshot.objects("nodes") if is_ready_node(node)}
        for pod in self._snapshot.objects("pods"):
            if not (is_mirror(pod) and node_of(pod) in ready):
                self._restore_pod(pod)
        for node in self._snapshot.objects("nodes"):
            if not is_ready_node(node):
                self._simplifier.note("nodes that are not Ready")
                self._cluster.machines[name_of(node)].power_off()

    def _create(self, plural: str, obj: Object) -> Object | None:
        """Store an object that does not exist yet, without what would hold it back."""
        metadata = obj["metadata"]
        finalizers = metadata.pop("finalizers", None) or []
        allowed = [item for item in finalizers if item in _FINALIZERS or item.startswith(_ATTACHER)]
        self._simplifier.note("finalizers of others", int(len(allowed) < len(finalizers)))
        if allowed:
            metadata["finalizers"] = allowed
        if plural != "pods" and not (plural in _PROTECTED and allowed):  # what nothing protects would be gone
            for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
                metadata.pop(key, None)
        namespace = "" if plural in CLUSTER_WIDE else metadata.get("namespace", "")
        if self._store.get(plural, namespace, metadata["name"]) is not None:
            return None
        return self._store.create(plural, obj)

    def _restore_namespaces(self) -> None:
        for namespace in self._snapshot.objects("namespaces"):
            terminating = (namespace.get("status") or {}).get("phase") == "Terminating"
            self._simplifier.note("namespaces that are being terminated", int(terminating))
            self._store.patch("namespaces", "", name_of(namespace), partial(_restore_labels, namespace))

    def _restore_attachments(self) -> None:
        """VolumeAttachments under the names that the lab looks for, and volumesAttached of the nodes."""
        attached: dict[str, list[Object]] = {}
        for obj in self._snapshot.objects("volumeattachments"):
            new: Object = clone(obj)
            volume, node = new["spec"].get("source", {}).get("persistentVolumeName"), new["spec"].get("nodeName", "")
            if not volume:
                continue  # an inline volume
            new["metadata"]["name"] = attachment_name(self._store, volume, node)
            new["metadata"]["finalizers"] = [f"{_ATTACHER}{str(new['spec'].get('attacher')).replace('.', '-')}"]
            if self._create("volumeattachments", new) and (new.get("status") or {}).get("attached"):
                item = {"name": unique_name(self._store, volume), "devicePath": ""}
                attached.setdefault(node, []).append(item)
        for node, items in attached.items():
            self._store.patch("nodes", "", node, partial(_set_attached, items))

    def _restore_owners(self) -> None:
        """Workloads and Jobs with their templates, and revisions."""
        snapshot = self._snapshot
        for plural in WORKLOADS:
            objects = snapshot.objects(plural)
            if plural == "replicasets":
                objects = with_marked_templates(objects)
            for obj in objects:
                self._restore_owner(plural, obj)
        for job in snapshot.objects("jobs"):
            self._restore_owner("jobs", job)
        for revision in with_template_data(snapshot.objects("controllerrevisions"), self._store):
            self._create("controllerrevisions", revision)
        self._infer_revisions()

    def _infer_revisions(self) -> None:
        """Revisions of sets that have none in the snapshot."""
        pods: dict[str, list[Object]] = {}
        for pod in self._snapshot.objects("pods"):
            pods.setdefault(str((controller_of(pod) or {}).get("uid")), []).append(pod)
        for plural in ("statefulsets", "daemonsets"):
            for owner in self._store.list(plural):
                if not self._store.list_controlled("controllerrevisions", uid_of(owner)):
                    for revision in inferred_revisions(plural, owner, pods.get(uid_of(owner), [])):
                        self._create("controllerrevisions", revision)

    def _restore_owner(self, plural: str, obj: Object) -> None:
        new: Object = clone(obj)
        new.setdefault("spec", {})
        new.setdefault("status", {})
        self._simplifier.simplify_owner(plural, new)
        annotate_owner(plural, new, self._snapshot)
        self._drop_strange_owner(new)
        try:
            _check_owner(plural, new)
        except (InvalidError, KeyError, TypeError) as error:
            self._simplifier.reject(f"{plural} {new['metadata'].get('namespace')}/{name_of(new)}: {error}")
            self._owners.discard(str(new["metadata"].get("uid")))
            return
        self._create(plural, new)

    def _drop_strange_owner(self, obj: Object) -> None:
        """Remove owners that the lab does not have: its garbage collector would delete the object."""
        references = obj["metadata"].get("ownerReferences") or []
        known = [item for item in references if item.get("uid") in self._owners]
        if len(known) < len(references):
            self._simplifier.note("owners of other kinds")
            obj["metadata"]["ownerReferences"] = known
            if not known:
                del obj["metadata"]["ownerReferences"]

    def _restore_pod(self, pod: Object) -> None:
        new: Object = clone(pod)
        add_api_versions(new)
        adapt_pod(new)
        self._simplifier.simplify_pod(new["spec"])
        annotate_pod(new, self._snapshot)
        self._drop_strange_owner(new)
        if controller_of(new) is None and _TRACKING in (new["metadata"].get("finalizers") or []):
            new["metadata"]["finalizers"].remove(_TRACKING)  # which only the controller of its Job removes
        if is_deleting(pod):
            self._resume_deletion(pod, new)
        created = self._create("pods", new)
        if created is None:
            return
        machine, status = self._cluster.machines.get(node_of(new)), new.get("status") or {}
        node = self._store.get("nodes", "", node_of(new)) if machine else None
        if machine is not None and status.get("phase") == "Running" and node is not None and is_ready_node(node):
            self._simplifier.note("unready pods", int(not is_ready(pod) and not is_deleting(pod)))
            machine.runtime.start(created)
            mount_volumes(self._cluster, created)

    def _resume_deletion(self, pod: Object, new: Object) -> None:
        """Set the deletion of a pod that was being deleted, with the grace that was left."""
        left = round(seconds_of(pod["metadata"]["deletionTimestamp"]) - self._snapshot.taken)
        grace = 0 if is_terminal(pod) else max(1, left)
        new["metadata"]["deletionTimestamp"] = rfc3339(self._cluster.sim.now + grace)
        new["metadata"]["deletionGracePeriodSeconds"] = grace


def _check_owner(plural: str, obj: Object) -> None:
    """Check and default a workload or a Job. Raises InvalidError, KeyError, TypeError."""
    if plural == "jobs":
        check_job(obj["spec"])
        return
    admit_workload(plural, obj)
    if (obj["spec"].get("ordinals") or {}).get("start"):
        raise InvalidError("the lab simulates no ordinals.start")


def _restore_labels(before: Object, new: Object) -> None:
    new["metadata"]["labels"] = {**(new["metadata"].get("labels") or {}), **(before["metadata"].get("labels") or {})}


def _restore_node(before: Object, new: Object) -> None:
    """Copy the fields that people and the control plane set."""
    metadata, spec = before["metadata"], before.get("spec") or {}
    new["metadata"]["labels"] = dict(metadata.get("labels") or {})
    if metadata.get("annotations"):
        new["metadata"]["annotations"] = dict(metadata["annotations"])
    new["spec"].pop("taints", None)
    if spec.get("taints"):
        new["spec"]["taints"] = clone(spec["taints"])
    if "unschedulable" in spec:
        new["spec"]["unschedulable"] = spec["unschedulable"]
    if not is_ready_node(before):
        conditions = (before.get("status") or {}).get("conditions") or []
        new["status"]["conditions"] = [{"message": "", "reason": "", **clone(item)} for item in conditions]


def _set_attached(items: list[Object], node: Object) -> None:
    node["status"]["volumesAttached"] = items


# What objects that contradict each other raise, of which the reader has checked only the form.
_INCONSISTENT = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, PermissionError)


class Copy:
    """``settings``: keys of the LabSpec besides those of the snapshot. Raises SnapshotError for what has no lab."""

    def __init__(self, snapshot: Snapshot, settings: Mapping[str, Any]) -> None:
        self._snapshot, self._simplifier = snapshot, Simplifier()
        self.spec = lab_spec(snapshot, settings, self._simplifier)

    def start(self, cluster: Cluster) -> None:
        """Start a new cluster of ``spec`` with the snapshot's objects; only once. Raises SnapshotError."""
        try:
            start_from_snapshot(cluster, self._snapshot, self._simplifier)
        except _INCONSISTENT as error:
            raise SnapshotError(f"cannot simulate this cluster: {type(error).__name__}: {error}") from error

    @property
    def not_modelled(self) -> list[str]:
        """What the lab leaves out of the snapshot, one line each; complete after :meth:`start`."""
        return self._simplifier.lines()
