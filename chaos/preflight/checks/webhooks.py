"""Admission webhooks with endpoints on the target only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.model.api_fact import field
from chaos.preflight.check import Check, Diagnosis, Severity, list_error_notes, ok, warning
from chaos.preflight.observations import MUTATING, SLICES, VALIDATING, ClusterObservations, Need, fault_groups

_SERVICE = "kubernetes.io/service-name"


class Webhooks(Check):
    """With failurePolicy Fail and no endpoint, the API server rejects the matching writes, those of undo included."""

    name = "webhooks"
    summary = "no admission webhook loses all its endpoints with the node"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        found = list(self._diagnoses(observations))
        yield from found
        yield from list_error_notes(observations, VALIDATING, MUTATING, SLICES)
        if not found:
            yield ok("no webhook depends on one node")

    @staticmethod
    def _diagnoses(observations: ClusterObservations) -> Iterator[Diagnosis]:
        for name, service, fails in _webhooks(observations):
            nodes = _nodes(observations, service)
            effect = "the API server rejects matching requests" if fails else "it is skipped (failurePolicy Ignore)"
            if nodes == []:
                if fails:
                    yield warning(f"webhook {name} has no ready endpoint (service {service}): {effect}", "fix it first")
                continue
            for host, group in fault_groups(observations):
                if nodes and set(nodes) <= set(group):
                    message = (
                        f"webhook {name} has all its {len(nodes)} endpoint(s) on {', '.join(group)}: "
                        f"without them, {effect}"
                    )
                    severity = Severity.REFUSAL if fails else Severity.NOTE
                    hint = f"run replicas of service {service} on other nodes, or choose another target"
                    yield Diagnosis(severity, message, hint, host, frozenset({Need.ENDS_PODS}))


def _webhooks(observations: ClusterObservations) -> Iterator[tuple[str, str, bool]]:
    """Name, service and whether failurePolicy is Fail (the default), of webhooks that run in the cluster."""
    for path in (VALIDATING, MUTATING):
        for item in observations.lists.get(path, ()):
            for hook in item.get("webhooks") or ():
                if service := field(hook, "/clientConfig/service"):
                    where = f"{service.get('namespace')}/{service.get('name')}"
                    yield str(hook.get("name")), where, hook.get("failurePolicy", "Fail") == "Fail"


def _nodes(observations: ClusterObservations, service: str) -> list[str | None] | None:
    """Nodes of the service's ready endpoints; None if they are unknown."""
    if SLICES not in observations.lists:
        return None
    return [
        endpoint.get("nodeName")
        for item in observations.lists[SLICES]
        if _service_of(item) == service
        for endpoint in item.get("endpoints") or ()
        if field(endpoint, "/conditions/ready") is not False
    ]


def _service_of(item: dict[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace')}/{(metadata.get('labels') or {}).get(_SERVICE)}"


CHECK = Webhooks()
