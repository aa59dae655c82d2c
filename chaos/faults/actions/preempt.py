"""A pod of high priority that preempts other pods."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    NODE_NAME,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.core.api_fact import field, object_fact, pods_path
from chaos.core.api_path import resource_path
from chaos.core.command import KubeCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.field_types import Model
from chaos.core.kube import Pod, pod_condition
from chaos.core.kube_names import Image, Namespace
from chaos.core.node_mark import CpuQuantity, NodeName, OwnName
from chaos.core.permission import permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import READ_NODE, node_object

_CLASSES = resource_path("scheduling.k8s.io/v1", "priorityclasses")
_CREATE_STATUSES = (201, 409)  # 409: a request without a response had arrived
_DELETE_STATUSES = (200, 202, 404)
_CRITICAL = "system-node-critical", 2_000_001_000  # a built-in class and its value
_PREFIX = "nodefall-"  # of the pod's name
_REJECTIONS = ("OutOfcpu", "UnexpectedAdmissionError")  # by a kubelet that preempts nothing
_REASON = "Preempting"  # of a pod's status, and of the Event about it
_BY_KUBELET = "Pod was preempted by Kubelet to accommodate a critical pod."
_CPU = re.compile(r"(\d+(?:\.\d+)?)(m?)", re.ASCII)


class Params(Model):
    """The CPU request and the priority."""

    cpu: str | None = Field(
        None,
        pattern=r"^\d+(\.\d+)?m?$",
        description="The CPU request of the pod. By default, 1m more than the node has free.",
    )
    by: Literal["scheduler", "kubelet"] = Field(
        "scheduler", description="Who preempts. kubelet: a critical pod is bound to the node when it is created."
    )
    priority: int = Field(
        1000,
        ge=1,
        le=1_000_000_000,
        description="With by: scheduler, the priority of the pod. Pods with a lower priority are preempted.",
    )
    namespace: Namespace = Field("default", description="The namespace in which the pod is created.")
    image: Image = "busybox:1.36"


def millicores(quantity: Any) -> float:
    """A CPU quantity in millicores. Raises ValueError."""
    found = _CPU.fullmatch(str(quantity))
    if found is None:
        raise ValueError(f"{quantity!r} is not a CPU quantity")
    return float(found[1]) * (1 if found[2] else 1000)


def _cpu_request(pod: Any) -> float:
    def cpu(containers: Any) -> list[float]:
        return [millicores(field(c, "/resources/requests/cpu") or 0) for c in containers or ()]

    return max(sum(cpu(field(pod, "/spec/containers"))), *cpu(field(pod, "/spec/initContainers")), 0.0)


def _min_preemption_cpu(allocatable: float, pods: Iterable[Any], priority: int) -> float:
    """The free CPU plus 1m. Raises ValueError if no pod has a lower priority."""
    active = [pod for pod in pods if field(pod, "/status/phase") not in ("Succeeded", "Failed")]
    free = allocatable - sum(_cpu_request(pod) for pod in active)
    lower = sum(_cpu_request(pod) for pod in active if (field(pod, "/spec/priority") or 0) < priority)
    if lower < 1:
        raise ValueError(f"no pod with a priority below {priority} requests CPU there")
    return free + 1


def _is_preempted(pod: Pod, by: str) -> bool:
    """Whether the pod was preempted (scheduler/framework/preemption/executor.go, kubelet/preemption/preemption.go)."""
    target = pod_condition(pod, "DisruptionTarget")
    if by == "kubelet":  # status.reason is empty if all containers exit 0; the condition's is that of all evictions
        by_message = target is not None and target.status == "True" and target.message == _BY_KUBELET
        return by_message or (pod.status is not None and pod.status.reason == _REASON)
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def _check_preempted(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a pod of the node that was preempted, or by the Event of the kubelet that preempts one."""
    by = step.params.get("by", "scheduler")
    for pods in timeline.pods.on_nodes([step.node]):
        for version in pods:
            pod = version.object
            on_node = bool(pod.spec and pod.spec.node_name == step.node)
            if on_node and _is_preempted(pod, by) and step.begin <= version.t <= step.until:
                return ProofResult(ProofStatus.PROVEN, f"the {by} preempted {pod.metadata.name}", (version.seq,))
    found = _find_event(timeline, step) if by == "kubelet" else None
    return found or no_proof(f"no pod of {step.node} was seen to be preempted")


