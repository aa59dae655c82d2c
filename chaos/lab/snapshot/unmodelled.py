"""What of a cluster the lab does not model: removed from objects before they are created, and counted.

What pods demand beyond their containers: the lab has containers only, so the first one demands it.
Kubernetes sums it up as ``PodRequests`` of k8s.io/component-helpers/resource/helpers.go does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from chaos.lab.objects import Object, parse_quantity

_UNITS = {"cpu": 1000, "memory": 1}  # milli-CPUs per CPU, bytes per byte


def fold_requests(spec: Object) -> None:
    """Add what init containers, overhead and the pod as a whole demand to the first container, in place.

    Removes overhead and the resources of the pod; init containers stay.
    """
    overhead, whole = spec.pop("overhead", None) or {}, _demanded(spec.pop("resources", None))
    containers = spec.get("containers") or []
    for resource, units in _UNITS.items():
        summed = sum(_amounts(containers, resource), Fraction(0))
        needed = max(summed, _while_starting(spec.get("initContainers") or [], summed, resource))
        if resource in whole:
            needed = max(summed, _amount(whole, resource))
        needed += _amount(overhead, resource)
        if containers and needed > summed:
            _add(containers[0], resource, ceil((needed - summed) * units))


def has_other_requests(spec: Object) -> bool:
    """Whether a container demands more than CPUs and memory."""
    return any(_demanded(item.get("resources")).keys() - _UNITS.keys() for item in spec.get("containers") or [])


def _while_starting(init_containers: Iterable[Object], containers: Fraction, resource: str) -> Fraction:
    """The most that is demanded at a time: sidecars stay, others run one after the other."""
    sidecars = most = Fraction(0)
    for item in init_containers:
        amount = next(_amounts([item], resource))
        if item.get("restartPolicy") == "Always":
            sidecars += amount
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + amount)
    return max(most, containers + sidecars)


def _add(container: Object, resource: str, amount: int) -> None:
    """``amount``: milli-CPUs or bytes."""
    before = ceil(next(_amounts([container], resource)) * _UNITS[resource])
    resources = container.get("resources") or {}
    shown = f"{before + amount}m" if resource == "cpu" else str(before + amount)
    container["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), resource: shown}}


def _amounts(containers: Iterable[Object], resource: str) -> Iterator[Fraction]:
    return (_amount(_demanded(item.get("resources")), resource) for item in containers)


def _demanded(resources: Any) -> dict[str, Any]:
    """Requests, and limits of what has none."""
    found = resources if isinstance(resources, dict) else {}
    return {**(found.get("limits") or {}), **(found.get("requests") or {})}


def _amount(amounts: Mapping[str, Any], resource: str) -> Fraction:
    """0 for what is no quantity: the check of the workload rejects it."""
    try:
        return parse_quantity(amounts.get(resource, 0))
    except ValueError:
        return Fraction(0)


_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_SPREAD = ("minDomains", "matchLabelKeys")
_DEFAULT_SCHEDULER = "default-scheduler"
# What is not modelled, and what that means for the copy.
EFFECTS = {
    "init containers": "pods start without them, after the measured time; the first container has their requests",
    "probes": "a pod is ready when its containers run, after the measured time",
    "hooks other than preStop.sleep": "containers end after the measured time",
    "schedulers other than default-scheduler": "default-scheduler places these pods",
    "nodeTaintsPolicy, minDomains and matchLabelKeys": "spread constraints are without them",
    "ephemeral volumes and resource claims": "pods start without them",
    "scheduling gates": "pods are scheduled at once",
    "host ports": "pods with the same host port may be on one node",
    "requests of other resources than cpu and memory": "pods are placed without them",
    "readiness gates": "pods are ready without them",
    "runtime classes": "new pods have no overhead",
    "maxSurge of DaemonSets": "roll-outs delete before they create",
    "workloads that the lab rejects": "they are left out, and their pods are not replaced",
    "owners of other kinds": "their pods are not replaced",
    "finalizers of others": "they hold nothing back",
    "CronJobs": "they create no Jobs",
    "unready pods": "they become Ready",
    "nodes that are not Ready": "their machines are off",
    "systemd before 251": "simulated as 252: its logind is asked by every shutdown",
    "kubelets without configuration": "they have no graceful shutdown",
    "other versions of Kubernetes": "the copy behaves as the nearest version of docs/lab-versions.md",
    "namespaces that are being terminated": "they stay",
}


class Simplifier:
    """``found``: how many objects had what is not modelled, by key of EFFECTS; ``rejected``: the lab's first reason."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.rejected = ""

    def note(self, what: str, number: int = 1) -> None:
        """Count ``what``, a key of EFFECTS."""
        if number:
            self.found[what] += number

    def reject(self, reason: str) -> None:
        """Count a workload that the lab rejects."""
        self.note("workloads that the lab rejects")
        self.rejected = self.rejected or reason

    def lines(self) -> list[str]:
        """One line for each kind, as text."""
        lines = [f"{what} ({number}): {EFFECTS[what]}" for what, number in sorted(self.found.items())]
        return [*lines, f"first rejected: {self.rejected}"] if self.rejected else lines

    def simplify_pod(self, spec: Object) -> None:
        """Remove from a pod spec what the lab rejects, in place."""
        fold_requests(spec)
        for what, remove in _RULES.items():
            self.note(what, int(remove(spec)))

    def simplify_owner(self, plural: str, obj: Object) -> None:
        """Remove from a workload what the lab rejects, in place."""
        self.simplify_pod(obj["spec"].setdefault("template", {}).setdefault("spec", {}))
        rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        if plural == "daemonsets" and rolling.get("maxSurge") not in (None, 0, "0%"):
            rolling["maxSurge"], rolling["maxUnavailable"] = 0, 1
            self.note("maxSurge of DaemonSets")


