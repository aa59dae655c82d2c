"""The rights that an experiment needs on a cluster: to look on, for lock and journal, its workload, its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from chaos.model.action import Undo
from chaos.model.api_fact import OBJECT
from chaos.model.assertion import ControllerManagerAssertion
from chaos.model.command import KubeCommand
from chaos.model.experiment import Experiment, ServiceReference
from chaos.model.labels import LOCK_NAME, NODE_EVENT_NAMESPACE, NODE_LEASE_NAMESPACE
from chaos.model.permission import Permission, permission_for_request
from chaos.model.registry import PluginRegistry
from chaos.model.resources import RESOURCES

_NAMESPACE = "namespace/"  # a check whether one is gone


@dataclass(frozen=True, slots=True)
class PermissionInputs:
    """What the rights depend on besides the experiment: ``workload`` is how its objects are created, ``removal`` how
    they go; ``keeps`` is the namespace of the lock and the journals; ``proxy`` is the inventory's allowNodeProxy.
    """

    lock_namespace: str
    workload: Sequence[KubeCommand] = ()
    removal: Undo = field(default_factory=Undo)
    allow_node_proxy: bool = False
    events: bool = True


def compute_permissions(
    experiment: Experiment, catalogue: PluginRegistry, setting: PermissionInputs
) -> list[Permission]:
    """Sorted, each once, without those that another one covers."""
    rights = {
        *_observer_permissions(setting.allow_node_proxy),
        *_lock_permissions(setting.lock_namespace),
        *_workload_permissions(setting),
    }
    for step in experiment.spec.method:
        action = catalogue.actions[step.action]
        rights.update(action.permissions(action.params.model_validate(step.with_)))
    if setting.events:
        rights.add(Permission("", "events", "create", NODE_EVENT_NAMESPACE))
    rights.update(_proxy_permission(probe.service) for probe in experiment.spec.probes if probe.service)
    if uses_controller_manager(experiment, catalogue):
        rights.add(Permission("", "/metrics", "get"))
    return sorted(right for right in rights if not any(o != right and o.covers(right) for o in rights))


def uses_controller_manager(experiment: Experiment, catalogue: PluginRegistry) -> bool:
    """Whether any of its questions is about metrics of the controller-manager."""
    spec = experiment.spec
    for asked in (*spec.steady_state, *spec.hypothesis, *spec.abort):
        assertion = catalogue.assertions[asked.assert_] if asked.assert_ else None
        if isinstance(assertion, ControllerManagerAssertion) and assertion.uses_controller_manager(
            assertion.params.model_validate(asked.with_)
        ):
            return True
    return False


def _proxy_permission(service: ServiceReference) -> Permission:
    inside = "" if service.namespace == "workload" else service.namespace
    return Permission("", "services/proxy", "get", inside, service.proxy_name)


def _observer_permissions(proxy: bool) -> Iterator[Permission]:
    """What is watched in every run, and asked of the kubelets' own ports."""
    for resource in RESOURCES.values():
        listed = permission_for_request("GET", resource.path)
        for verb in ("list", "watch"):
            yield replace(listed, verb=verb, namespace=NODE_LEASE_NAMESPACE if resource.plural == "leases" else "")
    for name in ("nodes", "nodes/metrics", "nodes/configz", *(["nodes/proxy"] if proxy else [])):
        yield Permission("", name, "get")
    yield Permission("", "namespaces", "get", "", "kube-system")  # its uid tells clusters apart


def _lock_permissions(keeps: str) -> Iterator[Permission]:
    """The lock and the journals of runs. What is created has no name yet when it is asked for."""
    for verb in ("get", "update", "patch", "delete"):
        yield Permission("coordination.k8s.io", "leases", verb, keeps, LOCK_NAME)
    yield Permission("coordination.k8s.io", "leases", "create", keeps)
    for verb in ("list", "create", "update", "delete"):
        yield Permission("", "configmaps", verb, keeps)


def _workload_permissions(setting: PermissionInputs) -> Iterator[Permission]:
    """Everywhere, as its namespace has a name that nobody knows before."""
    for command in setting.workload:
        yield replace(permission_for_request(command.method, command.path), namespace="", name="")
    for step in setting.removal.steps:
        if isinstance(step.command, KubeCommand):
            yield replace(permission_for_request(step.command.method, step.command.path), namespace="", name="")
    for check in (*setting.removal.proof, *(step.unless for step in setting.removal.steps if step.unless)):
        if check.fact.startswith(_NAMESPACE):
            yield Permission("", "namespaces", "get")
        elif check.fact.startswith(f"{OBJECT}/"):
            path = check.fact.removeprefix(OBJECT).partition("#")[0]
            yield replace(permission_for_request("GET", path), namespace="", name="")


def permissions_to_list(rights: Iterable[Permission], lists: Iterable[str]) -> list[Permission]:
    """Those to list the collections ``lists`` that are not among ``rights``, sorted."""
    asked = {permission_for_request("GET", path) for path in lists}
    return sorted(right for right in asked if not any(other.covers(right) for other in rights))


def describe_risk(right: Permission) -> str:
    """Why a right amounts to more than its name says, "" for most."""
    if right.resource == "nodes/proxy":
        return "nodes/proxy amounts to running commands in every pod of every node"
    return ""


def policy_rules(rights: Iterable[Permission]) -> list[dict[str, Any]]:
    """As rules of one role, those together that differ in the resource only."""
    rights = list(rights)
    paths = [{"nonResourceURLs": [right.resource], "verbs": [right.verb]} for right in rights if right.is_non_resource]
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in (right for right in rights if not right.is_non_resource):
        verbs.setdefault((right.group, right.name, right.resource), []).append(right.verb)
    merged: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, name, resource), some in verbs.items():
        merged.setdefault((group, name, tuple(some)), []).append(resource)
    named = [
        {"apiGroups": [group], "resources": resources}
        | ({"resourceNames": [name]} if name else {})
        | {"verbs": [*some]}
        for (group, name, some), resources in merged.items()
    ]
    return named + paths


def role_manifests(rights: Iterable[Permission], name: str, subject: dict[str, str]) -> list[dict[str, Any]]:
    """A ClusterRole and a Role for each namespace, each with its binding to ``subject``."""
    by_namespace: dict[str, list[Permission]] = {}
    for right in sorted(rights):
        by_namespace.setdefault(right.namespace, []).append(right)
    return [
        doc
        for namespace, some in sorted(by_namespace.items())
        for doc in _role_and_binding(namespace, some, name, subject)
    ]


def _role_and_binding(
    namespace: str, rights: list[Permission], name: str, subject: dict[str, str]
) -> list[dict[str, Any]]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    head = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    return [
        head | {"kind": kind, "metadata": metadata, "rules": policy_rules(rights)},
        head | {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [subject]},
    ]
