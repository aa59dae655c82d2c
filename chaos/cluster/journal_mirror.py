"""Writes and reads the replica of a run's journal in the cluster.

The replica is written before each operation, as the journal on disk is; an undo waits for neither. It contains no
secrets, as states name none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.cluster.errors import decode_body, status_message
from chaos.cluster.replica import (
    PREFIX,
    PendingRun,
    ReplicaEntry,
    RunIdentity,
    Signer,
    configmap_name,
    configmaps_path,
    decode_replica,
    encode_replica,
    version_of,
)
from chaos.core.api_path import object_path
from chaos.core.errors import Aborted, NodefallError
from chaos.core.labels import MANAGED_BY_LABEL, RUN_LABEL, name_from_run
from chaos.core.ports import KubeApi, Response
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import EntryKey, PendingUndo, entry_key

_PAGE = "50"  # ConfigMaps that are read at once: each may have a MiB
_MAX_BYTES = 64 << 20  # of all of them, as JSON
_SELECTOR = ",".join(f"{key}={value}" for key, value in MANAGED_BY_LABEL.items())


@dataclass
class JournalMirror:
    """Writes the replica of one run's journal."""

    kube: KubeApi
    namespace: str
    identity: RunIdentity
    journal: Journal
    signer: Signer
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

    def reconcile(self, rejected: Sequence[ReplicaEntry] = ()) -> str:
        """After an undo: write the replica, or delete it if nothing is pending. Returns why that failed, or "".

        It stays as it is while it has ``rejected`` entries, which are not in the journal: they were not undone.
        """
        if not self.journal.has_replica or rejected:
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
        replica = self.read()
        is_own = replica is not None and replica.identity.holder == self.identity.holder
        return frozenset(entry.key for entry in replica.entries) if replica and is_own else frozenset()

    def still_published(self) -> frozenset[EntryKey]:
        """The entries in the replica, whichever process wrote it; all of an unreadable one.

        Requires the cluster's lock. Raises NodefallError.
        """
        replica = self.read()
        if replica and replica.error:
            return frozenset(map(entry_key, self.journal.pending()))
        return frozenset(entry.key for entry in replica.entries) if replica else frozenset()

    def read(self) -> PendingRun | None:
        """The replica, whose version is the one to be written over from now on. Raises NodefallError."""
        replica = find_replica(self.kube, self.namespace, self.identity.run)
        self._version = replica.version if replica else ""
        return replica

    def _write(self, pending: Sequence[PendingUndo]) -> None:
        name = configmap_name(self.identity.run)
        data = self.signer.sign(name, encode_replica(self.identity, pending))
        path = configmaps_path(self.namespace)
        sent, self._sent = self._sent, data
        response = self.kube.request("PUT", object_path(path, name), body=self._object(data))
        if response.status == 409 and self._adopt(sent):
            response = self.kube.request("PUT", object_path(path, name), body=self._object(data))
        if response.status == 404 and not self._version:  # PUT does not create ConfigMaps
            response = self.kube.request("POST", path, body=self._object(data))
        self._version = version_of(_decode_success(response))

    def _adopt(self, sent: Mapping[str, str]) -> bool:
        """Whether the replica is what this process had ``sent`` when the answer was lost; then its version is known."""
        for item in _list(self.kube, self.namespace, self.identity.run):
            if item.get("data") == sent:
                self._version = version_of(item)
                return True
        return False

    def _object(self, data: Mapping[str, str]) -> dict[str, Any]:
        labels = {**MANAGED_BY_LABEL, RUN_LABEL: name_from_run(self.identity.run)}
        metadata: dict[str, Any] = {"name": configmap_name(self.identity.run), "namespace": self.namespace}
        metadata |= {"labels": labels} | ({"resourceVersion": self._version} if self._version else {})
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": dict(data), "metadata": metadata}


def pending_runs(kube: KubeApi, namespace: str) -> list[PendingRun]:
    """Replicas of all runs on this cluster. Raises NodefallError."""
    return [decode_replica(item) for item in _list(kube, namespace) if item["metadata"]["name"].startswith(PREFIX)]


def find_replica(kube: KubeApi, namespace: str, run: str) -> PendingRun | None:
    """The replica of a run, None if there is none, however many others there are. Raises NodefallError."""
    return next((decode_replica(item) for item in _list(kube, namespace, run)), None)


def _list(kube: KubeApi, namespace: str, run: str = "") -> list[dict[str, Any]]:
    """ConfigMaps with nodefall's label, of all runs or of one. Raises NodefallError, also for too many of them."""
    found: list[dict[str, Any]] = []
    name = configmap_name(run)
    query = {"labelSelector": _SELECTOR, "limit": _PAGE} | ({"fieldSelector": f"metadata.name={name}"} if run else {})
    size = 0
    while True:
        response = kube.request("GET", configmaps_path(namespace), query)
        page = _decode_success(response)
        found += (item for item in page.get("items") or [] if not run or item["metadata"]["name"] == name)
        size += len(response.body)
        query["continue"] = str((page.get("metadata") or {}).get("continue") or "")
        if not query["continue"]:
            return found
        if size > _MAX_BYTES:
            why = f"the ConfigMaps {_SELECTOR} in {namespace} have more than {_MAX_BYTES >> 20} MiB"
            raise NodefallError(why, hint="delete those that no run created")


def delete_configmap(kube: KubeApi, namespace: str, run: str, version: str = "") -> None:
    """Delete the run's ConfigMap, if it exists; with ``version`` only exactly that one. Raises NodefallError."""
    body = {"kind": "DeleteOptions", "preconditions": {"resourceVersion": version}} if version else None
    response = kube.request("DELETE", object_path(configmaps_path(namespace), configmap_name(run)), body=body)
    if response.status != 404:
        _decode_success(response)


def _decode_success(response: Response) -> dict[str, Any]:
    if response.status == 409:
        raise NodefallError("it was changed by another process")
    if response.status >= 300:
        hint = "grant the permissions that nodefall rbac prints" if response.status == 403 else ""
        raise NodefallError(f"the API server answered {response.status}: {status_message(response)}", hint=hint)
    return dict(decode_body(response))
