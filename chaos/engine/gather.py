"""What is known of a cluster and of the chosen nodes before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from chaos.engine.hosts import MACHINE, Hosts
from chaos.model.action import Target
from chaos.model.errors import NodefallError, Refused
from chaos.model.kube import Node, Pod
from chaos.model.ports import KubeApi
from chaos.plan.cluster import ClusterView, os

T = TypeVar("T")
# Talos has no shell and no SSH; Bottlerocket's admin container has both, and is not the host.
SHELL_LESS = ("Talos", "Bottlerocket")
# Without these a host cannot be told from another, nor a boot from the next.
ESSENTIAL = ("machine-id", "boot-id", "pid1-start")
USEFUL = ("systemd-version", "kubelet-unit", "kubelet-inhibitor", "inhibitors", "scheduled-shutdown", "planted-timers")


class _List(Struct):
    items: list[msgspec.Raw] = []


def cluster_view(kube: KubeApi, uid: str) -> ClusterView:
    """All nodes and pods, as they are now. Raises NodefallError."""
    nodes = {node.metadata.name: node for node in _list(kube, "/api/v1/nodes", Node)}
    return ClusterView(uid, nodes, tuple(_list(kube, "/api/v1/pods", Pod)))


def _list(kube: KubeApi, path: str, type_: type[T]) -> list[T]:
    response = kube.request("GET", path)
    if response.status != 200:
        raise Refused(
            f"GET {path}: the API server answered {response.status}",
            hint="the credentials of the kubeconfig need list and watch on nodes and pods",
        )
    return [msgspec.json.decode(item, type=type_) for item in msgspec.json.decode(response.body, type=_List).items]


def targets(
    nodes: Mapping[str, frozenset[str] | None], view: ClusterView, hosts: Hosts, kube: KubeApi
) -> dict[str, Target]:
    """The targets by node, with their facts. Raises Refused for a host that does not tell who it is.

    ``nodes`` says which facts the steps want besides those always read; None: no step touches the host, so nobody
    knocks at its door.
    """
    return {name: _target(view.nodes[name], wanted, view, hosts, kube) for name, wanted in nodes.items()}


def objects(paths: Iterable[str], kube: KubeApi) -> dict[str, Any]:
    """API objects by path, None for what is not there. Raises Refused."""
    found: dict[str, Any] = {}
    for path in dict.fromkeys(paths):
        response = kube.request("GET", path)
        if response.status not in (200, 404):
            raise Refused(f"GET {path}: the API server answered {response.status}")
        found[path] = msgspec.json.decode(response.body) if response.status == 200 else None
    return found


def _target(node: Node, wanted: frozenset[str] | None, view: ClusterView, hosts: Hosts, kube: KubeApi) -> Target:
    name = node.metadata.name
    config = {"configz": configz(node, kube)}
    if wanted is None:
        return Target(name, os(node), "", view.static_pods(name), config)
    _has_shell(node)
    facts, unknown = _facts(name, wanted, hosts)
    target = Target(name, os(node), "", view.static_pods(name), facts | config, unknown)
    return _with_power(target, hosts)


def _has_shell(node: Node) -> None:
    """Raises Refused for a system that lets nobody run programs, as its kubelet names it."""
    image = node.status.node_info.os_image if node.status and node.status.node_info else ""
    for system in SHELL_LESS:
        if image.startswith(system):
            raise Refused(
                f"{node.metadata.name} runs {image}, which has no shell that nodefall could use over SSH",
                hint="use actions through the API, or another node",
            )


def _facts(node: str, wanted: frozenset[str], hosts: Hosts) -> tuple[dict[str, Any], dict[str, str]]:
    """What is known, and why the rest is not."""
    known: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for fact in (*ESSENTIAL, *USEFUL, *sorted(wanted - {*ESSENTIAL, *USEFUL})):
        try:
            known[fact] = hosts.read(node, fact)
        except Refused:
            raise
        except NodefallError as error:
            if fact in ESSENTIAL:
                hint = error.hint or f"see that the host of {node} can be reached"
                raise Refused(error.message, hint=hint) from error
            unknown[fact] = error.message
    return known, unknown


def _with_power(target: Target, hosts: Hosts) -> Target:
    """With what its power control can do. Raises Refused for one that would not bring it back."""
    node = target.node
    power = hosts.power(node)
    if power is None:
        return target
    try:
        state = hosts.read(node, MACHINE) if "state" in power.can else "on"
        policy = hosts.restart_policy(node)
    except NodefallError as error:
        raise Refused(f"the power control of {node}: {error.message}", hint=error.hint) from error
    if state != "on":
        raise Refused(
            f"the power control of {node} says that it is {state}, but it answers: it is another machine's",
            hint=f"see power of the host of {node} in the inventory",
        )
    return replace(target, power="power", power_can=power.can, restart_policy=policy)


def configz(node: Node, kube: KubeApi) -> dict[str, Any]:
    """The kubelet's effective configuration from its own port; empty if that cannot be read."""
    status = node.status
    endpoint = status.daemon_endpoints.kubelet_endpoint if status and status.daemon_endpoints else None
    address = next((a.address for a in (status.addresses if status else None) or () if a.type == "InternalIP"), "")
    if not address or endpoint is None:
        return {}
    try:
        response = kube.kubelet(address, endpoint.port, "/configz")
        config = msgspec.json.decode(response.body)["kubeletconfig"] if response.status == 200 else {}
    except (NodefallError, msgspec.DecodeError, KeyError, TypeError):
        return {}  # unknown facts make what depends on them inconclusive, and requirements refuse
    return dict(config)
