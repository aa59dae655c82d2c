"""Who asks, and whether it may: bearer tokens, and rules as those of RBAC roles.

Sources: k8s.io/apiserver pkg/endpoints/request/requestinfo.go (verbs), pkg/endpoints/handlers/responsewriters/errors.go
(words), k8s.io/kubernetes pkg/apis/rbac/v1/evaluation_helpers.go (rules), and the bootstrap roles system:discovery,
system:public-info-viewer and system:basic-user.
"""

from __future__ import annotations

import hmac
import re
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.spec import ADMIN, Rule, UserSpec

_ANYTHING = Rule(verbs=["*"], api_groups=["*"], resources=["*"])
_PUBLIC_PATHS = re.compile(r"/(version|healthz|livez|readyz)/?")
_AUTHENTICATED_PATHS = re.compile(r"/(api|apis|openapi)(/.*)?")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """What somebody wants to do: with a resource, or else with a ``path``."""

    verb: str
    group: str = ""
    resource: str = ""  # with its subresource: pods/eviction
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

    def is_allowed(self, wanted: Attributes) -> bool:
        """Whether a rule allows it."""
        if wanted.path:
            if self.rules == (_ANYTHING,) or _PUBLIC_PATHS.fullmatch(wanted.path):
                return True
            if wanted.verb == "get" and not self.is_anonymous and _AUTHENTICATED_PATHS.fullmatch(wanted.path):
                return True
        return any(_allows(rule, wanted) for rule in self.rules)


_ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Access:
    """The users of a lab: an administrator, and those of its LabSpec."""

    def __init__(self, users: Iterable[UserSpec] = ()) -> None:
        self.admin = _user(ADMIN, ("kubeadm:cluster-admins",), (_ANYTHING,), "")
        self.users = [self.admin, *(_user(spec.name, (), tuple(spec.rules), spec.token) for spec in users)]

    def authenticate(self, authorization: str) -> User:
        """The user of a header Authorization. Raises ApiError 401 for a wrong token; none at all is anonymous."""
        if not authorization:
            return _ANONYMOUS
        for user in self.users:
            if hmac.compare_digest(authorization.encode(), f"Bearer {user.token}".encode()):
                return user
        raise ApiError(401, "Unauthorized")

    @staticmethod
    def authorize(user: User, wanted: Attributes) -> None:
        """Raises ApiError 403."""
        if user.is_allowed(wanted):
            return
        if wanted.path:
            raise ApiError(403, f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"')
        plural = wanted.resource.partition("/")[0]
        head = plural + (f".{wanted.group}" if wanted.group else "") + (f' "{wanted.name}"' if wanted.name else "")
        scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        what = f'{wanted.verb} resource "{wanted.resource}" in API group "{wanted.group}"'
        details = {"name": wanted.name, "group": wanted.group, "kind": plural}
        details = {key: value for key, value in details.items() if value}
        raise ApiError(403, f'{head} is forbidden: User "{user.name}" cannot {what} {scope}', "", details)


def attributes(method: str, place: RequestInfo, is_watch: bool = False) -> Attributes:
    """What a request for a place asks for."""
    verb = _VERBS.get(method, method.lower())
    if not place.name and verb in ("get", "delete"):
        verb = {"get": "watch" if is_watch else "list", "delete": "deletecollection"}[verb]
    resource = place.resource.plural + (f"/{place.subresource}" if place.subresource else "")
    namespace = place.name if place.resource.plural == "namespaces" else place.namespace
    return Attributes(verb, place.resource.group, resource, namespace, place.name)


def _user(name: str, groups: tuple[str, ...], rules: tuple[Rule, ...], token: str) -> User:
    return User(name, (*groups, "system:authenticated"), rules, token or secrets.token_urlsafe(24))


def _allows(rule: Rule, wanted: Attributes) -> bool:
    if wanted.path:
        verbs, paths = {"*", wanted.verb}, {"*", wanted.path}
        return not verbs.isdisjoint(rule.verbs) and not paths.isdisjoint(rule.non_resource_urls)
    _, _, subresource = wanted.resource.partition("/")
    resources = {"*", wanted.resource, *([f"*/{subresource}"] if subresource else [])}
    return (
        not {"*", wanted.verb}.isdisjoint(rule.verbs)
        and not {"*", wanted.group}.isdisjoint(rule.api_groups)
        and not resources.isdisjoint(rule.resources)
        and (not rule.resource_names or wanted.name in rule.resource_names)
        and (not rule.namespaces or wanted.namespace in rule.namespaces)
    )
