"""Commands to the Kubernetes API: requests, taints (read, changed, written), and pods selected at send time."""

from __future__ import annotations

from typing import Any

from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.pod_commands import PodsTask
from chaos.cluster.response import decode_body, status_message
from chaos.core.api_fact import field, node_path
from chaos.core.command import MERGE_PATCH, ApiCommand, Delivery, KubeCommand, Outcome, PodsCommand, TaintsCommand
from chaos.core.ports import Clock, KubeApi, Response

_CONFLICT = 409
_MAX_ATTEMPTS = 5  # of a change that conflicts with changes of others


class KubeTransport:
    """Sends API commands. Thread-safe. Waits in the clock's time only."""

    def __init__(self, kube: KubeApi, clock: Clock) -> None:
        self._kube, self._clock = kube, clock

    def send(self, command: ApiCommand) -> Outcome:
        """Send ``command``. Raises KubeUnreachable only if nothing was sent."""
        if isinstance(command, PodsCommand):
            return PodsTask(self._kube, self._clock, command).run()
        try:
            return self._request(command) if isinstance(command, KubeCommand) else self._update_taints(command)
        except KubeUnreachable as error:
            if not error.sent:
                raise
            return Outcome(Delivery.LOST, error=error.message)

    def _request(self, command: KubeCommand) -> Outcome:
        response = self._kube.request(
            command.method, command.path, body=command.body, content_type=command.content_type
        )
        body = decode_body(response) if command.evidence_pointers else None
        return _outcome(response, {pointer: field(body, pointer) for pointer in command.evidence_pointers})

    def _update_taints(self, command: TaintsCommand) -> Outcome:
        """Write the whole list against the version that was read, as kubectl taint does."""
        for _ in range(_MAX_ATTEMPTS):
            read = self._kube.request("GET", node_path(command.node))
            if read.status != 200:
                return _outcome(read)
            node = decode_body(read)
            taints = merge_taints(field(node, "/spec/taints") or [], command)
            metadata = {"resourceVersion": field(node, "/metadata/resourceVersion")}
            if command.annotations:
                metadata["annotations"] = command.annotations
            patch = {"metadata": metadata, "spec": {"taints": taints or None}}
            written = self._kube.request("PATCH", node_path(command.node), body=patch, content_type=MERGE_PATCH)
            if written.status != _CONFLICT:
                break
        return _outcome(written, {"taints": taints})


def merge_taints(taints: list[dict[str, Any]], command: TaintsCommand) -> list[dict[str, Any]]:
    """The taints without those to remove and with those to add; one for each key and effect."""
    removed = {*command.remove, *(f"{taint['key']}:{taint['effect']}" for taint in command.add)}
    remaining = [
        t for t in taints if t.get("key") not in removed and f"{t.get('key')}:{t.get('effect')}" not in removed
    ]
    return [*remaining, *command.add]


def _outcome(response: Response, evidence: dict[str, Any] | None = None) -> Outcome:
    good = response.status < 300
    return Outcome(
        Delivery.ANSWERED,
        response.status,
        stdout=response.body.decode("utf-8", "replace") if good else "",
        stderr="" if good else f"the API server answered {response.status}: {status_message(response)}",
        evidence=(evidence or {}) if good else {},
    )
