"""Runs every preflight check of a cluster for a set of experiments. No side effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import Struct

from chaos.app.undo.pending import with_pending_undo
from chaos.app.wiring.lock import held_lock
from chaos.cluster.cluster_state import cluster_view, missing_permissions
from chaos.core.cluster_view import ClusterView
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.labels import RUN_LABEL
from chaos.core.permission import Permission
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.engine.load import LoadedExperiment, required_permissions
from chaos.engine.local_identity import own_node
from chaos.engine.observations import ClusterObservations, ExperimentNeeds
from chaos.engine.observers import source_checks
from chaos.engine.planning.targets import candidates, planned_targets, select_nodes
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.collect import CHECKS, PreflightCase, collect
from chaos.engine.preflight.findings import CLUSTER, Finding, overall_exit, run_checks

VERSION = 1
_EMPTY_VIEW = ClusterView("", {})


class Report(Struct, frozen=True, rename="camel"):
    """The output of ``nodefall doctor --json``.

    ``possible``: by experiment, the nodes on which no check refuses it. ``impossible``: experiments that are refused on
    all nodes, or do not match the cluster. ``exit_code``: 0 if nothing is refused, 4 if every experiment is refused on
    all nodes, else 2.
    """

    version: int
    server: str
    cluster_uid: str = msgspec.field(default="", name="clusterUID")
    kubernetes: str = ""
    simulated: bool = False
    hosts: tuple[str, ...] = ()
    possible: dict[str, tuple[str, ...]] = {}
    impossible: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class DoctorRequest:
    """``bundled``: the experiments are those of the distribution, not of the user.

    ``reports``: runs below it may have a pending undo. ``on_host_inspected`` is called with the name of each host.
    """

    connection: ClusterConnection
    reports: Path = Path("reports")
    bundled: bool = False
    on_host_inspected: Callable[[str], object] = lambda _: None


def check_names(loaded: Sequence[LoadedExperiment]) -> None:
    """Raises UsageError if two experiments have the same name, by which findings refer to them."""
    names = [each.experiment.metadata.name for each in loaded]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two experiments have the name {duplicates[0]}", hint="give each experiment once")


def diagnose(loaded: Sequence[LoadedExperiment], request: DoctorRequest) -> Report:
    """Run all checks. Raises NodefallError if the cluster does not respond. Names must be unique (check_names)."""
    connection = request.connection
    missing = _missing_permissions(loaded, request)
    view = _view(connection, any(missing))
    cases = [_case(each, permissions, view, request) for each, permissions in zip(loaded, missing, strict=True)]
    data = collect(cases, connection, view, on_host_inspected=request.on_host_inspected)
    observations = with_pending_undo(_with_lock(data.observations, connection), connection, request.reports)
    found = run_checks(CHECKS, observations, bundled=request.bundled)
    runnable = {needs.name: _runnable_nodes(needs, found) for needs in observations.experiments}
    cluster = connection.inventory.cluster
    return Report(
        version=VERSION,
        server=connection.kube.server,
        cluster_uid=connection.uid,
        kubernetes=connection.version,
        simulated=bool(cluster and cluster.simulated),
        hosts=tuple(sorted(observations.hosts)),
        possible={name: nodes for name, nodes in runnable.items() if nodes is not None},
        impossible=tuple(name for name, nodes in runnable.items() if nodes is None),
        findings=tuple(found),
        exit_code=int(overall_exit(found, observations.experiments)),
    )


def _missing_permissions(loaded: Sequence[LoadedExperiment], request: DoctorRequest) -> list[tuple[Permission, ...]]:
    """The missing permissions of each experiment; each permission is reviewed once."""
    needed = [required_permissions(each, request.connection.inventory) for each in loaded]
    every = sorted({permission for permissions in needed for permission in permissions})
    missing = set(missing_permissions(request.connection.kube, every))
    return [tuple(permission for permission in permissions if permission in missing) for permissions in needed]


def _view(connection: ClusterConnection, missing: bool) -> ClusterView:
    try:
        return cluster_view(connection.kube, connection.uid)
    except Refused:
        if not missing:
            raise
        return replace(_EMPTY_VIEW, uid=connection.uid)  # the check of permissions reports what is missing


def _case(
    loaded: LoadedExperiment, missing: tuple[Permission, ...], view: ClusterView, request: DoctorRequest
) -> PreflightCase:
    connection = request.connection
    targets = planned_targets(loaded.experiment)
    own = own_node(view)
    nodes = {name: tuple(candidates(spec, view, connection.inventory, own)) for name, spec in targets.items()}
    case = PreflightCase(loaded, nodes, missing_permissions=missing, source_errors=_source_errors(loaded, request))
    try:
        select_nodes(targets, view, connection.inventory, seed=0, own_node=own)
    except Refused as refused:
        return replace(case, mismatch=(refused.message, refused.hint))
    return case


def _source_errors(loaded: LoadedExperiment, request: DoctorRequest) -> dict[str, tuple[str, str] | tuple[()]]:
    """Error and hint of each metric source, () if it responds."""
    errors: dict[str, tuple[str, str] | tuple[()]] = {}
    for name, check in source_checks(loaded.experiment, request.connection).items():
        try:
            check()
        except NodefallError as error:
            errors[name] = error.message, error.hint
        else:
            errors[name] = ()
    return errors


def _with_lock(observations: ClusterObservations, connection: ClusterConnection) -> ClusterObservations:
    """``observations`` with the lock's holder and its run, as far as permissions allow to read it."""
    list_errors, holder, run = dict(observations.list_errors), "", ""
    try:
        if record := held_lock(connection.kube, lock_namespace(connection)):
            holder, run = record.holder, record.annotations.get(RUN_LABEL, "")
    except NodefallError as error:
        list_errors["leases"] = error.message
    return replace(observations, lock_holder=holder, lock_run=run, list_errors=list_errors)


def _runnable_nodes(needs: ExperimentNeeds, found: Sequence[Finding]) -> tuple[str, ...] | None:
    """The nodes on which no finding refuses the experiment; None if it cannot be run."""
    concerned = (finding for finding in found if needs.name in finding.experiments)
    refused = {f.subject for f in concerned if f.severity is Severity.REFUSAL or f.is_incompatible}
    runnable = tuple(node for node in needs.nodes if f"host {node}" not in refused)
    return None if CLUSTER in refused or (needs.nodes and not runnable) else runnable
