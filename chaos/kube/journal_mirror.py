"""What a run owes, in the cluster too: a ConfigMap that any machine can read and pay.

Written before each deed, as the journal on disk is; an undo waits for neither. It holds no secrets: commands name none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from chaos.kube.response import decode_body, status_message
from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.errors import Aborted, NodefallError
from chaos.model.experiment import NAME
from chaos.model.labels import MANAGED_BY_LABEL, RUN_LABEL
from chaos.model.ports import KubeApi, Response
from chaos.model.redaction import redact_json
from chaos.store.journal import Journal, PendingUndo

PREFIX = "nodefall-run-"
_SELECTOR = ",".join(f"{key}={value}" for key, value in MANAGED_BY_LABEL.items())
_RUN, _PENDING = "run.json", "owed.json"


class RunIdentity(Struct, frozen=True):
    """Whose debts they are; ``holder`` as in the cluster's lock."""

    run: str
    experiment: str
    started: float
    holder: str = ""


class PendingRun(Struct, frozen=True):
    """A run's ConfigMap; ``damaged`` says why it cannot be read (then it may owe anything)."""

    name: str
    identity: RunIdentity
    pending: tuple[PendingUndo, ...] = ()
    error: str = ""

    @property
    def has_pending(self) -> bool:
        """Whether something is left to be taken back."""
        return bool(self.error) or any(owed.undo.proof for owed in self.pending)


@dataclass
class JournalMirror:
    """Of one run."""

    kube: KubeApi
    namespace: str
    identity: RunIdentity
    journal: Journal

    def publish(self) -> None:
        """Raises Aborted where it cannot be written: nothing is done that no other machine could take back."""
        self.journal.record_replica(True)
        try:
            self._write(self.journal.pending())
        except NodefallError as error:
            raise Aborted(
                f"the journal could not be written to the cluster: {error.message}", hint=error.hint
            ) from error

    def reconcile(self) -> str:
        """After an undo: removed when nothing is owed any more. Why that failed, or ""."""
        if not self.journal.has_replica:
            return ""
        owed = self.journal.pending()
        try:
            if any(entry.undo.proof for entry in owed):
                self._write(owed)
            else:
                delete_configmap(self.kube, self.namespace, self.identity.run)
                self.journal.record_replica(False)
        except NodefallError as error:
            return f"the journal in the cluster (ConfigMap {self.namespace}/{configmap_name(self.identity.run)}): {error.message}"
        return ""

    def _write(self, owed: Sequence[PendingUndo]) -> None:
        name = configmap_name(self.identity.run)
        labels = {**MANAGED_BY_LABEL, RUN_LABEL: self.identity.run[:63].rstrip("-.")}
        data = {_RUN: _json(self.identity), _PENDING: _json(tuple(owed))}
        obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        obj["metadata"] = {"name": name, "namespace": self.namespace, "labels": labels}
        path = _collection(self.namespace)
        response = self.kube.request("PUT", f"{path}/{name}", body=obj)
        if response.status == 404:  # PUT creates none of these
            response = self.kube.request("POST", path, body=obj)
        _decode_success(response)


def configmap_name(run: str) -> str:
    """Of the run's ConfigMap."""
    return f"{PREFIX}{run}"


def pending_runs(kube: KubeApi, namespace: str) -> list[PendingRun]:
    """Of all runs on this cluster. Raises NodefallError."""
    response = kube.request("GET", _collection(namespace), {"labelSelector": _SELECTOR})
    items = _decode_success(response).get("items") or []
    return [_parse(item) for item in items if item["metadata"]["name"].startswith(PREFIX)]


def delete_configmap(kube: KubeApi, namespace: str, run: str) -> None:
    """Raises NodefallError unless it is gone."""
    response = kube.request("DELETE", f"{_collection(namespace)}/{configmap_name(run)}")
    if response.status != 404:
        _decode_success(response)


def _parse(item: dict[str, Any]) -> PendingRun:
    name, data = str(item["metadata"]["name"]), item.get("data") or {}
    try:
        debtor = msgspec.json.decode(data.get(_RUN, ""), type=RunIdentity)
        owed = msgspec.json.decode(data.get(_PENDING, ""), type=tuple[PendingUndo, ...])
    except DECODE_ERRORS as error:
        return _unreadable(name, str(error))
    if configmap_name(debtor.run) != name or not re.fullmatch(NAME, debtor.experiment):  # they become paths
        return _unreadable(name, f"it names the run {debtor.run!r} of the experiment {debtor.experiment!r}")
    return PendingRun(name, debtor, owed)


def _unreadable(name: str, why: str) -> PendingRun:
    return PendingRun(name, RunIdentity(name.removeprefix(PREFIX), "", 0.0), error=why)


def _json(value: Any) -> str:
    return redact_json(msgspec.json.encode(value)).decode()


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _decode_success(response: Response) -> dict[str, Any]:
    if response.status >= 300:
        hint = "nodefall rbac prints the rights that it needs" if response.status == 403 else ""
        raise NodefallError(f"the API server answered {response.status}: {status_message(response)}", hint=hint)
    return dict(decode_body(response))
