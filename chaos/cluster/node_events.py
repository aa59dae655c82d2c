"""Events on the affected Nodes: they show which run did what, also to people who have never heard of nodefall."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.cluster.response import status_message
from chaos.core.duration import timestamp
from chaos.core.errors import NodefallError
from chaos.core.labels import NODE_EVENT_NAMESPACE
from chaos.core.plan import PlannedStep
from chaos.core.ports import KubeApi
from chaos.core.redaction import redact

INJECTED, UNDONE = "NodefallInjected", "NodefallUndone"
_PATH = f"/api/v1/namespaces/{NODE_EVENT_NAMESPACE}/events"
_MAX_MESSAGE = 1024  # characters of a message, by validation


def random_suffix() -> str:
    """The end of an Event's name, which no other Event has."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """Writes Events. Each names ``run`` and ``holder``; ``uids`` are those of the Node objects, by name.

    ``suffix`` returns the end of a new Event's name.
    """

    kube: KubeApi
    run: str
    holder: str
    uids: Mapping[str, str]
    suffix: Callable[[], str] = random_suffix

    def emit_injected(self, step: PlannedStep, t: float) -> str:
        """Write the Event; returns why that failed, or ""."""
        return self._write(step, t, "Warning", INJECTED, f"{step.action}: {step.commands[-1]}")

    def emit_undone(self, step: PlannedStep, t: float, because: str) -> str:
        """Write the Event; returns why that failed, or ""."""
        return self._write(step, t, "Normal", UNDONE, f"{step.action} was undone: {because}")

    def _write(self, step: PlannedStep, t: float, type_: str, reason: str, what: str) -> str:
        if not step.node:
            return ""
        text = f"run {self.run} of {self.holder}, step {step.step}: {what}"
        message = redact(text)[:_MAX_MESSAGE]
        try:
            response = self.kube.request("POST", _PATH, body=self._event(step.node, t, type_, reason, message))
        except NodefallError as error:
            return f"no Event on {step.node}: {error.message}"
        return "" if response.status < 300 else f"no Event on {step.node}: {status_message(response)}"

    def _event(self, node: str, t: float, type_: str, reason: str, message: str) -> dict[str, Any]:
        stamp = timestamp(t)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{node}.{self.suffix()}", "namespace": NODE_EVENT_NAMESPACE},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": self.uids.get(node, "")},
            "type": type_,
            "reason": reason,
            "message": message,
            "source": {"component": "nodefall"},
            "reportingComponent": "nodefall",
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
