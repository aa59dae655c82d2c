"""A pod that is more important than others and needs their room."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from chaos.actions._nodes import node_object
from chaos.model.action import (
    Action,
    FactCheck,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoState,
    UndoStep,
)
from chaos.model.api_fact import field, node_path, object_fact, pods_path
from chaos.model.command import Command, KubeCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import no_proof
from chaos.model.experiment import Model
from chaos.model.kube import Pod, pod_condition
from chaos.model.permission import Permission, permissions_on
from chaos.model.timeline import Timeline

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CREATE_STATUSES = (201, 409)  # 409: a request that was lost had arrived
_DELETE_STATUSES = (200, 202, 404)
_CRITICAL = "system-node-critical", 2_000_001_000  # a class that every cluster has
_CPU = re.compile(r"(\d+(?:\.\d+)?)(m?)", re.ASCII)


class Params(Model):
    """How much room, and how much more important than others."""

    cpu: str | None = Field(
        None, pattern=r"^\d+(\.\d+)?m?$", description="what the pod asks for; 1m more than what is free if left out"
    )
    by: Literal["scheduler", "kubelet"] = Field(
        "scheduler", description="who ends the others; kubelet: for a critical pod, bound to the node when it is made"
    )
    priority: int = Field(
        1000, ge=1, le=1_000_000_000, description="by the scheduler: pods of a lower priority are preempted"
    )
    namespace: str = Field("default", description="where the pod is created")
    image: str = "busybox:1.36"


def millicores(quantity: Any) -> float:
    """Of a CPU quantity. Raises ValueError."""
    found = _CPU.fullmatch(str(quantity))
    if found is None:
        raise ValueError(f"{quantity!r} is no quantity of CPU")
    return float(found[1]) * (1 if found[2] else 1000)


def _cpu_request(pod: Any) -> float:
    def cpu(containers: Any) -> list[float]:
        return [millicores(field(c, "/resources/requests/cpu") or 0) for c in containers or ()]

    return max(sum(cpu(field(pod, "/spec/containers"))), *cpu(field(pod, "/spec/initContainers")), 0.0)


def _min_preemption_cpu(allocatable: float, pods: Iterable[Any], priority: int) -> float:
    """1m more than what is free. Raises ValueError where no pod of a lower priority would make room."""
    alive = [pod for pod in pods if field(pod, "/status/phase") not in ("Succeeded", "Failed")]
    free = allocatable - sum(_cpu_request(pod) for pod in alive)
    lower = sum(_cpu_request(pod) for pod in alive if (field(pod, "/spec/priority") or 0) < priority)
    if lower < 1:
        raise ValueError(f"no pod of a priority below {priority} asks for CPU there")
    return free + 1


def _is_preempted(pod: Pod, by: str) -> bool:
    """kubernetes/pkg/scheduler/framework/preemption/executor.go, pkg/kubelet/preemption/preemption.go."""
    target = pod_condition(pod, "DisruptionTarget")
    if by == "kubelet":  # its other ends have the same reason in the condition
        return pod.status is not None and pod.status.reason == "Preempting"
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def _check_preempted(timeline: Timeline, step: StepRun) -> ProofResult:
    by = step.params.get("by", "scheduler")
    for pods in timeline.pods.values():
        for version in pods:
            pod = version.object
            here = bool(pod.spec and pod.spec.node_name == step.node)
            if here and _is_preempted(pod, by) and step.begin <= version.t <= step.until:
                return ProofResult(ProofStatus.PROVEN, f"the {by} preempted {pod.metadata.name}", (version.seq,))
    return no_proof(f"no pod of {step.node} was seen to be preempted")


class Preempt(Action):
    """A PriorityClass and a pod of it, only for this node; or a critical pod that the kubelet must admit. Undo removes
    them; the preempted pods are replaced by their controllers, and bare ones are gone.
    """

    name = "preempt"
    summary = "create a more important pod for which the scheduler, or the kubelet, must end others on the node"
    example = "{name: preempt, action: preempt, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("preempted", _check_preempted),)
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node), pods_path(node))

    def permissions(self, params: Any) -> tuple[Permission, ...]:
        pods = permissions_on("pods", "create", "get", "delete", namespace=params.namespace)
        if params.by == "kubelet":
            return pods
        return (*permissions_on("priorityclasses", "create", "get", "delete", group="scheduling.k8s.io"), *pods)

    def prepare(self, target: Target, params: Params) -> UndoState:
        pods = (target.objects.get(pods_path(target.node)) or {}).get("items") or ()
        try:
            allocatable = millicores(field(node_object(target), "/status/allocatable/cpu"))
            priority = _CRITICAL[1] if params.by == "kubelet" else params.priority
            cpu = millicores(params.cpu) if params.cpu else _min_preemption_cpu(allocatable, pods, priority)
        except ValueError as error:
            raise Unsupported(f"{target.node}: nobody would be preempted: {error}", hint="give cpu") from error
        if cpu > allocatable:
            raise Unsupported(f"{target.node} has {allocatable:g}m of CPU for all pods", hint="ask for less cpu")
        name = f"nodefall-{target.tag}"
        return {"name": name, "node": target.node, "cpu": f"{cpu:.0f}m", **params.model_dump(exclude={"cpu"})}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        pod = KubeCommand("POST", _pods_path(memory), _pod(memory), accept=_CREATE_STATUSES)
        if memory["by"] == "kubelet":
            return (pod,)
        named = {"name": memory["name"]}
        class_ = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": named}
        return (KubeCommand("POST", _CLASSES, {**class_, "value": memory["priority"]}, accept=_CREATE_STATUSES), pod)

    def undo(self, memory: UndoState) -> Undo:
        steps, proof = [], []
        for kind in (_pods_path(memory), *(() if memory["by"] == "kubelet" else (_CLASSES,))):
            path = f"{kind}/{memory['name']}"
            proof.append(FactCheck(object_fact(path, "/metadata/name"), None))
            delete = KubeCommand("DELETE", path, {"gracePeriodSeconds": 0}, accept=_DELETE_STATUSES)
            steps.append(UndoStep(delete, unless=proof[-1]))
        return Undo(tuple(steps), tuple(proof))


def _pods_path(memory: UndoState) -> str:
    return f"/api/v1/namespaces/{memory['namespace']}/pods"


def _pod(memory: UndoState) -> dict[str, Any]:
    kubelets = memory["by"] == "kubelet"
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [memory["node"]]}]}
    container = {
        "name": "c",
        "image": memory["image"],
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": memory["cpu"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": memory["name"]},
        "spec": {
            "priorityClassName": _CRITICAL[0] if kubelets else memory["name"],
            **({"nodeName": memory["node"]} if kubelets else {}),
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
            },
            "containers": [container],
        },
    }


ACTION = Preempt()
