"""Every check of a cluster, for the experiments that are to be run there. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import msgspec
from msgspec import Struct

from chaos.doctor.check import Severity
from chaos.doctor.findings import CLUSTER, Finding, examine, possible
from chaos.doctor.signs import Signs, Use
from chaos.engine.clock import SystemClock
from chaos.engine.gather import cluster_view
from chaos.engine.ledger import debts
from chaos.engine.lock import read_lock
from chaos.engine.permissions import missing
from chaos.model.catalogue import Catalogue
from chaos.model.errors import NodefallError, Refused, UsageError
from chaos.model.right import Right
from chaos.plan.cluster import ClusterView
from chaos.plan.targets import candidates, choose
from chaos.session.diagnosing import CHECKS, Case, look
from chaos.session.eyes import askings
from chaos.session.loading import Loaded, rights_of
from chaos.session.locking import namespace, told
from chaos.session.opening import Opened

VERSION = 1
_NOBODY = ClusterView("", {})


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
class Patient:
    """``shipped``: the experiments are nobody's own choice; ``done`` is told of each host that was looked at."""

    opened: Opened
    catalogue: Catalogue
    shipped: bool = False
    done: Callable[[str], object] = lambda _: None


def check_names(loaded: Sequence[Loaded]) -> None:
    """Raises UsageError where two have the same name: what is said of one could not be told from the other's."""
    names = [each.experiment.metadata.name for each in loaded]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two of the experiments have the name {twice[0]}", hint="give each of them once")


def diagnose(loaded: Sequence[Loaded], patient: Patient) -> Report:
    """Look at everything. Raises NodefallError where the cluster does not answer; see :func:`check_names` too."""
    opened = patient.opened
    lacking = _lacking(loaded, patient)
    view = _view(opened, any(lacking))
    cases = [_case(each, rights, view, patient) for each, rights in zip(loaded, lacking, strict=True)]
    signs = _with_debts(look(cases, opened, patient.catalogue, view, done=patient.done).signs, opened)
    found = examine(CHECKS, signs, shipped=patient.shipped)
    where = {use.name: _where(use, found) for use in signs.uses}
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
        exit_code=int(possible(found, signs.uses)),
    )


def _lacking(loaded: Sequence[Loaded], patient: Patient) -> list[tuple[Right, ...]]:
    """By experiment; each right is asked for once."""
    needed = [rights_of(each, patient.catalogue, patient.opened.inventory.cluster) for each in loaded]
    gone = set(missing(patient.opened.kube, sorted({right for rights in needed for right in rights})))
    return [tuple(right for right in rights if right in gone) for rights in needed]


def _view(opened: Opened, lacking: bool) -> ClusterView:
    try:
        return cluster_view(opened.kube, opened.uid)
    except Refused:
        if not lacking:
            raise
        return replace(_NOBODY, uid=opened.uid)  # the missing right is told


def _case(loaded: Loaded, lacking: tuple[Right, ...], view: ClusterView, patient: Patient) -> Case:
    opened = patient.opened
    targets = loaded.experiment.spec.targets
    nodes = {name: tuple(candidates(spec, view, opened.inventory)) for name, spec in targets.items()}
    case = Case(loaded, nodes, lacking=lacking, unanswered=_unanswered(loaded, patient))
    try:
        choose(targets, view, opened.inventory, seed=0)
    except Refused as refused:
        return replace(case, unfit=(refused.message, refused.hint))
    return case


def _unanswered(loaded: Loaded, patient: Patient) -> dict[str, tuple[str, str] | tuple[()]]:
    """Why those who are asked do not answer, () if they do."""
    why: dict[str, tuple[str, str] | tuple[()]] = {}
    for name, ask in askings(loaded.experiment, patient.catalogue, patient.opened).items():
        try:
            ask()
        except NodefallError as error:
            why[name] = error.message, error.hint
        else:
            why[name] = ()
    return why


def _with_debts(signs: Signs, opened: Opened) -> Signs:
    """With who is at work, and what is owed; that we may not look is told by the check of rights."""
    place, unlisted = namespace(opened), dict(signs.unlisted)
    holder, owed = "", {}
    with closing(SystemClock()) as clock:
        try:
            record = read_lock(opened.kube, place)
            holder = record.holder if record and record.holder and record.seems_alive(clock.now()) else ""
        except NodefallError as error:
            unlisted["leases"] = error.message
    try:
        owed = {debt.debtor.run: told(debt) for debt in debts(opened.kube, place) if debt.open}
    except NodefallError as error:
        unlisted["configmaps"] = error.message
    return replace(signs, holder=holder, debts=owed, unlisted=unlisted)


def _where(use: Use, found: Sequence[Finding]) -> tuple[str, ...] | None:
    """The nodes on which nothing stands against it; None where it cannot be done."""
    mine = [f for f in found if use.name in f.experiments and (f.severity is Severity.REFUSAL or f.unfit)]
    against = {finding.subject for finding in mine}
    left = tuple(node for node in use.nodes if f"host {node}" not in against)
    return None if CLUSTER in against or (use.nodes and not left) else left
