"""Writes to the API server: admission, generations, graceful deletion, finalizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.admission import InvalidError, PodAdmission, admit, check_budget
from chaos.lab.apiserver.admission_metadata import check_update, drop_empty_maps, make_room
from chaos.lab.apiserver.admission_others import (
    STORAGE,
    STORED,
    admit_secret,
    admit_service,
    admit_storage,
    admit_stored,
)
from chaos.lab.apiserver.admission_workloads import (
    WORKLOADS,
    admit_job,
    admit_workload,
    check_job_update,
    check_workload_update,
    new_status,
)
from chaos.lab.apiserver.deletion import check_preconditions, with_policy
from chaos.lab.apiserver.pods import add_topology_labels, check_pod_update, check_sleep, violation
from chaos.lab.apiserver.store import NotFoundError, Store, clone
from chaos.lab.objects import Object, is_deleting, is_terminal, name_of, namespace_of, node_of, uid_of
from chaos.lab.rules import Rules
from chaos.lab.sim import SimClock, rfc3339
from chaos.lab.spec import LabSpec

CLUSTER_WIDE = frozenset(
    {"nodes", "namespaces", "priorityclasses", "persistentvolumes", "volumeattachments"}
    | {"storageclasses", "csidrivers", "clusterroles", "clusterrolebindings"}
)
_WITH_GENERATION = frozenset(
    {"pods", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "poddisruptionbudgets"}
    | {"cronjobs", "networkpolicies"}
)


class ForbiddenError(PermissionError):
    """Error 403 of the API server. ``resource`` and ``name``: if they differ from those of the request."""

    def __init__(self, message: str, resource: str = "", name: str = "", cause: Object | None = None) -> None:
        super().__init__(message)
        self.resource, self.name, self.cause = resource, name, cause


Record = Callable[[Object | None, Object], None]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write; ``propagation`` of deletes only.

    ``record`` edits the new object's managed fields before it is stored; its first argument is the stored object.
    """

    dry_run: bool = False
    propagation: str = "Background"
    record: Record | None = None


_DEFAULT_OPTIONS = WriteOptions()


