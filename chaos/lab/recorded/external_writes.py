"""Operations of users through the API, inferred from the objects: writes that no controller makes. Pure.

Names of recorded actions, and their aliases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.lab.apiserver.pods import untolerated
from chaos.lab.objects import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    Object,
    condition,
    condition_status,
    controller_of,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    node_of,
    taints_of,
    uid_of,
)
from chaos.lab.recorded.recording import Observation, Operation, Recording, to_epoch

_OWNERS = (
    "priorityclasses",
    "poddisruptionbudgets",
    "deployments",
    "statefulsets",
    "daemonsets",
    "replicasets",
    "jobs",
)
_PRESSURES = ("memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable")
_CONTROLLER_TAINTS = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *(f"node.kubernetes.io/{name}" for name in _PRESSURES)}
_MIRROR = "kubernetes.io/config.mirror"
_LEAD = 0.05  # seconds; watches of several kinds are not in order, and pods need their owners first
_JOB = "batch.kubernetes.io/job-tracking"  # added and removed by the Job controller
_REQUEST_WINDOW = 10.0  # seconds from the start of an action to its effect
_SETTLE_TIME = 5.0  # seconds in which a controller acts on a change of the owner
_PLURALS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets", "Job": "jobs"}
_JOB_ENDS = ("SuccessCriteriaMet", "FailureTarget", "Complete", "Failed")


def user_taints(node: Object) -> list[Object]:
    """Taints that no controller writes."""
    return [taint for taint in taints_of(node) if taint["key"] not in _CONTROLLER_TAINTS]


def find_user_operations(recording: Recording) -> list[Operation]:
    """Operations ``user-...`` with the object in ``params``."""
    operations = [item for plural in _OWNERS for item in _owner_operations(plural, recording.observations[plural])]
    return [*operations, *_node_operations(recording.observations["nodes"]), *_PodOperations(recording).operations()]


def _operation(t: float, verb: str, plural: str, obj: Object, **more: object) -> Operation:
    return Operation(t, f"user-{verb}", "", {"plural": plural, "object": obj, **more})


def _changes(observations: list[Observation]) -> Iterator[tuple[Observation, Object | None]]:
    """Each change with the previous object; None for a new one."""
    before: dict[str, Object] = {}
    for item in observations:
        uid = uid_of(item.object)
        if item.type != "LIST":
            yield item, before.get(uid)
        before[uid] = item.object


def _owner_operations(plural: str, observations: list[Observation]) -> Iterator[Operation]:
    deleted: set[str] = set()
    for item, before in _changes(observations):
        obj = item.object
        if controller_of(obj) is not None:
            continue
        if before is None and item.type != "DELETED":
            yield _operation(item.t - _LEAD, "create", plural, obj)
        elif is_deleting(obj) or item.type == "DELETED":
            if uid_of(obj) not in deleted:
                deleted.add(uid_of(obj))
                yield _operation(item.t, "delete", plural, obj)
        elif before is not None and (obj.get("spec") != before.get("spec") or _generation(obj) != _generation(before)):
            yield _operation(item.t, "update", plural, obj)


def _node_operations(observations: list[Observation]) -> Iterator[Operation]:
    listed = {name_of(item.object) for item in observations if item.type == "LIST"}
    for item, before in _changes(observations):
        node = item.object
        if item.type == "DELETED":
            yield _operation(item.t, "delete", "nodes", node)
        elif before is None:
            if name_of(node) not in listed:
                yield _operation(item.t, "create", "nodes", node)
        elif _user_fields(before) != _user_fields(node):
            yield _operation(item.t, "node", "nodes", node)


def _user_fields(node: Object) -> object:
    taints = {(taint["key"], taint.get("value", ""), taint["effect"]) for taint in user_taints(node)}
    return taints, bool(node["spec"].get("unschedulable")), labels_of(node)


class _PodOperations:
    """Operations on pods. Deletions by users are those that neither a condition nor a controller explains.

    Deletions by force, and of pods with a controller, count only near a recorded action through the API.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._drains = [item for item in recording.operations if item.action == "drain"]
        self._force_deleted: set[str] = set()

    def operations(self) -> Iterator[Operation]:
        """Creations, evictions, deletions, and changes of finalizers."""
        for item, before in _changes(self._recording.observations["pods"]):
            pod = item.object
            if _MIRROR in (pod["metadata"].get("annotations") or {}):
                continue
            if before is None:
                if controller_of(pod) is None and item.type == "ADDED":
                    yield _operation(item.t, "create", "pods", pod)
                continue
            if _disruption_reason(pod) == "EvictionByEvictionAPI" != _disruption_reason(before):
                if not self._is_drained(pod, item.t):
                    yield _operation(item.t, "evict", "pods", pod)
            elif verb := self._deletion(item, before):
                if _grace(pod, verb) == 0:
                    self._force_deleted.add(uid_of(pod))
                yield _operation(item.t, verb, "pods", pod, grace=_grace(pod, verb))
            if item.type != "DELETED" and _finalizers(pod) != _finalizers(before):
                yield _operation(item.t, "finalizers", "pods", pod)

    def _deletion(self, item: Observation, before: Object) -> str:
        pod = item.object
        if item.type == "DELETED" and pod["status"].get("phase") == "Running":
            # a kubelet reports the end of a pod first, and pod GC writes Failed
            is_repeated = uid_of(pod) in self._force_deleted
            return "force-delete" if self._has_api_operation(item.t) and not is_repeated else ""
        starts = not is_deleting(before) and (is_deleting(pod) or item.type == "DELETED")
        if starts and not _disruption_reason(pod) and not self._is_deleted_by_controller(pod, item.t):
            return "delete"
        return ""

    def _is_deleted_by_controller(self, pod: Object, t: float) -> bool:
        """Whether the controller deletes the pod: finished, surplus, or of a deleted node or owner."""
        owner = controller_of(pod)
        if owner is None:
            return False
        plural = _PLURALS.get(owner["kind"])
        if plural is None or not self._has_api_operation(t):
            return True
        changes = [item for item in self._recording.observations[plural] if uid_of(item.object) == owner["uid"]]
        now = [item for item in changes if item.t <= t + _SETTLE_TIME]
        if not now or now[-1].type == "DELETED" or is_deleting(now[-1].object):
            return True
        if any(t - _SETTLE_TIME <= item.t and before is not None and not _only_grows(before, item.object)
               and before["spec"] != item.object["spec"]
               for item, before in _changes(now)):  # fmt: skip
            return True
        return owner["kind"] != "ReplicaSet" and self._is_deleted_by_rule(pod, t, owner["kind"], now)

    def _is_deleted_by_rule(self, pod: Object, t: float, kind: str, versions: list[Observation]) -> bool:
        """Whether the controller of a Job, StatefulSet or DaemonSet has a reason to delete the pod."""
        if kind == "Job":
            return any(condition_status(versions[-1].object, type_) == "True" for type_ in _JOB_ENDS)
        if any(_is_edit(item, before, pod) for item, before in _changes(versions)):
            return True  # rolled out
        return is_terminal(pod) or (kind == "DaemonSet" and self._is_unwanted(pod, t))

    def _is_unwanted(self, pod: Object, t: float) -> bool:
        node = self._recording.node_at(node_of(pod), t)
        return node is None or bool(untolerated(pod, taints_of(node), ("NoExecute",)))

    def _has_api_operation(self, t: float) -> bool:
        """Whether an action through the API started shortly before; without one, the cluster itself deleted the pod."""
        operations = self._recording.operations
        return any(item.action == API and t - _REQUEST_WINDOW <= item.t <= t for item in operations)

    def _is_drained(self, pod: Object, t: float) -> bool:
        return any(drain.t <= t and drain.node == node_of(pod) for drain in self._drains)