def _check_unfit(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the step's pod, which fits on the node only by preemption, whether or not preemption follows."""
    by_kubelet = step.params.get("by") == "kubelet"
    for pods in timeline.pods.values():
        if not pods.first.object.metadata.name.startswith(_PREFIX) or pods.first.t < step.begin:
            continue
        for version in pods:
            pod, placed = version.object, pod_condition(version.object, "PodScheduled")
            rejected = by_kubelet and pod.status is not None and (pod.status.reason or "") in _REJECTIONS
            unscheduled = not by_kubelet and placed is not None and placed.reason == "Unschedulable"
            if version.t <= step.until and (rejected or unscheduled):
                because = f"{pod.metadata.name} did not fit on {step.node} beside its pods"
                return ProofResult(ProofStatus.PROVEN, because, (version.seq,))
    return no_proof(f"no pod of the step was seen that does not fit on {step.node}")


def _find_event(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Find the kubelet's Event. It precedes the end of the pod, whose last version may never be observed."""
    for entry, event in timeline.events.with_reason(_REASON):
        pod, source = event.involved_object, event.source
        from_kubelet = source is not None and (source.component, source.host) == ("kubelet", step.node)
        if from_kubelet and pod and step.begin <= entry.t <= step.until:
            return ProofResult(ProofStatus.PROVEN, f"the kubelet reported that it preempts {pod.name}", (entry.seq,))
    return None


class PreemptState(Struct, frozen=True):
    """Name of the pod and its PriorityClass, and what the pod requests."""

    name: OwnName
    node: NodeName
    cpu: CpuQuantity
    by: Literal["scheduler", "kubelet"]
    priority: int
    namespace: Namespace
    image: Image


def _pods_path(state: PreemptState) -> str:
    return resource_path("v1", "pods", state.namespace)


def _pod(state: PreemptState) -> dict[str, Any]:
    by_kubelet = state.by == "kubelet"
    this_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [state.node]}]}
    container = {
        "name": "c",
        "image": state.image,
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": state.cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": state.name},
        "spec": {
            "priorityClassName": _CRITICAL[0] if by_kubelet else state.name,
            **({"nodeName": state.node} if by_kubelet else {}),
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [this_node]}}
            },
            "containers": [container],
        },
    }


def _needs(params: Params) -> Needs:
    pods = permissions_on("pods", "create", "get", "delete", namespace=params.namespace)
    classes = permissions_on("priorityclasses", "create", "get", "delete", group="scheduling.k8s.io")
    return Needs(
        objects=(*READ_NODE, pods_path(NODE_NAME)),
        permissions=pods if params.by == "kubelet" else (*classes, *pods),
    )


def _prepare(target: Target, params: Params) -> PreemptState:
    pods = (target.objects.get(pods_path(target.node)) or {}).get("items") or ()
    try:
        allocatable = millicores(field(node_object(target), "/status/allocatable/cpu"))
        priority = _CRITICAL[1] if params.by == "kubelet" else params.priority
        cpu = millicores(params.cpu) if params.cpu else _min_preemption_cpu(allocatable, pods, priority)
    except ValueError as error:
        raise Unsupported(f"{target.node}: no pod would be preempted: {error}", hint="give cpu") from error
    if cpu > allocatable:
        raise Unsupported(f"{target.node} has {allocatable:g}m of CPU for all pods", hint="request less cpu")
    return PreemptState(
        f"{_PREFIX}{target.tag}",
        target.node,
        f"{cpu:.0f}m",
        params.by,
        params.priority,
        params.namespace,
        params.image,
    )


def _program(state: PreemptState) -> Program:
    kinds = [_pods_path(state)]
    commands = [KubeCommand("POST", _pods_path(state), _pod(state), accept=_CREATE_STATUSES)]
    if state.by == "scheduler":
        priority_class = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": state.name},
            "value": state.priority,
        }
        kinds.append(_CLASSES)
        commands.insert(0, KubeCommand("POST", _CLASSES, priority_class, accept=_CREATE_STATUSES))
    steps, proof = [], []
    for path in (f"{kind}/{state.name}" for kind in kinds):
        proof.append(FactCheck(object_fact(path, "/metadata/name"), None))
        delete = KubeCommand("DELETE", path, {"gracePeriodSeconds": 0}, accept=_DELETE_STATUSES)
        steps.append(UndoStep(delete, unless=proof[-1]))
    return Program(tuple(commands), Undo(tuple(steps), tuple(proof)))


ACTION = Action(
    name="preempt",
    summary="create a pod of high priority for which the scheduler, or the kubelet, must preempt others on the node",
    description="""
    Creates a PriorityClass and a pod with this class that fits only this node, or a critical pod that the kubelet
    must admit. Undo deletes them. Controllers replace the preempted pods; pods without a controller are lost.
    """,
    example="{name: preempt, action: preempt, target: victim}",
    params=Params,
    state=PreemptState,
    undo_kind=UndoKind.RESTORES,
    on_host=False,
    proofs=(Proof("preempted", _check_preempted), Proof("unfit", _check_unfit)),
    needs=_needs,
    prepare=_prepare,
    program=_program,
)
