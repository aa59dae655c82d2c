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

from chaos.model.errors import Aborted, NodefallError
from chaos.model.experiment import NAME
from chaos.model.marks import MANAGED_BY, RUN
from chaos.model.ports import KubeApi, Response
from chaos.model.secrecy import masked_json
from chaos.observers.wire import UNDECODABLE
from chaos.store.journal import Journal, Owed
from chaos.transports.kube_answer import decoded, words

PREFIX = "nodefall-run-"
_SELECTOR = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
_RUN, _OWED = "run.json", "owed.json"


class Debtor(Struct, frozen=True):
    """Whose debts they are; ``holder`` as in the cluster's lock."""

    run: str
    experiment: str
    started: float
    holder: str = ""


class Debt(Struct, frozen=True):
    """A run's ConfigMap; ``damaged`` says why it cannot be read (then it may owe anything)."""

    name: str
    debtor: Debtor
    owed: tuple[Owed, ...] = ()
    damaged: str = ""

    @property
    def open(self) -> bool:
        """Whether something is left to be taken back."""
        return bool(self.damaged) or any(owed.undo.proof for owed in self.owed)


@dataclass
class Ledger:
    """Of one run."""

    kube: KubeApi
    namespace: str
    debtor: Debtor
    journal: Journal

    def publish(self) -> None:
        """Raises Aborted where it cannot be written: nothing is done that no other machine could take back."""
        self.journal.mirror(True)
        try:
            self._write(self.journal.owed())
        except NodefallError as error:
            raise Aborted(
                f"the journal could not be written to the cluster: {error.message}", hint=error.hint
            ) from error

    def settle(self) -> str:
        """After an undo: removed when nothing is owed any more. Why that failed, or ""."""
        if not self.journal.mirrored:
            return ""
        owed = self.journal.owed()
        try:
            if any(entry.undo.proof for entry in owed):
                self._write(owed)
            else:
                remove(self.kube, self.namespace, self.debtor.run)
                self.journal.mirror(False)
        except NodefallError as error:
            return (
                f"the journal in the cluster (ConfigMap {self.namespace}/{name_of(self.debtor.run)}): {error.message}"
            )
        return ""

    def _write(self, owed: Sequence[Owed]) -> None:
        name = name_of(self.debtor.run)
        labels = {**MANAGED_BY, RUN: self.debtor.run[:63].rstrip("-.")}
        data = {_RUN: _json(self.debtor), _OWED: _json(tuple(owed))}
        obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        obj["metadata"] = {"name": name, "namespace": self.namespace, "labels": labels}
        path = _collection(self.namespace)
        response = self.kube.request("PUT", f"{path}/{name}", body=obj)
        if response.status == 404:  # PUT creates none of these
            response = self.kube.request("POST", path, body=obj)
        _good(response)


def name_of(run: str) -> str:
    """Of the run's ConfigMap."""
    return f"{PREFIX}{run}"


def debts(kube: KubeApi, namespace: str) -> list[Debt]:
    """Of all runs on this cluster. Raises NodefallError."""
    response = kube.request("GET", _collection(namespace), {"labelSelector": _SELECTOR})
    items = _good(response).get("items") or []
    return [_parse(item) for item in items if item["metadata"]["name"].startswith(PREFIX)]


def remove(kube: KubeApi, namespace: str, run: str) -> None:
    """Raises NodefallError unless it is gone."""
    response = kube.request("DELETE", f"{_collection(namespace)}/{name_of(run)}")
    if response.status != 404:
        _good(response)


def _parse(item: dict[str, Any]) -> Debt:
    name, data = str(item["metadata"]["name"]), item.get("data") or {}
    try:
        debtor = msgspec.json.decode(data.get(_RUN, ""), type=Debtor)
        owed = msgspec.json.decode(data.get(_OWED, ""), type=tuple[Owed, ...])
    except UNDECODABLE as error:
        return _damaged(name, str(error))
    if name_of(debtor.run) != name or not re.fullmatch(NAME, debtor.experiment):  # they become paths
        return _damaged(name, f"it names the run {debtor.run!r} of the experiment {debtor.experiment!r}")
    return Debt(name, debtor, owed)


def _damaged(name: str, why: str) -> Debt:
    return Debt(name, Debtor(name.removeprefix(PREFIX), "", 0.0), damaged=why)


def _json(value: Any) -> str:
    return masked_json(msgspec.json.encode(value)).decode()


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _good(response: Response) -> dict[str, Any]:
    if response.status >= 300:
        hint = "nodefall rbac prints the rights that it needs" if response.status == 403 else ""
        raise NodefallError(f"the API server answered {response.status}: {words(response)}", hint=hint)
    return dict(decoded(response))