def _is_edit(item: Observation, before: Object | None, pod: Object) -> bool:
    """Whether the owner's spec changed after the pod was created."""
    if before is None or _generation(before) == _generation(item.object) or _only_grows(before, item.object):
        return False
    return to_epoch(pod["metadata"].get("creationTimestamp") or "1970-01-01T00:00:00Z") <= item.t


def _only_grows(before: Object, after: Object) -> bool:
    """Whether the owner only got more replicas, which deletes no pod."""
    old, new = before["spec"].get("replicas") or 0, after["spec"].get("replicas") or 0
    return old < new and {**before["spec"], "replicas": new} == after["spec"]


def _generation(obj: Object) -> int:
    return int(obj["metadata"].get("generation") or 0)


def _disruption_reason(pod: Object) -> str:
    target = condition(pod, "DisruptionTarget") or {}
    return str(target.get("reason", "")) if target.get("status") == "True" else ""


def _finalizers(pod: Object) -> list[str]:
    return [name for name in pod["metadata"].get("finalizers") or [] if name != _JOB]


def _grace(pod: Object, verb: str) -> int | None:
    return 0 if verb == "force-delete" else pod["metadata"].get("deletionGracePeriodSeconds")


API = "api"  # through the API server: module external_writes infers the changes from the objects