def _containers(spec: Object) -> list[Object]:
    return list(spec.get("containers") or [])


def _drop(obj: Object, *keys: str) -> bool:
    """Remove keys; whether one of them had a value."""
    values = [obj.pop(key, None) for key in keys]
    return any(values)


def _drop_probes(spec: Object) -> bool:
    found = [_drop(item, *_PROBES) for item in _containers(spec)]
    return any(found)


def _drop_hooks(spec: Object) -> bool:
    found = False
    for container in _containers(spec):
        lifecycle = container.get("lifecycle") or {}
        found |= _drop(lifecycle, "postStart", "stopSignal")
        if lifecycle.get("preStop") is not None and "sleep" not in lifecycle["preStop"]:
            found |= _drop(lifecycle, "preStop") or True
        if not lifecycle:
            container.pop("lifecycle", None)
    return found


def _set_scheduler(spec: Object) -> bool:
    found = bool(spec.get("schedulerName", _DEFAULT_SCHEDULER) != _DEFAULT_SCHEDULER)
    if found:
        spec["schedulerName"] = _DEFAULT_SCHEDULER
    return found


def _drop_spread_policies(spec: Object) -> bool:
    found = False
    for item in spec.get("topologySpreadConstraints") or []:
        found |= _drop(item, *_SPREAD)
        if item.get("nodeTaintsPolicy", "Ignore") != "Ignore":
            found |= _drop(item, "nodeTaintsPolicy")
    return found


def _drop_ephemeral(spec: Object) -> bool:
    volumes: list[dict[str, Any]] = spec.get("volumes") or []
    others = [item for item in volumes if "ephemeral" not in item]
    if len(others) < len(volumes):
        spec["volumes"] = others
    return _drop(spec, "resourceClaims") or len(others) < len(volumes)


def _has_host_ports(spec: Object) -> bool:
    return any(port.get("hostPort") for item in _containers(spec) for port in item.get("ports") or [])


_RULES: dict[str, Callable[[Object], bool]] = {
    "init containers": lambda spec: _drop(spec, "initContainers"),
    "probes": _drop_probes,
    "hooks other than preStop.sleep": _drop_hooks,
    "schedulers other than default-scheduler": _set_scheduler,
    "nodeTaintsPolicy, minDomains and matchLabelKeys": _drop_spread_policies,
    "ephemeral volumes and resource claims": _drop_ephemeral,
    "scheduling gates": lambda spec: _drop(spec, "schedulingGates"),
    "host ports": _has_host_ports,
    "requests of other resources than cpu and memory": has_other_requests,
    "readiness gates": lambda spec: bool(spec.get("readinessGates")),
    "runtime classes": lambda spec: bool(spec.get("runtimeClassName")),
}
