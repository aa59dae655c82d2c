"""Helper pods in an inventory: the hosts with transport pod, and the namespaces of their pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.cluster.errors import check_success, decode_body
from chaos.core.action import AnyAction
from chaos.core.api_fact import field
from chaos.core.api_path import resource_path
from chaos.core.errors import NodefallError, Refused
from chaos.core.installed_drivers import DEFAULT_TRANSPORT
from chaos.core.inventory import Host, Inventory
from chaos.core.labels import HELPER_LABEL, HELPER_SESSION, LOCK_NAMESPACE, RUN_LABEL
from chaos.core.plan import PlannedStep
from chaos.engine.connection import POD, ClusterConnection
from chaos.engine.observations import HelperNamespace


def uses_helper_pod(inventory: Inventory, host: Host) -> bool:
    """Whether a host with this entry is reached through a pod."""
    transport = host.transport or inventory.defaults.transport or DEFAULT_TRANSPORT
    return transport == POD


def helper_namespaces(inventory: Inventory) -> list[str]:
    """The namespaces of the helper pods, sorted; empty if no host uses transport pod."""
    return sorted(set(_namespaces(inventory)))


def _namespaces(inventory: Inventory) -> Iterator[str]:
    own = inventory.cluster.namespace if inventory.cluster else LOCK_NAMESPACE
    defaults = inventory.defaults
    shared = str(defaults.options.get("namespace") or own) if defaults.transport == POD else own
    if defaults.transport == POD:
        yield shared
    for host in inventory.hosts.values():
        if uses_helper_pod(inventory, host):
            yield str(host.options.get("namespace") or shared)


def read_helper_namespaces(connection: ClusterConnection) -> tuple[HelperNamespace, ...]:
    """The namespaces of the helper pods, including pods that this process did not create."""
    return tuple(_read(connection, name) for name in helper_namespaces(connection.inventory))


def _read(connection: ClusterConnection, name: str) -> HelperNamespace:
    try:
        response = connection.kube.request("GET", resource_path("v1", "namespaces", name=name))
        check_success(response, "it")
        query = {"labelSelector": f"{HELPER_LABEL}=pod"}
        pods = connection.kube.request("GET", resource_path("v1", "pods", name), query)
        check_success(pods, "its pods")
        items = decode_body(pods).get("items") or []
    except NodefallError as error:
        return HelperNamespace(name, error=error.message)
    own = connection.helpers.session if connection.helpers else ""
    left = tuple(_describe(pod) for pod in items if field(pod, "/metadata/labels").get(HELPER_SESSION) != own)
    return HelperNamespace(name, field(decode_body(response), "/metadata/labels") or {}, left)


def _describe(pod: dict[str, Any]) -> str:
    run = field(pod, "/metadata/labels").get(RUN_LABEL)
    return f"{field(pod, '/metadata/name')} on {field(pod, '/spec/nodeName')}{f' of run {run}' if run else ''}"


def refuse_unreachable_undo(inventory: Inventory, action: AnyAction, planned: PlannedStep) -> None:
    """Raises Refused for a step that cuts off a host with transport pod, reached from the API server to the kubelet.

    A step that a timer on the host undoes is allowed.
    """
    node = planned.node
    if not node or not uses_helper_pod(inventory, inventory.host_of(node)[1]):
        return
    hint = f"give the host of {node} transport ssh, which needs no kubelet"
    if action.stops_exec:
        why = f"after {action.name} the kubelet of {node} runs nothing in pods, so transport pod cannot undo it"
        raise Refused(f"step {planned.step}: {why}", hint=hint)
    if action.may_disconnect and not action.takes_down and planned.failsafe_timer is None:
        why = f"{action.name} may cut {node} off, and no timer on its host undoes it, as transport pod then cannot"
        raise Refused(f"step {planned.step}: {why}", hint=hint)
