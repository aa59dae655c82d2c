"""What a recorded action is in the lab. One function an action; what the lab has no means for is refused."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.cluster import Cluster
from chaos.lab.drain import Drain, cordon
from chaos.lab.network import FAMILIES
from chaos.lab.objects import Object
from chaos.lab.replay.recording import Deed, ReplayError
from chaos.lab.spec import seconds
from chaos.lab.store import clone

_Do = Callable[[Cluster, Deed], object]


def check(deeds: list[Deed], nodes: set[str]) -> None:
    """Raises ReplayError for actions that cannot be replayed, all in one text."""
    unknown = sorted({deed.action for deed in deeds} - _DEEDS.keys())
    if unknown:
        raise ReplayError(f"the lab cannot do what was done here: {', '.join(unknown)}")
    for deed in deeds:
        if deed.node and deed.node not in nodes:
            raise ReplayError(f"action {deed.action} on {deed.node}: no such node in the first list")


def do(cluster: Cluster, deed: Deed) -> None:
    """Do it now, on the lab's clock."""
    _DEEDS[deed.action](cluster, deed)


def _prepare(cluster: Cluster, deed: Deed) -> None:
    cluster.machines[deed.node].logind.emit_prepare_for_shutdown(bool(deed.params.get("active", True)))


def _schedule(cluster: Cluster, deed: Deed) -> None:
    delay = deed.params.get("delay") or deed.params.get("in") or deed.params.get("after")
    if not isinstance(delay, str):
        raise ReplayError(f"action {deed.action}: its parameters {deed.params} do not say when")
    cluster.machines[deed.node].logind.schedule(deed.params.get("kind", "poweroff"), cluster.sim.now + seconds(delay))


def _drain(cluster: Cluster, deed: Deed) -> None:
    Drain(cluster, deed.node, seconds(str(deed.params.get("timeout", "0"))), force=True)


def _patch(cluster: Cluster, deed: Deed) -> None:
    """Only what a budget allows is changed: params {object: "poddisruptionbudget NS/NAME", minAvailable: N}."""
    kind, _, where = str(deed.params.get("object", "")).partition(" ")
    namespace, _, name = where.partition("/")
    fields = {key: value for key, value in deed.params.items() if key in ("minAvailable", "maxUnavailable")}
    found = cluster.store.get("poddisruptionbudgets", namespace, name)
    if kind != "poddisruptionbudget" or found is None or not fields:
        raise ReplayError(f"action patch: the lab cannot replay {deed.params}")
    new: Object = clone(found)
    new["spec"].update(fields)
    cluster.update_object("poddisruptionbudgets", new)


def _partition(cluster: Cluster, deed: Deed) -> None:
    if deed.params.get("from", "control-plane") != "control-plane":
        raise ReplayError(f"action partition: the lab cannot cut a node off from {deed.params['from']}")
    cluster.machines[deed.node].partition(deed.params.get("families") or FAMILIES)


_DEEDS: dict[str, _Do] = {
    "poweroff": lambda cluster, deed: cluster.machines[deed.node].logind.power_off(),
    "reboot": lambda cluster, deed: cluster.machines[deed.node].logind.reboot(),
    "power-cut": lambda cluster, deed: cluster.machines[deed.node].power_off(),
    "power-on": lambda cluster, deed: cluster.machines[deed.node].power_on(),
    "prepare-for-shutdown": _prepare,
    "schedule-shutdown": _schedule,
    "cancel-shutdown": lambda cluster, deed: cluster.machines[deed.node].logind.cancel_scheduled(),
    "kubelet-stop": lambda cluster, deed: cluster.machines[deed.node].kubelet.stop(),
    "kubelet-start": lambda cluster, deed: cluster.machines[deed.node].kubelet.start(),
    "kubelet-restart": lambda cluster, deed: cluster.machines[deed.node].kubelet.restart(),
    "partition": _partition,
    "heal": lambda cluster, deed: cluster.machines[deed.node].heal(),
    "cordon": lambda cluster, deed: cordon(cluster, deed.node),
    "uncordon": lambda cluster, deed: cordon(cluster, deed.node, unschedulable=False),
    "drain": _drain,
    "patch": _patch,
}
