"""Permissions that an experiment needs on a cluster: for observers, lock and journal, its workload and its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from chaos.core.action import Undo
from chaos.core.api_fact import NAMESPACE, OBJECT
from chaos.core.assertion import ControllerManagerAssertion
from chaos.core.command import ApiCommand, KubeCommand
from chaos.core.errors import Refused
from chaos.core.experiment import Experiment
from chaos.core.kube import RESOURCES
from chaos.core.labels import LOCK_NAME, NODE_EVENT_NAMESPACE, NODE_LEASE_NAMESPACE
from chaos.core.permission import Permission, permission_for_fact, permission_for_request, permissions_for_command
from chaos.core.plan import Plan, PlannedStep
from chaos.core.probes import ServiceReference


@dataclass(frozen=True, slots=True)
class PermissionInputs:
    """Inputs besides the experiment.

    ``workload`` creates the workload's objects and ``removal`` deletes them. ``lock_namespace`` is the namespace of the
    lock and the journals, ``allow_node_proxy`` the inventory's allowNodeProxy; ``events``: whether Events are written.
    ``helper_namespaces``: of the pods that transport pod makes.
    """

    lock_namespace: str
    workload: Sequence[KubeCommand] = ()
    removal: Undo = field(default_factory=Undo)
    allow_node_proxy: bool = False
    events: bool = True
    helper_namespaces: Sequence[str] = ()


def compute_permissions(experiment: Experiment, inputs: PermissionInputs) -> list[Permission]:
    """The permissions of a whole run: sorted, unique, and without permissions that another permission covers."""
    permissions = {
        *_observer_permissions(inputs.allow_node_proxy),
        *_lock_permissions(inputs.lock_namespace),
        *_workload_permissions(inputs),
        *_helper_permissions(inputs.helper_namespaces),
    }
    for step in experiment.spec.method:
        permissions.update(step.bound.needs_on("linux").permissions)
    if inputs.events:
        permissions.add(Permission("", "events", "create", NODE_EVENT_NAMESPACE))
    permissions.update(_proxy_permission(probe.service) for probe in experiment.spec.probes if probe.service)
    if uses_controller_manager(experiment):
        permissions.add(Permission("", "/metrics", "get"))
    return sorted(
        permission
        for permission in permissions
        if not any(other != permission and other.covers(permission) for other in permissions)
    )


def refuse_unreviewed(plan: Plan, permissions: Sequence[Permission]) -> None:
    """Raises Refused for a step that, with its undo, sends a request beyond ``permissions``, or to another namespace.

    ``permissions`` are what nodefall shows, and what the API server has reviewed.
    """
    for step in plan.steps:
        namespace = str(step.params.get("namespace", ""))
        own = plan.namespace if namespace == "workload" else namespace
        try:
            required = list(_requests(step))
        except ValueError as error:
            raise Refused(f"step {step.label}: {error}") from error
        for each in required:
            if not any(permission.covers(each) for permission in permissions):
                raise Refused(f"step {step.label} would {each}, which its declared permissions do not include")
            if own and each.namespace not in ("", own):
                raise Refused(f"step {step.label} would {each}, but it is about namespace {own}")


def _requests(step: PlannedStep) -> Iterator[Permission]:
    """The permissions that the commands, the undo and the checks of a step need. Raises ValueError or Refused for bad
    paths.
    """
    undo = step.undo
    for command in (*step.commands, *(each.command for each in undo.steps)):
        if isinstance(command, ApiCommand):
            yield from permissions_for_command(command)
    checks = [*step.preconditions, *step.awaits, *undo.proof]
    checks += [check for each in undo.steps for check in (each.unless, *each.when) if check]
    yield from filter(None, (permission_for_fact(check.fact) for check in checks))


def uses_controller_manager(experiment: Experiment) -> bool:
    """Whether an assertion of the experiment needs the metrics of the controller-manager."""
    bound = [each.bound for each in experiment.spec.expectations if each.bound]
    may_use = ((each.assertion, each) for each in bound if isinstance(each.assertion, ControllerManagerAssertion))
    return any(assertion.uses_controller_manager(each.params) for assertion, each in may_use)


def _helper_permissions(namespaces: Iterable[str]) -> Iterator[Permission]:
    """Permissions to create helper pods and to run programs in them.

    A WebSocket is opened with GET; since 1.35 that needs create as well (AuthorizePodWebsocketUpgradeCreatePermission).
    """
    for namespace in namespaces:
        for verb in ("get", "list", "create", "delete", "deletecollection"):
            yield Permission("", "pods", verb, namespace)
        for verb in ("get", "create"):
            yield Permission("", "pods/exec", verb, namespace)
        yield Permission("", "namespaces", "get", "", namespace)  # its labels for Pod Security


def _proxy_permission(service: ServiceReference) -> Permission:
    namespace = "" if service.namespace == "workload" else service.namespace
    return Permission("", "services/proxy", "get", namespace, service.proxy_name)


def _observer_permissions(allow_node_proxy: bool) -> Iterator[Permission]:
    """Permissions for the observers: the objects that every run watches, and its reads from kubelet ports."""
    for resource in RESOURCES.values():
        to_list = permission_for_request("GET", resource.path)
        for verb in ("list", "watch"):
            yield replace(to_list, verb=verb, namespace=NODE_LEASE_NAMESPACE if resource.plural == "leases" else "")
    for name in ("nodes", "nodes/metrics", "nodes/configz", *(["nodes/proxy"] if allow_node_proxy else [])):
        yield Permission("", name, "get")
    yield Permission("", "namespaces", "get", "", "kube-system")  # its UID identifies the cluster


def _lock_permissions(namespace: str) -> Iterator[Permission]:
    """Permissions for the lock and the journals of runs. A create request has no name when it is authorized."""
    for verb in ("get", "update", "patch", "delete"):
        yield Permission("coordination.k8s.io", "leases", verb, namespace, LOCK_NAME)
    yield Permission("coordination.k8s.io", "leases", "create", namespace)
    for verb in ("list", "create", "update", "delete"):
        yield Permission("", "configmaps", verb, namespace)


def _workload_permissions(inputs: PermissionInputs) -> Iterator[Permission]:
    """Permissions for the workload, in all namespaces: the name of its namespace is not known before the run."""
    for command in inputs.workload:
        yield replace(permission_for_request(command.method, command.path), namespace="", name="")
    for step in inputs.removal.steps:
        if isinstance(step.command, KubeCommand):
            yield replace(permission_for_request(step.command.method, step.command.path), namespace="", name="")
    for check in (*inputs.removal.proof, *(step.unless for step in inputs.removal.steps if step.unless)):
        if check.fact.startswith(NAMESPACE):
            yield Permission("", "namespaces", "get")
        elif check.fact.startswith(f"{OBJECT}/"):
            path = check.fact.removeprefix(OBJECT).partition("#")[0]
            yield replace(permission_for_request("GET", path), namespace="", name="")


def permissions_to_list(permissions: Iterable[Permission], lists: Iterable[str]) -> list[Permission]:
    """Permissions to list the collections at the API paths ``lists`` that ``permissions`` do not cover, sorted."""
    needed = {permission_for_request("GET", path) for path in lists}
    return sorted(permission for permission in needed if not any(other.covers(permission) for other in permissions))


def describe_risk(permission: Permission) -> str:
    """Why a permission allows more than its name suggests, "" for most."""
    if permission.resource == "nodes/proxy":
        return "nodes/proxy amounts to running commands in every pod of every node"
    if permission.resource == "pods/exec":
        return f"pods and pods/exec in {permission.namespace}, for transport pod, amount to root on every node"
    return ""
