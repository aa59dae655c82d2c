"""Authentication by bearer tokens, and authorization by rules like those of RBAC roles.

Sources: k8s.io/apiserver pkg/endpoints/request/requestinfo.go (verbs), pkg/endpoints/handlers/responsewriters/errors.go
(messages), k8s.io/kubernetes pkg/apis/rbac/v1/evaluation_helpers.go (rules), and the bootstrap roles system:discovery,
system:public-info-viewer and system:basic-user.
SelfSubjectAccessReview, SelfSubjectRulesReview and SelfSubjectReview.
"""

from __future__ import annotations

import hmac
import re
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.http.errors import ApiError
from chaos.lab.http.resources import RequestInfo
from chaos.lab.spec import ADMIN
from chaos.lab.users import Rule, UserSpec

_ANYTHING = Rule(verbs=["*"], api_groups=["*"], resources=["*"])
_PUBLIC_PATHS = re.compile(r"/(version|healthz|livez|readyz)/?")
_AUTHENTICATED_PATHS = re.compile(r"/(api|apis|openapi)(/.*)?")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of a request, on a resource or on a non-resource ``path``. As authorizer.Attributes."""

    verb: str
    group: str = ""
    resource: str = ""  # with the subresource: pods/eviction
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    token: str = ""
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def is_anonymous(self) -> bool:
        return not self.token

    def is_allowed(self, attributes: Attributes) -> bool:
        """Whether a rule allows the request."""
        if attributes.path:
            if self.rules == (_ANYTHING,) or _PUBLIC_PATHS.fullmatch(attributes.path):
                return True
            if attributes.verb == "get" and not self.is_anonymous and _AUTHENTICATED_PATHS.fullmatch(attributes.path):
                return True
        return any(_allows(rule, attributes) for rule in self.rules)


_ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Access:
    """Users of a lab: an administrator, and the users of its LabSpec."""

    def __init__(self, users: Iterable[UserSpec] = ()) -> None:
        self.admin = _user(ADMIN, ("kubeadm:cluster-admins",), (_ANYTHING,), "")
        self.users = [self.admin, *(_user(spec.name, (), tuple(spec.rules), spec.token) for spec in users)]

    def authenticate(self, authorization: str) -> User:
        """User of an Authorization header, anonymous if it is empty. Raises ApiError 401 for a wrong token."""
        if not authorization:
            return _ANONYMOUS
        for user in self.users:
            if hmac.compare_digest(authorization.encode(), f"Bearer {user.token}".encode()):
                return user
        raise ApiError(401, "Unauthorized")

    @staticmethod
    def authorize(user: User, attributes: Attributes) -> None:
        """Raise ApiError 403 unless a rule allows the request."""
        if user.is_allowed(attributes):
            return
        if attributes.path:
            raise ApiError(403, f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"')
        plural = attributes.resource.partition("/")[0]
        head = plural + (f".{attributes.group}" if attributes.group else "")
        head += f' "{attributes.name}"' if attributes.name else ""
        scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        action = f'{attributes.verb} resource "{attributes.resource}" in API group "{attributes.group}"'
        details = {"name": attributes.name, "group": attributes.group, "kind": plural}
        details = {key: value for key, value in details.items() if value}
        raise ApiError(403, f'{head} is forbidden: User "{user.name}" cannot {action} {scope}', "", details)


def attributes_of(method: str, info: RequestInfo, is_watch: bool = False) -> Attributes:
    """Attributes of a request to a resource."""
    verb = _VERBS.get(method, method.lower())
    if not info.name and verb in ("get", "delete"):
        verb = {"get": "watch" if is_watch else "list", "delete": "deletecollection"}[verb]
    resource = info.resource.plural + (f"/{info.subresource}" if info.subresource else "")
    namespace = info.name if info.resource.plural == "namespaces" else info.namespace
    return Attributes(verb, info.resource.group, resource, namespace, info.name)


def _user(name: str, groups: tuple[str, ...], rules: tuple[Rule, ...], token: str) -> User:
    return User(name, (*groups, "system:authenticated"), rules, token or secrets.token_urlsafe(24))


def _allows(rule: Rule, attributes: Attributes) -> bool:
    if attributes.path:
        verbs, paths = {"*", attributes.verb}, {"*", attributes.path}
        return not verbs.isdisjoint(rule.verbs) and not paths.isdisjoint(rule.non_resource_urls)
    _, _, subresource = attributes.resource.partition("/")
    resources = {"*", attributes.resource, *([f"*/{subresource}"] if subresource else [])}
    return (
        not {"*", attributes.verb}.isdisjoint(rule.verbs)
        and not {"*", attributes.group}.isdisjoint(rule.api_groups)
        and not resources.isdisjoint(rule.resources)
        and (not rule.resource_names or attributes.name in rule.resource_names)
        and (not rule.namespaces or attributes.namespace in rule.namespaces)
    )


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
