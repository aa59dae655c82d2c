"""Replica of a run's journal: a ConfigMap from which any machine can finish the undo.

The replica is written before each operation, as the journal on disk is; an undo waits for neither. It contains no
secrets, as commands name none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from chaos.store.journal import EntryKey, Journal, PendingUndo, decode_pending, entry_key

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
    version: str = ""  # resourceVersion

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
    _version: str = ""  # resourceVersion of the replica that this process wrote or read last
    _sent: Mapping[str, str] = field(default_factory=dict)  # what was written last; maybe it was not confirmed

    def publish(self) -> None:
        """Write the replica. Raises Aborted if that fails: no other machine could undo the next operation.

        A replica that another process has changed or deleted is not written again: that process may be undoing.
        """
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
                delete_configmap(self.kube, self.namespace, self.identity.run, self._version)
                self.journal.record_replica(exists=False)
        except NodefallError as error:
            name = configmap_name(self.identity.run)
            return f"the journal in the cluster (ConfigMap {self.namespace}/{name}): {error.message}"
        return ""

    def published(self) -> frozenset[EntryKey]:
        """The entries in the replica, if this process wrote it. Requires the cluster's lock. Raises NodefallError."""
        replica = self._read()
        return (
            frozenset(map(entry_key, replica.pending)) if replica and replica.identity == self.identity else frozenset()
        )

    def import_entries(self, *, add: bool) -> frozenset[EntryKey]:
        """The entries in the replica, whichever process wrote it. Requires the cluster's lock. Raises NodefallError.

        ``add``: journal those that were published after this journal was made from the replica.
        """
        replica = self._read()
        if replica and replica.error:
            return frozenset(map(entry_key, self.journal.pending()))  # unknown: all are undone
        entries = sorted(replica.pending if replica else (), key=lambda entry: entry.id)
        for entry in entries:
            if add and not self.journal.has_recorded(entry):
                self.journal.record_intent(entry.step, entry.action, entry.node, entry.undo, entry.t, entry.identity)
        return frozenset(map(entry_key, entries))

    def _read(self) -> PendingRun | None:
        """The replica, whose version is the one to be written over from now on."""
        name = configmap_name(self.identity.run)
        replica = next((run for run in pending_runs(self.kube, self.namespace) if run.name == name), None)
        self._version = replica.version if replica else ""
        return replica

    def _write(self, pending: Sequence[PendingUndo]) -> None:
        data = {_RUN: _json(self.identity), _PENDING: _json(tuple(pending))}
        path = _collection(self.namespace)
        sent, self._sent = self._sent, data
        response = self.kube.request("PUT", f"{path}/{configmap_name(self.identity.run)}", body=self._object(data))
        if response.status == 409 and self._adopt(sent):
            response = self.kube.request("PUT", f"{path}/{configmap_name(self.identity.run)}", body=self._object(data))
        if response.status == 404 and not self._version:  # PUT does not create ConfigMaps
            response = self.kube.request("POST", path, body=self._object(data))
        self._version = _version_of(_decode_success(response))

    def _adopt(self, sent: Mapping[str, str]) -> bool:
        """Whether the replica is what this process had ``sent`` when the answer was lost; then its version is known."""
        response = self.kube.request("GET", _collection(self.namespace), {"labelSelector": _SELECTOR})
        for item in _decode_success(response).get("items") or []:
            if item["metadata"]["name"] == configmap_name(self.identity.run) and item.get("data") == sent:
                self._version = _version_of(item)
                return True
        return False

    def _object(self, data: Mapping[str, str]) -> dict[str, Any]:
        labels = {**MANAGED_BY_LABEL, RUN_LABEL: self.identity.run[:63].rstrip("-.")}
        metadata: dict[str, Any] = {"name": configmap_name(self.identity.run), "namespace": self.namespace}
        metadata |= {"labels": labels} | ({"resourceVersion": self._version} if self._version else {})
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": metadata}


def configmap_name(run: str) -> str:
    """Name of the run's ConfigMap."""
    return f"{PREFIX}{run}"


def pending_runs(kube: KubeApi, namespace: str) -> list[PendingRun]:
    """Replicas of all runs on this cluster. Raises NodefallError."""
    response = kube.request("GET", _collection(namespace), {"labelSelector": _SELECTOR})
    items = _decode_success(response).get("items") or []
    return [_parse(item) for item in items if item["metadata"]["name"].startswith(PREFIX)]


def delete_configmap(kube: KubeApi, namespace: str, run: str, version: str = "") -> None:
    """Delete the run's ConfigMap, if it exists; with ``version`` only exactly that one. Raises NodefallError."""
    body = {"kind": "DeleteOptions", "preconditions": {"resourceVersion": version}} if version else None
    response = kube.request("DELETE", f"{_collection(namespace)}/{configmap_name(run)}", body=body)
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
    return PendingRun(name, identity, pending, version=_version_of(item))


def _decode_all(data: Mapping[str, str]) -> tuple[PendingUndo, ...]:
    values = msgspec.json.decode(data.get(_PENDING, data.get(_FORMER_PENDING, "")), type=list[Any])
    return tuple(decode_pending(value) for value in values)


def _unreadable(name: str, error: str) -> PendingRun:
    return PendingRun(name, RunIdentity(name.removeprefix(PREFIX), "", 0.0), error=error)


def _json(value: Any) -> str:
    return redact_json(msgspec.json.encode(value)).decode()


def _version_of(item: Mapping[str, Any]) -> str:
    return str((item.get("metadata") or {}).get("resourceVersion", ""))


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _decode_success(response: Response) -> dict[str, Any]:
    if response.status == 409:
        raise NodefallError("it was changed by another process")
    if response.status >= 300:
        hint = "grant the permissions that nodefall rbac prints" if response.status == 403 else ""
        raise NodefallError(f"the API server answered {response.status}: {status_message(response)}", hint=hint)
    return dict(decode_body(response))
