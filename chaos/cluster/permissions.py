"""Permission check: ask the API server what the credentials may do, before a run begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chaos.cluster.response import decode_body, status_message
from chaos.core.api_fact import field
from chaos.core.errors import NodefallError, Refused
from chaos.core.permission import Permission
from chaos.core.ports import KubeApi
from chaos.core.threads import SYSTEM_THREADS, Threads

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MAX_THREADS = 8


def missing_permissions(
    kube: KubeApi, permissions: Sequence[Permission], threads: Threads = SYSTEM_THREADS
) -> list[Permission]:
    """The permissions that a SelfSubjectAccessReview denies. Raises NodefallError if a review fails."""
    with threads.pool(_MAX_THREADS) as pool:
        reviews = list(pool.map(lambda permission: _is_allowed(kube, permission), permissions))
    return [permission for permission, allowed in zip(permissions, reviews, strict=True) if not allowed]


def refuse_missing(kube: KubeApi, permissions: Sequence[Permission], threads: Threads = SYSTEM_THREADS) -> None:
    """Raises Refused, naming the missing permissions."""
    if missing := missing_permissions(kube, permissions, threads):
        raise Refused(
            f"the credentials of the kubeconfig may not {'; '.join(str(permission) for permission in missing)}",
            hint="apply the roles that nodefall rbac EXPERIMENT prints",
        )


def _is_allowed(kube: KubeApi, permission: Permission) -> bool:
    body: dict[str, Any] = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body["spec"] = _review_spec(permission)
    response = kube.request("POST", _PATH, body=body)
    if response.status >= 300:
        raise NodefallError(f"permissions cannot be reviewed: {response.status}: {status_message(response)}")
    return field(decode_body(response), "/status/allowed") is True


def _review_spec(permission: Permission) -> dict[str, dict[str, str]]:
    if permission.is_non_resource:
        return {"nonResourceAttributes": {"verb": permission.verb, "path": permission.resource}}
    resource, _, subresource = permission.resource.partition("/")
    attributes = {"verb": permission.verb, "group": permission.group, "resource": resource, "subresource": subresource}
    attributes |= {"namespace": permission.namespace, "name": permission.name}
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
