"""Replica of a run's journal: a ConfigMap from which any machine can finish the undo.

The replica is written before each operation, as the journal on disk is; an undo waits for neither. It contains no
secrets, as commands name none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from chaos.kube.response import decode_body, status_message
from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.document import NAME
from chaos.model.errors import Aborted, NodefallError
from chaos.model.labels import MANAGED_BY_LABEL, RUN_LABEL
from chaos.model.ports import KubeApi, Response
from chaos.model.redaction import redact_json
from chaos.store.journal import Journal, PendingUndo, decode_pending

PREFIX = "nodefall-run-"
_SELECTOR = ",".join(f"{key}={value}" for key, value in MANAGED_BY_LABEL.items())
_RUN, _PENDING = "run.json", "pending.json"
_FORMER_PENDING = "owed.json"  # of 0.1.0; read until 0.3; words: keep


class RunIdentity(Struct, frozen=True):
    """The run that a replica belongs to; ``holder`` as in the cluster's lock."""

    run: str
    experiment: str
    started: float
    holder: str = ""


class PendingRun(Struct, frozen=True):
    """A run's ConfigMap. ``error`` is why it cannot be read; then its pending undo is unknown."""

    name: str
    identity: RunIdentity
    pending: tuple[PendingUndo, ...] = ()
    error: str = ""

    @property
    def has_pending(self) -> bool:
        """Whether an undo is pending, or may be."""
        return bool(self.error) or any(pending.undo.proof for pending in self.pending)


@dataclass
class JournalMirror:
    """Writes the replica of one run's journal."""

    kube: KubeApi
    namespace: str
    identity: RunIdentity
    journal: Journal

    def publish(self) -> None:
        """Write the replica. Raises Aborted if that fails: no other machine could undo the next operation."""
        self.journal.record_replica(exists=True)
        try:
            self._write(self.journal.pending())
        except NodefallError as error:
            raise Aborted(f"cannot write the journal to the cluster: {error.message}", hint=error.hint) from error

    def reconcile(self) -> str:
        """After an undo: write the replica, or delete it if nothing is pending. Returns why that failed, or ""."""
        if not self.journal.has_replica:
            return ""
        pending = self.journal.pending()
        try:
            if any(entry.undo.proof for entry in pending):
                self._write(pending)
            else:
                delete_configmap(self.kube, self.namespace, self.identity.run)
                self.journal.record_replica(exists=False)
        except NodefallError as error:
            name = configmap_name(self.identity.run)
            return f"the journal in the cluster (ConfigMap {self.namespace}/{name}): {error.message}"
        return ""

    def _write(self, pending: Sequence[PendingUndo]) -> None:
        name = configmap_name(self.identity.run)
        labels = {**MANAGED_BY_LABEL, RUN_LABEL: self.identity.run[:63].rstrip("-.")}
        data = {_RUN: _json(self.identity), _PENDING: _json(tuple(pending))}
        obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        obj["metadata"] = {"name": name, "namespace": self.namespace, "labels": labels}
        path = _collection(self.namespace)
        response = self.kube.request("PUT", f"{path}/{name}", body=obj)
        if response.status == 404:  # PUT does not create ConfigMaps
            response = self.kube.request("POST", path, body=obj)
        _decode_success(response)


def configmap_name(run: str) -> str:
    """Name of the run's ConfigMap."""
    return f"{PREFIX}{run}"


def pending_runs(kube: KubeApi, namespace: str) -> list[PendingRun]:
    """Replicas of all runs on this cluster. Raises NodefallError."""
    response = kube.request("GET", _collection(namespace), {"labelSelector": _SELECTOR})
    items = _decode_success(response).get("items") or []
    return [_parse(item) for item in items if item["metadata"]["name"].startswith(PREFIX)]


def delete_configmap(kube: KubeApi, namespace: str, run: str) -> None:
    """Delete the run's ConfigMap, if it exists. Raises NodefallError."""
    response = kube.request("DELETE", f"{_collection(namespace)}/{configmap_name(run)}")
    if response.status != 404:
        _decode_success(response)


def _parse(item: dict[str, Any]) -> PendingRun:
    name, data = str(item["metadata"]["name"]), item.get("data") or {}
    try:
        identity = msgspec.json.decode(data.get(_RUN, ""), type=RunIdentity)
        pending = _decode_all(data)
    except DECODE_ERRORS as error:
        return _unreadable(name, str(error))
    if configmap_name(identity.run) != name or not re.fullmatch(NAME, identity.experiment):  # they become paths
        return _unreadable(name, f"it names the run {identity.run!r} of the experiment {identity.experiment!r}")
    return PendingRun(name, identity, pending)


def _decode_all(data: Mapping[str, str]) -> tuple[PendingUndo, ...]:
    values = msgspec.json.decode(data.get(_PENDING, data.get(_FORMER_PENDING, "")), type=list[Any])
    return tuple(decode_pending(value) for value in values)


def _unreadable(name: str, error: str) -> PendingRun:
    return PendingRun(name, RunIdentity(name.removeprefix(PREFIX), "", 0.0), error=error)


def _json(value: Any) -> str:
    return redact_json(msgspec.json.encode(value)).decode()


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _decode_success(response: Response) -> dict[str, Any]:
    if response.status >= 300:
        hint = "grant the permissions that nodefall rbac prints" if response.status == 403 else ""
        raise NodefallError(f"the API server answered {response.status}: {status_message(response)}", hint=hint)
    return dict(decode_body(response))
