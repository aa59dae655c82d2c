"""Asking the cluster what we may do, before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chaos.kube.response import decode_body, status_message
from chaos.model.api_fact import field
from chaos.model.errors import NodefallError, Refused
from chaos.model.permission import Permission
from chaos.model.ports import KubeApi
from chaos.model.threads import ContextPool

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MAX_THREADS = 8


def missing_permissions(kube: KubeApi, rights: Sequence[Permission]) -> list[Permission]:
    """Those that we do not have, by SelfSubjectAccessReview. Raises NodefallError where that cannot be asked."""
    with ContextPool(_MAX_THREADS) as pool:
        allowed = list(pool.map(lambda right: _is_allowed(kube, right), rights))
    return [right for right, may in zip(rights, allowed, strict=True) if not may]


def refuse_missing(kube: KubeApi, rights: Sequence[Permission]) -> None:
    """Raises Refused, naming what is missing."""
    if lacking := missing_permissions(kube, rights):
        raise Refused(
            f"the credentials of the kubeconfig may not {'; '.join(str(right) for right in lacking)}",
            hint="nodefall rbac EXPERIMENT prints the roles that are needed, for kubectl apply",
        )


def _is_allowed(kube: KubeApi, right: Permission) -> bool:
    body: dict[str, Any] = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body["spec"] = _review_spec(right)
    response = kube.request("POST", _PATH, body=body)
    if response.status >= 300:
        raise NodefallError(f"what we may do could not be asked: {response.status}: {status_message(response)}")
    return field(decode_body(response), "/status/allowed") is True


def _review_spec(right: Permission) -> dict[str, dict[str, str]]:
    if right.is_non_resource:
        return {"nonResourceAttributes": {"verb": right.verb, "path": right.resource}}
    resource, _, subresource = right.resource.partition("/")
    asked = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource}
    asked |= {"namespace": right.namespace, "name": right.name}
    return {"resourceAttributes": {key: value for key, value in asked.items() if value}}