_HOST = {
    "poweroff": "power-button power-off shutdown graceful-poweroff graceful-shutdown",
    "reboot": "graceful-reboot restart-node node-reboot",
    "hard-reboot": "reset hard-reset power-reset power-cycle fast-reboot",
    "power-cut": "power-kill hard-poweroff cut-power kernel-crash crash panic",
    "power-on": "start-node boot",
    "prepare-for-shutdown": "emit-prepare-for-shutdown announce-shutdown",
    "schedule-shutdown": "shutdown-schedule",
    "cancel-shutdown": "cancel-shutdown-in-flight shutdown-cancel cancel-scheduled-shutdown",
    "kubelet-stop": "stop-kubelet",
    "kubelet-start": "start-kubelet",
    "kubelet-restart": "restart-kubelet",
    "kubelet-kill": "kill-kubelet",
    "kubelet-freeze": "freeze-kubelet kubelet-pause",
    "kubelet-thaw": "thaw-kubelet kubelet-unfreeze kubelet-resume kubelet-continue kubelet-cont",
    "runtime-stop": "stop-runtime containerd-stop container-runtime-stop",
    "runtime-start": "start-runtime containerd-start container-runtime-start",
    "runtime-restart": "restart-runtime containerd-restart container-runtime-restart",
    "dbus-restart": "restart-dbus",
    "logind-restart": "restart-logind",
    "partition": "network-partition",
    "heal": "partition-heal heal-partition unpartition",
    "drain": "kubectl-drain",
    "memory-pressure": "",
    "memory-available": "",
    "disk-pressure": "",
    "disk-available": "",
    "pid-pressure": "",
    "pid-available": "",
    "network-unavailable": "",
    "network-available": "",
    "clock-skew": "set-clock",
    "controller-manager-restart": "kcm-restart restart-controller-manager kube-controller-manager-restart",
}
_API = (
    "cordon uncordon taint untaint out-of-service in-service patch patch-budget scale rollout-restart preempt label "
    "unlabel annotate apply create create-pod delete delete-pod force-delete-pod evict evict-pod remove-finalizers "
    "delete-node create-node mark-disruption workload"
)
_NAMES = {
    **{name: name for name in _HOST},
    **{other: name for name, others in _HOST.items() for other in others.split()},
    **dict.fromkeys(_API.split(), API),
}
UNDO = {
    "partition": "heal",
    "kubelet-stop": "kubelet-start",
    "kubelet-freeze": "kubelet-thaw",
    "runtime-stop": "runtime-start",
    "poweroff": "power-on",
    "power-cut": "power-on",
    "memory-pressure": "memory-available",
    "disk-pressure": "disk-available",
    "pid-pressure": "pid-available",
    "network-unavailable": "network-available",
    "prepare-for-shutdown": "prepare-for-shutdown",
    "schedule-shutdown": "cancel-shutdown",
}
_UNDO_NAMES = ("heal", "undo", "restore", "recover")  # ends of the step that params.of names


def verb_of(action: str, params: dict[str, Any], steps: dict[str, str]) -> str:
    """Name of a recorded action; ``action`` itself if it is unknown. ``steps``: names of earlier steps."""
    name = action.lower().replace("_", "-")
    verb = steps.get(str(params.get("of", "")))
    if name in _UNDO_NAMES and verb in UNDO:
        return UNDO[verb]
    return _NAMES.get(name, action)
