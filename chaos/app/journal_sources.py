"""What a run may have to undo when its journal is damaged: the intact lines, and all that was planned."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from chaos.engine.run import WORKLOAD
from chaos.kube.workload import WorkloadState, removal
from chaos.model.legacy import decode_plan
from chaos.model.plan import Plan, PlannedStep
from chaos.plan.identity import identity_checks
from chaos.store.journal_format import PendingUndo
from chaos.store.run_directory import PLAN


def load_plan(directory: Path) -> Plan | None:
    """The run's plan, None if it is missing or damaged."""
    try:
        return decode_plan((directory / PLAN).read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def merge_entries(*sources: Iterable[PendingUndo]) -> list[PendingUndo]:
    """The operations of all sources; each step on a node once, from the first source that has it."""
    found: dict[tuple[str, str], PendingUndo] = {}
    for source in sources:
        for entry in source:
            found.setdefault((entry.step, entry.node), entry)
    return list(found.values())


def planned_entries(plan: Plan) -> list[PendingUndo]:
    """Every operation of a plan that has an undo, as if it had begun when the plan was made.

    The manifests of the workload are not in the plan: finalizers of its objects are not removed.
    """
    state = WorkloadState(priority_classes=True)
    workload = PendingUndo(
        *(0, WORKLOAD, WORKLOAD, plan.namespace, removal(state, plan.namespace, plan.run), plan.created),
        state=msgspec.to_builtins(state),
    )
    return [
        *([workload] if plan.namespace else []),
        *(_planned_entry(plan, planned) for planned in plan.steps if planned.undo.proof),
    ]


def _planned_entry(plan: Plan, planned: PlannedStep) -> PendingUndo:
    identity = identity_checks(plan.facts.get(planned.node, {}), planned.undo)
    return PendingUndo(
        *(0, planned.step, planned.action, planned.node, planned.undo, plan.created, identity, planned.undo_state)
    )
