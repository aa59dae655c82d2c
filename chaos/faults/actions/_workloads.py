"""Parts shared by actions on workloads and budgets: the object, its previous fields, and proofs from the timeline."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.core.action import FactCheck, ProofResult, ProofStatus, StepRun, Target, Undo, UndoStep
from chaos.core.api_fact import field, object_fact
from chaos.core.api_path import resource_path
from chaos.core.command import MERGE_PATCH, KubeCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof, returned_entries
from chaos.core.field_types import Model
from chaos.core.kube import Workload
from chaos.core.kube_names import Namespace, ObjectName
from chaos.core.permission import Permission, permissions_on
from chaos.core.timeline import Timeline, Version
from chaos.faults.actions._pods import explicit_namespace, namespace_of

PreviousFields = dict[str, Any] | None  # by JSON pointer; None for an object that undo leaves to its namespace


class ObjectParams(Model):
    """One object. Undo does not restore the run's own workload, because its namespace is deleted after the run."""

    namespace: Namespace = Field(description="A namespace, or workload for the namespace of the experiment's workload.")
    name: ObjectName


class WorkloadParams(ObjectParams):
    kind: Literal["deployment", "statefulset", "daemonset"]


def plural(kind: Any) -> str:
    """The resource name of a kind, in the plural."""
    return f"{kind}s"


def workload_path(params: Any, namespace: str) -> str:
    """API path of the workload; ``namespace`` is the namespace of the run's workload."""
    inside = namespace if params.namespace == "workload" else params.namespace
    return resource_path("apps/v1", plural(params.kind), inside, params.name)


def workload_permissions(params: Any, resource: str, subresource: str = "") -> tuple[Permission, ...]:
    """Permissions to read the object, to patch it or its subresource, and to restore it unless the run created it."""
    inside = explicit_namespace(params.namespace)
    patched = {resource + subresource, *([resource] if inside else [])}
    reads = permissions_on(resource, "get", group="apps", namespace=inside)
    return (*reads, *(Permission("apps", name, "patch", inside) for name in sorted(patched)))


def capture_fields(target: Target, params: ObjectParams, path: str, pointers: tuple[str, ...]) -> PreviousFields:
    """The fields of the object by pointer; None for an object of the run's own workload. Raises Unsupported."""
    namespace_of(target, params.namespace)
    if params.namespace == "workload":
        return None
    found = target.objects.get(path)
    if found is None:
        raise Unsupported(f"there is no {path}", hint="check namespace and name")
    return {pointer: field(found, pointer) for pointer in pointers}


def restore_patch(path: str, previous: PreviousFields, patch: Any) -> Undo:
    """The undo that sends ``patch`` until all fields have their previous values."""
    if previous is None:
        return Undo()
    command = KubeCommand("PATCH", path, patch, MERGE_PATCH)
    checks = tuple(FactCheck(object_fact(path, pointer), value) for pointer, value in previous.items())
    return Undo(tuple(UndoStep(command, unless=check) for check in checks), checks)


def versions_after(timeline: Timeline, step: StepRun) -> tuple[Version[Workload] | None, list[Version[Workload]]]:
    """The last version of the step's object before the step, and the versions after it began."""
    params = step.params
    namespace = timeline.meta.get("workload") if params.get("namespace") == "workload" else params.get("namespace")
    history = timeline.workloads.get((plural(params.get("kind")), str(namespace), str(params.get("name"))))
    if history is None:
        return None, []
    before = [v for v in history if v.t < step.begin]
    return before[-1] if before else None, [v for v in history if step.begin <= v.t <= step.until and not v.is_deleted]


def check_stored(timeline: Timeline, step: StepRun, pointer: str, wanted: Any, what: str) -> ProofResult:
    """Proven by the object in the API server's response to the step's patch."""
    for entry, record in returned_entries(timeline, step):
        if pointer in record.evidence and record.evidence[pointer] == wanted:
            return ProofResult(ProofStatus.PROVEN, f"the API server stored {what}", (entry.seq,))
    return no_proof(f"the API server was not seen to store {what}")
