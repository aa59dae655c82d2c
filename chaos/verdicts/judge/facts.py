"""Values of facts in bounds: from the options, from the timeline, or documented defaults; groups of a shutdown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from chaos.core.duration import POD_FACTS, Bound, format_duration, parse_duration
from chaos.core.kube import Pod
from chaos.core.number_types import parse_minor
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.context import JudgeContext

_META = {"controller": "controllerManager", "apiServer": "apiServer"}
# https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/ (and kube-apiserver)
_DEFAULTS = {
    "controller.nodeMonitorPeriod": 5.0,
    "apiServer.defaultNotReadyTolerationSeconds": 300.0,
    "apiServer.defaultUnreachableTolerationSeconds": 300.0,
}
_CRITICAL_PRIORITY = 2_000_000_000


class Facts:
    """Fact lookup for one expectation.

    ``assumed`` has the values taken from a default by fact name, ``unknown`` the reasons of missing ones.
    """

    def __init__(self, context: JudgeContext, nodes: tuple[str, ...], at: float) -> None:
        self._context = context
        self._nodes = nodes
        self._at = at
        self.assumed: dict[str, str] = {}
        self.unknown: dict[str, str] = {}

    def lookup(self, name: str) -> float | None:
        """Value of a fact in seconds, or a plain number; None if unknown."""
        given = self._context.options.facts.get(name)
        if given is not None:
            return parse_number(given)
        if name in POD_FACTS:
            return None
        value = self._kubelet(name) if name.startswith("kubelet.") else self._control_plane(name)
        if value is None:
            self.unknown.setdefault(name, "not in this timeline")
        return value

    def seconds(self, bound: Bound) -> float | None:
        """Value of the bound in seconds, None if a fact in it is unknown."""
        return self._not_negative(bound, bound.seconds(self.lookup))

    def subject_seconds(self, bound: Bound, own: Mapping[str, float | None]) -> float | None:
        """Value of the bound in seconds for a subject that has the facts ``own``, None if a fact is unknown."""

        def lookup(name: str) -> float | None:
            value = self.lookup(name)
            if value is None and name in own:
                value = own[name]
            if value is None and name in POD_FACTS:
                self.unknown.setdefault(name, "the pod does not have it")
            return value

        return self._not_negative(bound, bound.seconds(lookup))

    def _not_negative(self, bound: Bound, seconds: float | None) -> float | None:
        """Return ``seconds`` unless negative: a deadline before the beginning is unknown."""
        if seconds is None or seconds >= 0:
            return seconds
        self.unknown[bound.text] = f"it is negative ({format_duration(seconds)})"
        return None

    def _kubelet(self, name: str) -> float | None:
        values = {node: configz_at(self._context.timeline, node, self._at) for node in self._nodes}
        found = {node: kubelet_fact(config, name) for node, config in values.items() if config is not None}
        distinct = set(found.values())
        if len(distinct) > 1:
            values_text = ", ".join(f"{node}: {value}" for node, value in found.items())
            self.unknown[name] = f"it differs between nodes ({values_text})"
            return None
        if len(found) < len(self._nodes) or not found:
            missing = ", ".join(node for node in self._nodes if node not in found) or "any node"
            self.unknown[name] = f"the kubelet configuration of {missing} was not read"
            return None
        return distinct.pop()

    def _control_plane(self, name: str) -> float | None:
        section, _, key = name.partition(".")
        recorded = self._context.timeline.meta.get(_META.get(section, ""))
        if isinstance(recorded, dict) and key in recorded:
            return parse_number(recorded[key])
        value = self._assumption(name)
        if value is not None:
            self.assumed[name] = format_duration(value)
        return value

    def _assumption(self, name: str) -> float | None:
        if name in self._context.options.inventory:
            return parse_number(self._context.options.inventory[name])
        if name == "controller.nodeMonitorGracePeriod":
            version = parse_minor(str(self._context.timeline.meta.get("kubernetes", "")))
            if version is None:
                return None
            # Raised from 40s by kubernetes/kubernetes#126287 in 1.32.
            return 50.0 if version >= (1, 32) else 40.0
        return _DEFAULTS.get(name)


def configz_at(timeline: Timeline, node: str, at: float) -> dict[str, Any] | None:
    """Kubelet configuration: the last reading before ``at``, else the first after; None without a reading."""
    readings = [r for r in timeline.readings(node, "configz") if isinstance(r.value, dict)]
    before = [r for r in readings if r.t <= at]
    reading = before[-1] if before else (readings[0] if readings else None)
    return reading.value if reading else None


_GATES = {  # and whether they are on where the configuration does not have them
    "kubelet.featureGates.GracefulNodeShutdown": True,
    "kubelet.featureGates.WindowsGracefulNodeShutdown": False,
}


def kubelet_fact(config: Mapping[str, Any], name: str) -> float | None:
    """Value of ``kubelet.X`` from configz in seconds, or a plain number; None if missing.

    ``kubelet.shutdownGracePeriod`` is the effective value: shutdownGracePeriodByPodPriority, where set, replaces both
    shutdownGracePeriod settings, and the kubelet stops its groups one after the other
    (pkg/kubelet/nodeshutdown/nodeshutdown_manager.go).
    """
    groups = config.get("shutdownGracePeriodByPodPriority")
    if name == "kubelet.shutdownGracePeriod" and groups:
        return _sum_of(groups)
    if name in _GATES:
        return float((config.get("featureGates") or {}).get(name.rpartition(".")[2], _GATES[name]))
    value = config.get(name.removeprefix("kubelet."))
    return None if value is None else parse_number(value)


def _sum_of(groups: Any) -> float | None:
    """Sum of the seconds of all groups; None for an unknown format."""
    valid = isinstance(groups, list) and all(isinstance(group, dict) for group in groups)
    seconds = [parse_number(group.get("shutdownGracePeriodSeconds", 0)) for group in groups] if valid else [None]
    return None if None in seconds else sum(s for s in seconds if s is not None)


def parse_number(value: Any) -> float | None:
    """Parse a duration to seconds, or a plain number; None for anything else."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        try:
            number = parse_duration(text)
        except ValueError:
            return None
    return number if math.isfinite(number) else None


