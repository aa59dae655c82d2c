"""What is known of a run whose files are damaged: from its plan, its identity and all that it may have to undo."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from chaos.cluster.workload import WorkloadState, removal
from chaos.core.errors import UsageError
from chaos.core.legacy import decode_plan
from chaos.core.plan import Plan, PlannedStep
from chaos.core.store.journal_format import RECORD_ERRORS, PendingUndo
from chaos.core.store.run_directory import PLAN, RUN, RunInfo, load
from chaos.engine.planning.identity import identity_checks
from chaos.engine.session import WORKLOAD


def load_plan(directory: Path) -> Plan | None:
    """The run's plan, None if it is missing or damaged."""
    try:
        return decode_plan((directory / PLAN).read_bytes())
    except (OSError, *RECORD_ERRORS):
        return None


def load_info(directory: Path, *, has_inventory: bool) -> RunInfo:
    """The run's identity; of a damaged run.json from the plan, if an inventory is given. Raises UsageError."""
    try:
        return load(directory, RUN, RunInfo)
    except UsageError as error:
        plan = load_plan(directory)
        if plan is None:
            listed = "list the journals in the cluster with nodefall undo --list --inventory FILE"
            raise UsageError(error.message, hint=listed) from error
        if not has_inventory:
            raise UsageError(error.message, hint="add --inventory FILE, with the inventory of the run") from error
        holder = "an unknown process"  # not empty: the directory is no copy, as a copy has no plan
        return RunInfo(plan.run, plan.experiment, plan.created, {}, None, plan.cluster_uid, holder)


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
