"""Pod specs of recordings as the lab can run them, without what it does not simulate."""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.admission.defaults import PREFIX, default_pod_spec
from chaos.lab.objects.accessors import Object

_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_BETWEEN_PODS = ("podAffinity", "podAntiAffinity")
_SPREAD = ("nodeTaintsPolicy", "minDomains", "matchLabelKeys")


def adapt_template(template: Object) -> None:
    """Adapt a copied template or pod in place: probes delay readiness, constraints between pods are left."""
    if delay := probe_delay(template["spec"]):
        notes = template["metadata"].get("annotations") or {}
        template["metadata"]["annotations"] = notes | {f"{PREFIX}ready-after": str(delay)}
    _adapt_pod_spec(template["spec"])


def _adapt_pod_spec(spec: dict[str, Any]) -> None:
    for container in spec["containers"]:
        for probe in _PROBES:
            container.pop(probe, None)
        lifecycle = container.get("lifecycle") or {}
        lifecycle.pop("postStart", None)
        if "sleep" not in (lifecycle.get("preStop") or {}):
            lifecycle.pop("preStop", None)
        if not lifecycle:
            container.pop("lifecycle", None)
    spec.pop("initContainers", None)
    spec.pop("schedulerName", None)
    for kind in _BETWEEN_PODS:
        (spec.get("affinity") or {}).pop(kind, None)
    for item in spec.get("topologySpreadConstraints") or []:
        item.setdefault("maxSkew", 1)
        for key in _SPREAD:
            item.pop(key, None)
    default_pod_spec(spec)


def probe_delay(spec: dict[str, Any]) -> float:
    """Seconds from the start of the containers to the first success of their slowest probe."""
    return max((_first_probe(item) for item in spec["containers"]), default=0.0)


def has_lost_constraints(pod: Object) -> bool:
    """Whether the pod was placed by constraints that the lab does not simulate."""
    spec = pod["spec"]
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        return True
    if any(kind in (spec.get("affinity") or {}) for kind in _BETWEEN_PODS):
        return True
    spread = spec.get("topologySpreadConstraints") or []
    return any(item.get("nodeTaintsPolicy", "Ignore") != "Ignore" or item.get("minDomains") for item in spread)


def _first_probe(container: Object) -> float:
    probes = [container.get(name) or {} for name in ("startupProbe", "readinessProbe")]
    return sum(float(probe.get("initialDelaySeconds") or 0) for probe in probes)
