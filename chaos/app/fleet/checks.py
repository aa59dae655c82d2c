"""Checks all clusters of a fleet before anything begins: the right ones, different ones, and the rights on them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from chaos.app.fleet.loading import LoadedCluster, LoadedFleet
from chaos.app.fleet.member import Member
from chaos.core.errors import Exit, NodefallError, Refused
from chaos.core.threads import ContextPool
from chaos.gameday.fleet_state import fleet_day_name

_MAX_THREADS = 16


@dataclass(frozen=True, slots=True)
class _Checked:
    """``identity``: what distinguishes the cluster; "" if it could not be checked, because of ``error``."""

    name: str
    identity: str = ""
    server: str = ""
    error: NodefallError | None = None


def check_members(fleet: LoadedFleet, note: Callable[[str], object]) -> dict[str, str]:
    """The servers of the clusters, by name. A cluster that cannot be reached is only noted; it may be, later.

    Raises Refused for the wrong cluster, one that is listed twice, missing rights, or a home that cannot be reached.
    """
    with ContextPool(_MAX_THREADS) as pool:
        checked = list(pool.map(lambda cluster: _check(fleet, cluster), fleet.clusters))
    problems = [f"{each.name}: {each.error.message}" for each in checked if each.error and _is_final(each, fleet)]
    names: dict[str, str] = {}
    problems += [
        f"{each.name}: it is the same cluster as {names[each.identity]}"
        for each in checked
        if each.identity and names.setdefault(each.identity, each.name) != each.name
    ]
    if problems:
        raise Refused("the fleet cannot begin:\n  " + "\n  ".join(problems), hint="nothing was changed")
    for each in checked:
        if each.error:
            note(f"{each.name} cannot be reached: {each.error.message}")
    return {each.name: each.server for each in checked if each.server}


def _check(fleet: LoadedFleet, cluster: LoadedCluster) -> _Checked:
    lease = fleet_day_name(fleet.document.metadata.name) if cluster.name == fleet.home.name else ""
    with closing(Member(fleet, cluster)) as member:
        try:
            identity = member.check(lease)
            return _Checked(cluster.name, identity, member.connection.kube.server)
        except NodefallError as error:
            return _Checked(cluster.name, error=error)


def _is_final(checked: _Checked, fleet: LoadedFleet) -> bool:
    """Whether waiting cannot help."""
    is_unreachable = checked.error is not None and checked.error.code is Exit.INCONCLUSIVE
    return not is_unreachable or checked.name == fleet.home.name
