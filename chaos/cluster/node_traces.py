"""Traces of nodefall on Nodes: marks of pending undo, and Events.

Events show which run did what, also to people who have never heard of nodefall.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from chaos.cluster.errors import status_message
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import node_path
from chaos.core.api_path import resource_path
from chaos.core.command import MERGE_PATCH
from chaos.core.duration import timestamp
from chaos.core.errors import NodefallError
from chaos.core.labels import NODE_EVENT_NAMESPACE
from chaos.core.node_mark import PREFIX, FoundMark, found_marks
from chaos.core.plan import PlannedStep
from chaos.core.ports import KubeApi, Response
from chaos.core.redaction import redact

INJECTED, UNDONE = "NodefallInjected", "NodefallUndone"
_EVENTS = resource_path("v1", "events", NODE_EVENT_NAMESPACE)
_MAX_MESSAGE = 1024  # characters of a message, by validation
_NODES = "/api/v1/nodes"


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
            response = self.kube.request("POST", _EVENTS, body=self._event(step.node, t, type_, reason, message))
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


class _Metadata(Struct):
    annotations: dict[str, str] | None = None


class _Head(Struct):
    metadata: _Metadata


class _List(Struct):
    items: list[msgspec.Raw] | None = None


def list_marks(kube: KubeApi) -> list[FoundMark]:
    """The marks of all Nodes. Raises NodefallError."""
    response = kube.request("GET", _NODES)
    if response.status != 200:
        raise NodefallError(_failure("the marks of Nodes cannot be read", response))
    try:
        items = msgspec.json.decode(response.body, type=_List).items or ()
        marked = [msgspec.json.decode(item) for item in items if _has_mark(item)]
    except DECODE_ERRORS as error:
        raise NodefallError(f"the marks of Nodes cannot be read: {error}") from error
    return [mark for node in marked for mark in found_marks(node)]


def remove_marks(kube: KubeApi, marks: Iterable[FoundMark]) -> list[str]:
    """Remove marks from Nodes that are unchanged since they were read; why some could not be removed."""
    problems = []
    for mark in marks:
        metadata = {"resourceVersion": mark.version, "annotations": {mark.key: None}}
        body = {"metadata": metadata}
        try:
            response = kube.request("PATCH", node_path(mark.node), body=body, content_type=MERGE_PATCH)
        except NodefallError as error:
            problems.append(f"the mark of {mark} stays: {error.message}")
            continue
        if response.status not in (200, 404, 409):  # 409: the Node has changed, so the mark may count again
            problems.append(_failure(f"the mark of {mark} stays", response))
    return problems


def _has_mark(item: msgspec.Raw) -> bool:
    annotations = msgspec.json.decode(item, type=_Head).metadata.annotations or {}
    return any(key.startswith(PREFIX) for key in annotations)


def _failure(what: str, response: Response) -> str:
    return f"{what}: the API server answered {response.status}: {status_message(response)}"
