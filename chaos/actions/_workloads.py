"""What the actions on workloads and budgets share: which object, as it was before, and what the timeline shows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._pods import explicit_namespace, namespace_of
from chaos.model.action import FactCheck, ProofResult, ProofStatus, StepRun, Target, Undo, UndoState, UndoStep
from chaos.model.api_fact import field, object_fact
from chaos.model.command import MERGE_PATCH, KubeCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import no_proof, returned_entries
from chaos.model.experiment import Model
from chaos.model.kube import Workload
from chaos.model.permission import Permission, permissions_on
from chaos.model.timeline import Timeline, Version


class ObjectParams(Model):
    """One object; those of the experiment's own workload go with its namespace, so undo leaves them as they are."""

    namespace: str = Field(description="a namespace, or workload: the one of the experiment's workload")
    name: str = Field(min_length=1)


class WorkloadParams(ObjectParams):
    kind: Literal["deployment", "statefulset", "daemonset"]


def plural(kind: Any) -> str:
    return f"{kind}s"


def workload_path(params: Any, namespace: str) -> str:
    """``namespace``: of the run's workload."""
    inside = namespace if params.namespace == "workload" else params.namespace
    return f"/apis/apps/v1/namespaces/{inside}/{plural(params.kind)}/{params.name}"


def workload_permissions(params: Any, resource: str, subresource: str = "") -> tuple[Permission, ...]:
    """To read it, to patch it or its subresource, and to put it back; that of the run itself is not put back."""
    inside = explicit_namespace(params.namespace)
    patched = {resource + subresource, *([resource] if inside else [])}
    reads = permissions_on(resource, "get", group="apps", namespace=inside)
    return (*reads, *(Permission("apps", name, "patch", inside) for name in sorted(patched)))


def capture_fields(target: Target, params: ObjectParams, path: str, pointers: tuple[str, ...]) -> dict[str, Any] | None:
    """Fields of the object by pointer; None for one of the run's own workload. Raises Unsupported."""
    namespace_of(target, params.namespace)
    if params.namespace == "workload":
        return None
    found = target.objects.get(path)
    if found is None:
        raise Unsupported(f"there is no {path}", hint="see namespace and name")
    return {pointer: field(found, pointer) for pointer in pointers}


def restore_patch(memory: UndoState, patch: Any) -> Undo:
    """``patch`` makes the fields in memory's ``before`` what they were."""
    path, before = memory["path"], memory["before"]
    if before is None:
        return Undo()
    checks = tuple(FactCheck(object_fact(path, pointer), value) for pointer, value in before.items())
    return Undo(
        tuple(UndoStep(KubeCommand("PATCH", path, patch, MERGE_PATCH), unless=check) for check in checks), checks
    )


def versions_after(timeline: Timeline, step: StepRun) -> tuple[Version[Workload] | None, list[Version[Workload]]]:
    """The last version from before the step, and those from then on."""
    params = step.params
    namespace = timeline.meta.get("workload") if params.get("namespace") == "workload" else params.get("namespace")
    history = timeline.workloads.get((plural(params.get("kind")), str(namespace), str(params.get("name"))))
    if history is None:
        return None, []
    before = [v for v in history if v.t < step.begin]
    return before[-1] if before else None, [v for v in history if step.begin <= v.t <= step.until and not v.is_deleted]


def check_stored(timeline: Timeline, step: StepRun, pointer: str, wanted: Any, what: str) -> ProofResult:
    """Proven by the object as the API server answered that it stored it."""
    for entry, record in returned_entries(timeline, step):
        if pointer in record.evidence and record.evidence[pointer] == wanted:
            return ProofResult(ProofStatus.PROVEN, f"the API server stored {what}", (entry.seq,))
    return no_proof(f"the API server was not seen to store {what}")
