"""Admission webhooks that stand on the target alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.model.api_fact import field
from chaos.preflight.check import Check, Diagnosis, Severity, list_error_notes, ok, warning
from chaos.preflight.observations import MUTATING, SLICES, VALIDATING, ClusterObservations, Need, fault_groups

_SERVICE = "kubernetes.io/service-name"


class Webhooks(Check):
    """With failurePolicy Fail and nobody there, the API server refuses the writes it is asked about: undo's too."""

    name = "webhooks"
    summary = "no admission webhook loses all its endpoints with the node"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        found = list(self._diagnoses(signs))
        yield from found
        yield from list_error_notes(signs, VALIDATING, MUTATING, SLICES)
        if not found:
            yield ok("none depends on one node")

    @staticmethod
    def _diagnoses(signs: ClusterObservations) -> Iterator[Diagnosis]:
        for name, service, fails in _webhooks(signs):
            nodes = _nodes(signs, service)
            does = "the API server refuses what it asks about" if fails else "nobody asks it (failurePolicy Ignore)"
            if nodes == []:
                if fails:
                    yield warning(f"webhook {name} has no ready endpoint (service {service}): {does}", "mend it first")
                continue
            for host, group in fault_groups(signs):
                if nodes and set(nodes) <= set(group):
                    told = f"webhook {name} has all its {len(nodes)} endpoint(s) on {', '.join(group)}: without, {does}"
                    severity = Severity.REFUSAL if fails else Severity.NOTE
                    mend = f"run replicas of service {service} on other nodes, or choose another target"
                    yield Diagnosis(severity, told, mend, host, frozenset({Need.ENDS_PODS}))


def _webhooks(signs: ClusterObservations) -> Iterator[tuple[str, str, bool]]:
    """Name, service and whether it fails, of those in the cluster; failurePolicy is Fail by default."""
    for path in (VALIDATING, MUTATING):
        for item in signs.lists.get(path, ()):
            for hook in item.get("webhooks") or ():
                if service := field(hook, "/clientConfig/service"):
                    where = f"{service.get('namespace')}/{service.get('name')}"
                    yield str(hook.get("name")), where, hook.get("failurePolicy", "Fail") == "Fail"


def _nodes(signs: ClusterObservations, service: str) -> list[str | None] | None:
    """Of its ready endpoints; None where they are not known."""
    if SLICES not in signs.lists:
        return None
    return [
        endpoint.get("nodeName")
        for item in signs.lists[SLICES]
        if _service_of(item) == service
        for endpoint in item.get("endpoints") or ()
        if field(endpoint, "/conditions/ready") is not False
    ]


def _service_of(item: dict[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace')}/{(metadata.get('labels') or {}).get(_SERVICE)}"


CHECK = Webhooks()
