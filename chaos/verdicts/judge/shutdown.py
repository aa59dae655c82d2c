"""Priority groups in which a kubelet stops pods in a graceful shutdown (facts 1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.core.kube import Pod
from chaos.verdicts.judge.facts import parse_number

_CRITICAL_PRIORITY = 2_000_000_000


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
    """Group with the greatest priority not above that of the pod, else the lowest (``groupByPriority``)."""
    own = (pod.spec.priority if pod.spec else None) or 0
    return max((priority for priority in groups if priority <= own), default=min(groups))