def groups_of(config: Mapping[str, Any]) -> dict[int, float] | None:
    """Seconds by priority, lowest first; empty without a configuration, None for an unknown format.

    pkg/kubelet/nodeshutdown/nodeshutdown_manager.go ``migrateConfig``, ``newPodManager``: durations are whole seconds.
    """
    groups = config.get("shutdownGracePeriodByPodPriority")
    if groups:
        return _parse_groups(groups)
    total = parse_number(config.get("shutdownGracePeriod") or "0s")
    critical = parse_number(config.get("shutdownGracePeriodCriticalPods") or "0s")
    if total is None or critical is None:
        return None
    if int(total) == 0 or critical > total:
        return {}
    return {0: float(int(total) - int(critical)), _CRITICAL_PRIORITY: float(int(critical))}


def _parse_groups(listed: Any) -> dict[int, float] | None:
    if not isinstance(listed, list) or not all(isinstance(group, dict) for group in listed):
        return None
    seconds = {group.get("priority"): parse_number(group.get("shutdownGracePeriodSeconds", 0)) for group in listed}
    known = {priority: s for priority, s in seconds.items() if isinstance(priority, int) and s is not None}
    return dict(sorted(known.items())) if len(known) == len(listed) else None


def group_of(pod: Pod, groups: Mapping[int, float]) -> int:
    """The group with the highest priority that is not above the priority of the pod, or else the lowest
    (``groupByPriority``).
    """
    own = (pod.spec.priority if pod.spec else None) or 0
    return max((priority for priority in groups if priority <= own), default=min(groups))
