"""The ConfigMaps that hold the state of game days, as text: one for each game day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.cluster.replica import version_of
from chaos.cluster.response import check_success, decode_body
from chaos.core.labels import GAME_DAY_LABEL, GAME_DAY_PREFIX, MANAGED_BY_LABEL
from chaos.core.ports import KubeApi, Response

HALT = "nodefall.dev/halt"  # annotation: why the day is to be halted, as by kubectl annotate
_STATE = "state.json"
_CONFLICT, _NOT_FOUND = 409, 404


@dataclass(frozen=True, slots=True)
class DayRecord:
    """The state of the game day ``name`` that was read. ``halt``: why it is annotated to be halted, else None."""

    name: str
    text: str
    version: str  # resourceVersion
    halt: str | None = None


def list_days(kube: KubeApi, namespace: str, name: str = "") -> list[DayRecord]:
    """The states of all game days, or of the one with this name. Raises NodefallError."""
    selector = f"{GAME_DAY_LABEL}={name}" if name else GAME_DAY_LABEL
    body = _decode_success(kube.request("GET", _collection(namespace), {"labelSelector": selector}), "read")
    records = [_record(item) for item in body.get("items") or []]
    return [record for record in records if record.name and name in ("", record.name)]


def read_day(kube: KubeApi, namespace: str, name: str) -> DayRecord | None:
    """The state of a game day, None if there is none. Raises NodefallError."""
    return next(iter(list_days(kube, namespace, name)), None)


def write_day(kube: KubeApi, namespace: str, name: str, text: str, over: DayRecord | None) -> bool:
    """Write a state over exactly the one that was read; False if it has changed. Raises NodefallError."""
    metadata: dict[str, Any] = {
        "name": f"{GAME_DAY_PREFIX}{name}",
        "namespace": namespace,
        "labels": {**MANAGED_BY_LABEL, GAME_DAY_LABEL: name},
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_STATE: text}}
    if over is None:
        response = kube.request("POST", _collection(namespace), body=body)
    else:
        metadata["resourceVersion"] = over.version
        response = kube.request("PUT", f"{_collection(namespace)}/{metadata['name']}", body=body)
    if response.status == _CONFLICT or (response.status == _NOT_FOUND and over is not None):
        return False
    _decode_success(response, "written")
    return True


def _record(item: Mapping[str, Any]) -> DayRecord:
    metadata = item.get("metadata") or {}
    name = str(metadata.get("name", ""))
    is_day = name.startswith(GAME_DAY_PREFIX)
    halt = (metadata.get("annotations") or {}).get(HALT)
    text = str((item.get("data") or {}).get(_STATE, ""))
    reason = None if halt is None else str(halt)
    return DayRecord(name.removeprefix(GAME_DAY_PREFIX) if is_day else "", text, version_of(item), reason)


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _decode_success(response: Response, operation: str) -> dict[str, Any]:
    check_success(response, f"the state of the game day cannot be {operation}")
    return dict(decode_body(response))
