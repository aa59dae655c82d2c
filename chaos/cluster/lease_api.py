"""Requests about the Lease of a lock, by default that of the cluster."""

from __future__ import annotations

from typing import Any

from chaos.cluster.lease import ABORT, LeaseRecord, parse
from chaos.cluster.response import check_success, decode_body
from chaos.core.command import MERGE_PATCH
from chaos.core.labels import LOCK_NAME
from chaos.core.ports import KubeApi, Response

_CONFLICT, _NOT_FOUND = 409, 404


def read_lock(kube: KubeApi, namespace: str, name: str = LOCK_NAME) -> LeaseRecord | None:
    """The lock; None if there is none. Raises NodefallError."""
    response = kube.request("GET", _path(namespace, name))
    return None if response.status == 404 else parse(_decode_success(response, "read"))


def write_lock(kube: KubeApi, namespace: str, over: LeaseRecord | None, lease: dict[str, Any]) -> bool:
    """Write the Lease over exactly the record that was read; False if it has changed. Raises NodefallError."""
    if over is None:
        response = kube.request("POST", _collection(namespace), body=lease)
    else:
        response = kube.request("PUT", _path(namespace, lease["metadata"]["name"]), body=lease)
        if response.status == _NOT_FOUND:
            return False
    if response.status == _CONFLICT:
        return False
    _decode_success(response, "written")
    return True


def delete_lock(kube: KubeApi, namespace: str, record: LeaseRecord, name: str = LOCK_NAME) -> bool:
    """Delete exactly the record that was read; whether it is gone. Raises NodefallError."""
    preconditions = {"resourceVersion": record.version}
    body = {"kind": "DeleteOptions", "preconditions": preconditions}
    response = kube.request("DELETE", _path(namespace, name), body=body)
    return response.status in (200, 202, _NOT_FOUND)


def request_abort(kube: KubeApi, namespace: str, why: str) -> None:
    """Annotate the lock; its holder reads the annotation within a second. Raises NodefallError."""
    patch = {"metadata": {"annotations": {ABORT: why}}}
    _decode_success(
        kube.request("PATCH", _path(namespace, LOCK_NAME), body=patch, content_type=MERGE_PATCH), "annotated"
    )


def _path(namespace: str, name: str) -> str:
    return f"{_collection(namespace)}/{name}"


def _collection(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _decode_success(response: Response, operation: str) -> dict[str, Any]:
    check_success(response, f"the cluster's lock cannot be {operation}")
    return dict(decode_body(response))
