"""A workload that is deleted with its pods, whatever their budgets."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import Action, Needs, Program, Proof, ProofResult, ProofStatus, Scope, StepRun, Target, UndoKind
from chaos.core.command import KubeCommand
from chaos.core.evidence import no_proof, returned_entries
from chaos.core.node_mark import WorkloadPath
from chaos.core.permission import permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._pods import explicit_namespace, namespace_of
from chaos.faults.actions._workloads import WorkloadParams, plural, workload_path

_DELETED, _REFUSED = (200, 202, 404), 429


def _check_answered(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the API server's answer, even if it refuses."""
    for entry, record in returned_entries(timeline, step):
        if record.exit in (*_DELETED, _REFUSED):
            what = "refused" if record.exit == _REFUSED else "accepted"
            return ProofResult(ProofStatus.PROVEN, f"the API server {what} its deletion ({record.exit})", (entry.seq,))
    return no_proof("the API server was not seen to answer")


class DeleteState(Struct, frozen=True):
    """The API path of the workload."""

    path: WorkloadPath


def _prepare_delete(target: Target, params: WorkloadParams) -> DeleteState:
    namespace_of(target, params.namespace)
    return DeleteState(workload_path(params, target.namespace))


def _delete(state: DeleteState) -> Program:
    """Delete the workload; the garbage collector deletes its pods, as after kubectl delete."""
    options = {"propagationPolicy": "Background"}
    return Program((KubeCommand("DELETE", state.path, options, accept=(*_DELETED, _REFUSED)),))


def _delete_needs(params: WorkloadParams) -> Needs:
    inside = explicit_namespace(params.namespace)
    return Needs(permissions=permissions_on(plural(params.kind), "delete", group="apps", namespace=inside))


ACTION = Action(
    name="delete-workload",
    summary="delete a Deployment, StatefulSet or DaemonSet, with its pods",
    description="""
    The garbage collector deletes the pods with their grace period. No budget is checked. A refusal is recorded as a
    result.
    """,
    example="{name: delete, action: delete-workload, with: {kind: deployment, namespace: workload, name: web}}",
    params=WorkloadParams,
    state=DeleteState,
    undo_kind=UndoKind.IRREVERSIBLE,
    scope=Scope.CLUSTER,
    on_host=False,
    proofs=(Proof("answered", _check_answered),),
    needs=_delete_needs,
    prepare=_prepare_delete,
    program=_delete,
)
