"""Objects that are applied server-side with a label, and deleted by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chaos.cluster.response import check_fleet_success, decode_body, status_message
from chaos.cluster.workload import collection_path
from chaos.core.errors import Refused
from chaos.core.ports import KubeApi

_APPLY = "application/apply-patch+yaml"
_NOT_FOUND, _CONFLICT = 404, 409


def apply_object(kube: KubeApi, manifest: Mapping[str, Any]) -> None:
    """Create the object, or bring it to what the manifest says. Raises NodefallError, Refused.

    A field that someone else has set to something else is a conflict, and refused.
    """
    metadata = manifest["metadata"]
    path = f"{_collection(manifest)}/{metadata['name']}"
    response = kube.request("PATCH", path, body=dict(manifest), content_type=_APPLY)
    if response.status == _CONFLICT:
        raise Refused(f"{_name(manifest)} is not ours to change: {status_message(response)}")
    check_fleet_success(response, f"{_name(manifest)} cannot be applied")


def delete_labelled(kube: KubeApi, manifests: Sequence[Mapping[str, Any]], selector: str) -> list[str]:
    """Delete the objects with these labels, of the kinds and namespaces of ``manifests``; which ones, as KIND/NAME.

    ``selector``: a label selector. What has no such label is never touched. Raises NodefallError.
    """
    deleted = []
    for collection, kind in {_collection(manifest): manifest["kind"] for manifest in reversed(manifests)}.items():
        response = kube.request("GET", collection, {"labelSelector": selector})
        check_fleet_success(response, f"objects of kind {kind} cannot be listed")
        for item in decode_body(response).get("items") or []:
            name, uid = item["metadata"]["name"], item["metadata"]["uid"]
            body = {"kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}}
            answer = kube.request("DELETE", f"{collection}/{name}", body=body)
            if answer.status not in (_NOT_FOUND, _CONFLICT):
                check_fleet_success(answer, f"{kind} {name} cannot be deleted")
            deleted.append(f"{kind}/{name}")
    return deleted


def _collection(manifest: Mapping[str, Any]) -> str:
    return collection_path(dict(manifest), manifest["metadata"].get("namespace", ""))


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace", "")
    return (
        f"{manifest['kind']} {namespace}/{metadata['name']}" if namespace else f"{manifest['kind']} {metadata['name']}"
    )
