"""Where the pod runs: never on a node that is surely a target, rather on one that never is.

Which of several nodes becomes a target is only known when a run is planned: then the pod's own node is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.core.labels import CONTROL_PLANE_LABELS
from chaos.gameday.deploy.deployment import NodePreferences

_CONTROL_PLANE = CONTROL_PLANE_LABELS[0]


def scheduling(preferences: NodePreferences) -> dict[str, Any]:
    """The keys ``affinity`` and ``tolerations`` of a pod, where there is something to say."""
    rules: dict[str, Any] = {}
    if preferences.never:
        fields = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in preferences.never]
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    if preferred := list(_preferred(preferences)):
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    found: dict[str, Any] = {"affinity": {"nodeAffinity": rules}} if rules else {}
    if preferences.control_planes:
        toleration = {"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}
        found["tolerations"] = [toleration]
    return found


def _preferred(preferences: NodePreferences) -> Iterator[dict[str, Any]]:
    if preferences.control_planes:
        yield _term(100, "matchExpressions", {"key": _CONTROL_PLANE, "operator": "Exists"})
    for name in preferences.protected:
        yield _term(100, "matchFields", {"key": "metadata.name", "operator": "In", "values": [name]})
    for key, value in preferences.rather_not:
        yield _term(50, "matchExpressions", {"key": key, "operator": "NotIn", "values": [value]})


def _term(weight: int, kind: str, rule: dict[str, Any]) -> dict[str, Any]:
    return {"weight": weight, "preference": {kind: [rule]}}
