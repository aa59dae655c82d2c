"""Every check of a cluster, for the experiments that are to be run there. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import msgspec
from msgspec import Struct

from chaos.app.cluster_lock import describe_pending, lock_namespace
from chaos.app.connect import ClusterConnection
from chaos.app.load import LoadedExperiment, required_permissions
from chaos.app.observer_setup import source_checks
from chaos.app.preflight_data import CHECKS, PreflightCase, collect
from chaos.clock import SystemClock
from chaos.kube.cluster_snapshot import cluster_view
from chaos.kube.journal_mirror import pending_runs
from chaos.kube.lease_lock import read_lock
from chaos.kube.permissions import missing_permissions
from chaos.model.errors import NodefallError, Refused, UsageError
from chaos.model.permission import Permission
from chaos.model.registry import PluginRegistry
from chaos.plan.cluster import ClusterView
from chaos.plan.targets import candidates, select_nodes
from chaos.preflight.check import Severity
from chaos.preflight.findings import CLUSTER, Finding, overall_exit, run_checks
from chaos.preflight.observations import ClusterObservations, ExperimentNeeds

VERSION = 1
_EMPTY_VIEW = ClusterView("", {})


class Report(Struct, frozen=True, rename="camel"):
    """What ``nodefall doctor --json`` prints; ``possible`` lists by experiment the nodes on which nothing refuses it,
    ``impossible`` those that are refused on all of them or do not fit the cluster.

    ``exit_code``: 0 no experiment is refused anywhere, 4 each of them everywhere, else 2.
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
    """``shipped``: the experiments are nobody's own choice; ``done`` is told of each host that was looked at."""

    connection: ClusterConnection
    registry: PluginRegistry
    bundled: bool = False
    on_host_inspected: Callable[[str], object] = lambda _: None


def check_names(loaded: Sequence[LoadedExperiment]) -> None:
    """Raises UsageError where two have the same name: what is said of one could not be told from the other's."""
    names = [each.experiment.metadata.name for each in loaded]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two of the experiments have the name {twice[0]}", hint="give each of them once")


def diagnose(loaded: Sequence[LoadedExperiment], patient: DoctorRequest) -> Report:
    """Look at everything. Raises NodefallError where the cluster does not answer; see :func:`check_names` too."""
    opened = patient.connection
    lacking = _missing_permissions(loaded, patient)
    view = _view(opened, any(lacking))
    cases = [_case(each, rights, view, patient) for each, rights in zip(loaded, lacking, strict=True)]
    signs = _with_pending_undo(
        collect(cases, opened, patient.registry, view, on_host_inspected=patient.on_host_inspected).observations, opened
    )
    found = run_checks(CHECKS, signs, bundled=patient.bundled)
    where = {use.name: _runnable_nodes(use, found) for use in signs.experiments}
    cluster = opened.inventory.cluster
    return Report(
        version=VERSION,
        server=opened.kube.server,
        cluster_uid=opened.uid,
        kubernetes=opened.version,
        simulated=bool(cluster and cluster.simulated),
        hosts=tuple(sorted(signs.hosts)),
        possible={name: nodes for name, nodes in where.items() if nodes is not None},
        impossible=tuple(name for name, nodes in where.items() if nodes is None),
        findings=tuple(found),
        exit_code=int(overall_exit(found, signs.experiments)),
    )


def _missing_permissions(loaded: Sequence[LoadedExperiment], patient: DoctorRequest) -> list[tuple[Permission, ...]]:
    """By experiment; each right is asked for once."""
    needed = [required_permissions(each, patient.registry, patient.connection.inventory.cluster) for each in loaded]
    gone = set(missing_permissions(patient.connection.kube, sorted({right for rights in needed for right in rights})))
    return [tuple(right for right in rights if right in gone) for rights in needed]


def _view(opened: ClusterConnection, lacking: bool) -> ClusterView:
    try:
        return cluster_view(opened.kube, opened.uid)
    except Refused:
        if not lacking:
            raise
        return replace(_EMPTY_VIEW, uid=opened.uid)  # the missing right is told


def _case(
    loaded: LoadedExperiment, lacking: tuple[Permission, ...], view: ClusterView, patient: DoctorRequest
) -> PreflightCase:
    opened = patient.connection
    targets = loaded.experiment.spec.targets
    nodes = {name: tuple(candidates(spec, view, opened.inventory)) for name, spec in targets.items()}
    case = PreflightCase(loaded, nodes, missing_permissions=lacking, source_errors=_source_errors(loaded, patient))
    try:
        select_nodes(targets, view, opened.inventory, seed=0)
    except Refused as refused:
        return replace(case, mismatch=(refused.message, refused.hint))
    return case


def _source_errors(loaded: LoadedExperiment, patient: DoctorRequest) -> dict[str, tuple[str, str] | tuple[()]]:
    """Why those who are asked do not answer, () if they do."""
    why: dict[str, tuple[str, str] | tuple[()]] = {}
    for name, ask in source_checks(loaded.experiment, patient.registry, patient.connection).items():
        try:
            ask()
        except NodefallError as error:
            why[name] = error.message, error.hint
        else:
            why[name] = ()
    return why


def _with_pending_undo(signs: ClusterObservations, opened: ClusterConnection) -> ClusterObservations:
    """With who is at work, and what is owed; that we may not look is told by the check of rights."""
    place, unlisted = lock_namespace(opened), dict(signs.list_errors)
    holder, owed = "", {}
    with closing(SystemClock()) as clock:
        try:
            record = read_lock(opened.kube, place)
            holder = record.holder if record and record.holder and record.is_recent(clock.now()) else ""
        except NodefallError as error:
            unlisted["leases"] = error.message
    try:
        owed = {
            debt.identity.run: describe_pending(debt) for debt in pending_runs(opened.kube, place) if debt.has_pending
        }
    except NodefallError as error:
        unlisted["configmaps"] = error.message
    return replace(signs, lock_holder=holder, pending_undo=owed, list_errors=unlisted)


def _runnable_nodes(use: ExperimentNeeds, found: Sequence[Finding]) -> tuple[str, ...] | None:
    """The nodes on which nothing stands against it; None where it cannot be done."""
    mine = [f for f in found if use.name in f.experiments and (f.severity is Severity.REFUSAL or f.is_incompatible)]
    against = {finding.subject for finding in mine}
    left = tuple(node for node in use.nodes if f"host {node}" not in against)
    return None if CLUSTER in against or (use.nodes and not left) else left
