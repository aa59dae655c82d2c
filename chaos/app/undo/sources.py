"""What is known of a run that is to be undone: by its files, which may be damaged, or the journal in the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from chaos.app.wiring.connect import connect_cluster
from chaos.cluster import journal_mirror
from chaos.cluster.replica import PendingRun
from chaos.cluster.workload import WorkloadState, removal
from chaos.core.errors import Refused, UsageError, bad_input
from chaos.core.files import read_regular
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan, PlannedStep
from chaos.core.store import run_directory
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import RECORD_ERRORS, PendingUndo
from chaos.core.store.run_directory import PLAN, RUN, RunInfo, load
from chaos.engine.connection import cluster_identity, lock_namespace
from chaos.engine.planning.identity import identity_checks
from chaos.engine.session import WORKLOAD


def load_plan(directory: Path) -> Plan | None:
    """The run's plan, None if it is missing or damaged."""
    try:
        return msgspec.json.decode(read_regular(directory / PLAN), type=Plan)
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


def pending_runs(inventory: Inventory) -> list[PendingRun]:
    """The recorded runs of a cluster. Raises NodefallError."""
    with connect_cluster(inventory) as connection:
        return journal_mirror.pending_runs(connection.kube, lock_namespace(connection))


def import_run(run: str, inventory: Inventory, reports: Path) -> Path:
    """A run directory for a journal in the cluster, whose entries :func:`finish_undo` adds.

    Raises UsageError if there is none.
    """
    with connect_cluster(inventory) as connection:
        runs = journal_mirror.pending_runs(connection.kube, lock_namespace(connection))
        pending = next((each for each in runs if each.identity.run == run), None)
        uid, cluster = connection.uid, cluster_identity(connection)
    if pending is None:
        raise UsageError(
            f"unknown run {run!r}: it is neither in {reports} nor on this cluster",
            hint="list runs with nodefall undo --list --inventory FILE",
        )
    if pending.error:
        hint = f"undo the steps of ConfigMap {pending.name} by hand, then delete it"
        raise bad_input(f"the journal of {run} in the cluster", pending.error, hint)
    stored = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    info = run_directory.RunInfo(
        run, pending.identity.experiment, pending.identity.started, stored, cluster_uid=uid, cluster=cluster
    )
    return create_directory(info, reports)


def create_directory(info: run_directory.RunInfo, reports: Path) -> Path:
    """A run directory with an empty journal, of which the cluster has a copy. Raises Refused."""
    directory = run_directory.create(reports, info.experiment, info.started)
    try:
        run_directory.save(directory, run_directory.RUN, info)
    except OSError as error:
        hint = "choose another disk with --reports DIRECTORY; nothing is done without a journal"
        raise Refused(f"cannot write {directory / run_directory.RUN}: {error.strerror}", hint=hint) from error
    with Journal(directory) as journal:
        journal.record_replica(True)
    return directory
