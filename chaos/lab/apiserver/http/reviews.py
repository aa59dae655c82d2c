"""SelfSubjectAccessReview, SelfSubjectRulesReview and SelfSubjectReview."""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.http.access import Attributes, User
from chaos.lab.apiserver.http.errors import ApiError


def review(kind: str, body: dict[str, Any], user: User) -> dict[str, Any]:
    """Response to a review of this kind. Raises ApiError 403, 422."""
    if user.is_anonymous:
        raise ApiError(403, f'forbidden: User "{user.name}" cannot create a {kind}')
    spec = body.get("spec") or {}
    if kind == "SelfSubjectReview":
        status: dict[str, Any] = {"userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups)}}
    elif kind == "SelfSubjectRulesReview":
        status = _rules(user, str(spec.get("namespace", "")))
    else:
        status = _access(user, spec)
    group = "authentication" if kind == "SelfSubjectReview" else "authorization"
    return {"kind": kind, "apiVersion": f"{group}.k8s.io/v1", "metadata": {}, "spec": spec, "status": status}


def _access(user: User, spec: dict[str, Any]) -> dict[str, Any]:
    resource_attributes, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    if bool(resource_attributes) == bool(path):
        reason = "spec: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise ApiError(422, f'SelfSubjectAccessReview.authorization.k8s.io "" is invalid: {reason}')
    if path:
        attributes = Attributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    else:
        field = {key: str(resource_attributes.get(key) or "") for key in ("verb", "group", "resource", "subresource")}
        resource = field["resource"] + (f"/{field['subresource']}" if field["subresource"] else "")
        namespace, name = (str(resource_attributes.get(key) or "") for key in ("namespace", "name"))
        attributes = Attributes(field["verb"], field["group"], resource, namespace, name)
    return {"allowed": user.is_allowed(attributes)}


def _rules(user: User, namespace: str) -> dict[str, Any]:
    rules = [
        {
            "verbs": rule.verbs,
            "apiGroups": rule.api_groups,
            "resources": rule.resources,
            **({"resourceNames": rule.resource_names} if rule.resource_names else {}),
        }
        for rule in user.rules
        if rule.resources and (not rule.namespaces or namespace in rule.namespaces)
    ]
    paths = [
        {"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}
        for rule in user.rules
        if rule.non_resource_urls
    ]
    return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
