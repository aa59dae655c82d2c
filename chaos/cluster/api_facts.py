"""Facts read from the Kubernetes API: of nodes, namespaces and any object."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import (
    CONDITION,
    LABELS,
    NAMESPACE,
    OBJECT,
    TAINT,
    PseudoFact,
    condition_status,
    field,
    node_path,
    taint_value,
)
from chaos.core.errors import NodefallError
from chaos.core.kube import Node, is_ready, last_manager
from chaos.core.labels import FIELD_MANAGER
from chaos.core.ports import KubeApi


class UnknownFact(NodefallError):
    """A fact that cannot be read, with the reason."""


class ApiFacts:
    """Thread-safe and stateless."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube

    @staticmethod
    def supports(fact: str) -> bool:
        names = (PseudoFact.NODE_READY, PseudoFact.OWN_CORDON)
        return fact in names or fact.startswith((NAMESPACE, f"{OBJECT}/", TAINT, CONDITION, LABELS))

    def read(self, node: str, fact: str) -> Any:
        """Raises UnknownFact."""
        if fact == PseudoFact.NODE_READY:
            return self._ready(node)
        if fact == PseudoFact.OWN_CORDON:
            return self._own_cordon(node)
        if fact.startswith(NAMESPACE):
            path = f"/api/v1/namespaces/{fact.removeprefix(NAMESPACE)}"
            return "gone" if self._object(path, msgspec.Raw) is None else "there"
        if fact.startswith((TAINT, CONDITION, LABELS)):
            return _field_of_node(self._object(node_path(node), Any), fact)
        path, _, pointer = fact.removeprefix(OBJECT).partition("#")
        return field(self._object(path, Any), pointer)

    def boot_id(self, node: str) -> Any:
        """Boot ID that the kubelet last reported. Raises UnknownFact."""
        return field(self._object(node_path(node), Any), "/status/nodeInfo/bootID")

    def _ready(self, node: str) -> bool:
        found = self._object(node_path(node), Node)
        if found is None:
            raise UnknownFact(f"node {node}: the API server answered 404")
        return is_ready(found)

    def _own_cordon(self, node: str) -> bool:
        found = self._object(node_path(node), Node)
        is_cordoned = bool(found and found.spec and found.spec.unschedulable)
        return is_cordoned and last_manager(found, "unschedulable") in ("", FIELD_MANAGER)

    def _object(self, path: str, type_: Any) -> Any:
        """The object at ``path``, None if there is none. Raises UnknownFact."""
        response = self._kube.request("GET", path)
        if response.status not in (200, 404):
            raise UnknownFact(f"{path}: the API server answered {response.status}")
        try:
            return None if response.status == 404 else msgspec.json.decode(response.body, type=type_)
        except DECODE_ERRORS as error:
            raise UnknownFact(f"{path}: {error}") from error


def _field_of_node(node: Any, fact: str) -> Any:
    if fact.startswith(TAINT):
        return taint_value(node, fact.removeprefix(TAINT))
    if fact.startswith(CONDITION):
        return condition_status(node, fact.removeprefix(CONDITION))
    labels = field(node, "/metadata/labels") or {}
    return {key: labels[key] for key in fact.removeprefix(LABELS).split(",") if key in labels}