class Registry:
    """All writes of simulated components and of API clients."""

    def __init__(self, sim: SimClock, store: Store, spec: LabSpec, rules: Rules) -> None:
        self.sim, self.store, self.spec, self.rules = sim, store, spec, rules
        self._pods = PodAdmission(store, rules.api_server)

    def create(self, plural: str, obj: Object, options: WriteOptions = _DEFAULT_OPTIONS) -> Object:
        """Admit and store an object. Raises InvalidError, ForbiddenError, NotFoundError (namespace), ConflictError."""
        new = {**obj, "metadata": clone(obj.get("metadata", {}))} if plural == "pods" else clone(obj)
        metadata = new.setdefault("metadata", {})
        if plural in CLUSTER_WIDE:
            metadata.pop("namespace", None)
        else:
            self._check_namespace(metadata.setdefault("namespace", "default"))
        for key in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"):
            metadata.pop(key, None)
        admit(plural, new, self._pods, self.sim)
        self._admit_kind(plural, new)
        check_sleep(plural, new, self.spec)
        if plural in _WITH_GENERATION and (plural != "pods" or self.spec.has_feature("pod-generation")):
            metadata["generation"] = 1
        if plural == "pods" and (why := violation(self._find("namespaces", "", metadata["namespace"]), new["spec"])):
            raise ForbiddenError(why)
        if plural == "pods" and new["spec"].get("nodeName"):
            node = self.store.get("nodes", "", new["spec"]["nodeName"])
            add_topology_labels(new, node, self.spec, is_binding=False)
        if options.record:
            options.record(None, new)
        return self.store.create(plural, new, options.dry_run)

    def _admit_kind(self, plural: str, new: Object) -> None:
        grace = self.rules.api_server.default_termination_grace_period_seconds
        if plural == "nodes":
            make_room(self, new)
        elif plural == "jobs":
            admit_job(new, self.sim, grace)
        elif plural == "services":
            admit_service(new, self.store)
        elif plural == "secrets":
            admit_secret(new)
        elif plural in STORED:
            admit_stored(plural, new)
        elif plural in STORAGE:
            admit_storage(plural, new)
        elif plural in WORKLOADS:
            admit_workload(plural, new, grace)
            new["status"] = new_status(plural)

    def update(
        self,
        plural: str,
        obj: Object,
        subresource: str = "",
        expect: str | None = None,
        options: WriteOptions = _DEFAULT_OPTIONS,
    ) -> Object:
        """Replace an object, or its status with subresource "status". Raises as Store.update, and InvalidError."""
        metadata = obj["metadata"]
        before = self._find(plural, metadata.get("namespace", ""), metadata["name"])
        new: Object = clone(obj)
        if subresource == "status":
            new = _with_status(plural, before, new)
        elif subresource:
            raise InvalidError(f"subresource {subresource!r} is not simulated")
        else:
            drop_empty_maps(new)
            self._restore_server_fields(plural, new, before)
            check_sleep(plural, new, self.spec)
            if problems := check_update(new["metadata"], before["metadata"]):
                raise InvalidError(*problems)
        if options.record:
            options.record(before, new)
        stored = self.store.update(plural, new, expect, options.dry_run)
        if options.dry_run:
            return stored
        freed = before["metadata"].get("finalizers") and not stored["metadata"].get("finalizers")
        late = self.rules.api_server.freeing_delay if plural == "pods" else 0.0
        return self._finish(plural, stored, late) if is_deleting(stored) and freed else stored

    def delete(
        self,
        plural: str,
        namespace: str,
        name: str,
        grace: int | None = None,
        preconditions: Object | None = None,
        options: WriteOptions = _DEFAULT_OPTIONS,
    ) -> Object:
        """Delete an object (rest.BeforeDelete) and return its last state. Raises NotFoundError, ConflictError.

        ``preconditions`` may hold uid and resourceVersion. Facts 5.7 and 10.
        """
        obj = self._find(plural, namespace, name)
        check_preconditions(obj, preconditions or {})
        if options.dry_run:
            return obj
        obj = with_policy(obj, options.propagation)
        if plural == "pods":
            return self._delete_pod(obj, grace)
        if plural == "namespaces":
            return self._delete_namespace(obj)
        if not is_deleting(obj) and obj["metadata"].get("finalizers"):
            return self._set_deletion_timestamp(plural, obj, 0)
        return obj if is_deleting(obj) else self.store.remove(plural, namespace, name)

    def _delete_pod(self, pod: Object, grace: int | None) -> Object:
        rules = self.rules.api_server
        own = pod["spec"].get("terminationGracePeriodSeconds", rules.default_termination_grace_period_seconds)
        seconds = max(own, rules.minimum_grace_period_seconds) if grace is None else grace
        if is_terminal(pod) or not node_of(pod):
            seconds = 0
        current = pod["metadata"].get("deletionGracePeriodSeconds")
        if current is not None and seconds >= current > 0:
            return pod
        marked = pod if current == seconds else self._set_deletion_timestamp("pods", pod, seconds)
        if rules.delete_removes_running_pods:
            return self._remove_at_once(marked)
        if rules.terminating_pods_expire:
            self.sim.after(seconds, self._remove_at_once, marked)
        late = rules.force_deletion_delay if node_of(pod) and not is_terminal(pod) else 0.0
        return marked if seconds > 0 else self._finish("pods", marked, late)

    def _remove_at_once(self, pod: Object) -> Object:
        """Remove the pod although its containers may run."""
        key = namespace_of(pod), name_of(pod)
        if (found := self.store.get("pods", *key)) is not None and uid_of(found) == uid_of(pod):
            self.store.remove("pods", *key)
        return pod

    def _delete_namespace(self, namespace: Object) -> Object:
        if is_deleting(namespace):
            return namespace

        def change(obj: Object) -> None:
            obj["metadata"]["deletionTimestamp"] = self.sim.timestamp()
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}

        return self.store.patch("namespaces", "", namespace["metadata"]["name"], change) or namespace

    def _set_deletion_timestamp(self, plural: str, obj: Object, grace: int) -> Object:
        """Set deletionTimestamp; increment the generation only the first time."""
        marked: Object = clone(obj)
        metadata = marked["metadata"]
        if "deletionTimestamp" not in metadata and "generation" in metadata:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = rfc3339(self.sim.now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        return self.store.update(plural, marked)

    def _finish(self, plural: str, obj: Object, late: float = 0.0) -> Object:
        metadata = obj["metadata"]
        held = metadata.get("finalizers") and (plural != "pods" or self.rules.api_server.finalizers_hold_pods)
        if held or (plural == "pods" and metadata.get("deletionGracePeriodSeconds", 0) > 0):
            return obj
        if not late:
            return self.store.remove(plural, metadata.get("namespace", ""), metadata["name"])
        self.sim.after(late, self._remove_at_once, obj)
        return obj

    def _restore_server_fields(self, plural: str, new: Object, before: Object) -> None:
        old = before["metadata"]
        for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            new["metadata"].pop(key, None)
            if key in old:
                new["metadata"][key] = old[key]
        if plural != "namespaces" and "status" in before:
            new["status"] = clone(before["status"])
        grace = self.rules.api_server.default_termination_grace_period_seconds
        if plural in WORKLOADS:
            admit_workload(plural, new, grace)
        elif plural == "poddisruptionbudgets":
            check_budget(new)
        elif plural == "jobs":
            check_job_update(new["spec"], before["spec"], grace)
        elif plural == "secrets":
            admit_secret(new, before)
        elif plural in STORED:
            admit_stored(plural, new, before)
        if plural in _WITH_GENERATION and new.get("spec") != before.get("spec"):
            _check_immutable(plural, new["spec"], before["spec"])
            new["metadata"] |= {"generation": old["generation"] + 1} if "generation" in old else {}

    def _check_namespace(self, name: str) -> None:
        namespace = self._find("namespaces", "", name)
        if is_deleting(namespace):
            reason = f"unable to create new content in namespace {name} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
            raise ForbiddenError(reason, cause={**cause, "message": f"namespace {name} is being terminated"})

    def _find(self, plural: str, namespace: str, name: str) -> Object:
        obj = self.store.get(plural, namespace, name)
        if obj is None:
            raise NotFoundError(plural, name)
        return obj


def _with_status(plural: str, before: Object, new: Object) -> Object:
    """``before`` with the status of ``new``, and for a Node with its annotations, which kubelets write so
    (nodeStatusStrategy in pkg/registry/core/node/strategy.go). Other metadata is not simulated here.
    """
    result: Object = {**clone(before), "status": new.get("status", {})}
    if plural == "nodes":
        result["metadata"].pop("annotations", None)
        if annotations := new["metadata"].get("annotations"):
            result["metadata"]["annotations"] = annotations
    return result


def _check_immutable(plural: str, new: dict[str, Any], old: dict[str, Any]) -> None:
    if plural in WORKLOADS:
        check_workload_update(plural, new, old)
    if plural == "pods":
        check_pod_update(new, old)
