"""Looking at hosts before anything is touched: all at once, and none that does not answer stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from chaos.hosts.concurrency import run_concurrently
from chaos.hosts.pool import Hosts
from chaos.kube.response import status_message
from chaos.kube.watch_codec import DECODE_ERRORS
from chaos.model.action import Target
from chaos.model.api_fact import PseudoFact
from chaos.model.command import PowerCapability, PowerState
from chaos.model.errors import NodefallError
from chaos.model.kube import Node
from chaos.model.ports import Clock, KubeApi, Response
from chaos.plan.cluster import ClusterView, os
from chaos.preflight.observations import HostObservations

# Talos has no shell and no SSH; Bottlerocket's admin container has both, and is not the host.
SHELL_LESS = ("Talos", "Bottlerocket")
# Without these a host cannot be told from another, nor a boot from the next.
ESSENTIAL = ("machine-id", "boot-id", "pid1-start")
USEFUL = ("systemd-version", "kubelet-unit", "inhibitor-kubelet", "inhibitor-locks", "scheduled-shutdown", "failsafe-timers")
_TIME = "host-time"

FactsByNode = Mapping[str, frozenset[str] | None]


def inspect_hosts(
    wanted: FactsByNode,
    view: ClusterView,
    hosts: Hosts,
    kube: KubeApi,
    clock: Clock,
    done: Callable[[str], object],
    proxy: bool = False,
) -> dict[str, HostObservations]:
    """The hosts by node, each with the facts that are wanted of it besides those always read.

    None: no step touches the host, so nobody knocks at its door. ``done`` is told of each, in whatever thread.
    ``proxy``: a kubelet that does not answer itself may be asked through the API.
    """
    if not wanted:
        return {}

    def look(name: str) -> HostObservations:
        node = view.nodes[name]
        target = Target(name, os(node), "", view.static_pods(name), {"configz": read_configz(node, kube, proxy)})
        signs = _inspect_host(node, target, wanted[name], hosts, clock)
        done(name)
        return signs

    return dict(zip(wanted, run_concurrently(list(wanted), look, clock), strict=True))


def list_objects(kube: KubeApi, paths: Iterable[str]) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Objects by collection, none of a kind that is not there; and why others could not be listed."""
    found: dict[str, list[dict[str, Any]]] = {}
    why: dict[str, str] = {}
    for path in paths:
        try:
            response = kube.request("GET", path)
            if response.status == 404:
                found[path] = []
            elif response.status == 200:
                found[path] = list(msgspec.json.decode(response.body).get("items") or [])
            else:
                why[path] = f"{response.status}: {status_message(response)}"
        except NodefallError as error:
            why[path] = error.message
        except DECODE_ERRORS as error:
            why[path] = str(error)
    return found, why


def _inspect_host(
    node: Node, target: Target, wanted: frozenset[str] | None, hosts: Hosts, clock: Clock
) -> HostObservations:
    name = target.node
    if wanted is None:
        return HostObservations(name, target, is_skipped=True)
    if image := _shell_less_image(node):
        told = f"{name} runs {image}, which has no shell that nodefall could use over SSH"
        return HostObservations(name, target, told, "use actions through the API, or another node")
    facts: dict[str, Any] = dict(target.facts)
    unknown: dict[str, str] = {}
    signs = HostObservations(name, target)
    for fact in _in_order(wanted):
        try:
            before = clock.now()
            facts[fact] = hosts.read(name, fact)
            if fact == _TIME:
                after = clock.now()
                signs = replace(
                    signs, clock_offset=facts[fact] - (before + after) / 2, clock_uncertainty=(after - before) / 2
                )
        except NodefallError as error:
            if fact in ESSENTIAL:
                return HostObservations(name, target, error.message, error.hint)
            unknown[fact] = error.message
    return _inspect_power(replace(signs, target=replace(target, facts=facts, unknown=unknown)), hosts)


def _in_order(wanted: frozenset[str]) -> Sequence[str]:
    rest = sorted(wanted - {*ESSENTIAL, *USEFUL, "configz"})
    return (*ESSENTIAL, *USEFUL, *rest)


def _shell_less_image(node: Node) -> str:
    """The system, as the kubelet names it, where it lets nobody run programs."""
    image = node.status.node_info.os_image if node.status and node.status.node_info else ""
    return image if image.startswith(SHELL_LESS) else ""


def _inspect_power(signs: HostObservations, hosts: Hosts) -> HostObservations:
    """With what its power control can do; one that would not bring it back is no power control."""
    node = signs.node
    try:
        power = hosts.power(node)
        if power is None:
            return signs
        state = hosts.read(node, PseudoFact.MACHINE) if PowerCapability.STATE in power.capabilities else PowerState.ON
        policy = hosts.restart_policy(node)
    except NodefallError as error:
        return replace(signs, power_error=f"the power control of {node}: {error.message}", power_hint=error.hint)
    if state != PowerState.ON:
        told = f"the power control of {node} says that it is {state}, but it answers: it is another machine's"
        return replace(signs, power_error=told, power_hint=f"see power of the host of {node} in the inventory")
    target = replace(signs.target, power="power", power_capabilities=power.capabilities, restart_policy=policy)
    return replace(signs, target=target)


def read_configz(node: Node, kube: KubeApi, proxy: bool = False) -> dict[str, Any]:
    """The kubelet's effective configuration: from its own port, else by the API's node proxy where that is allowed.

    Empty if it cannot be read: unknown facts make what depends on them inconclusive, and requirements refuse.
    """
    status = node.status
    endpoint = status.daemon_endpoints.kubelet_endpoint if status and status.daemon_endpoints else None
    address = next((a.address for a in (status.addresses if status else None) or () if a.type == "InternalIP"), "")
    asks: list[Callable[[], Response]] = []
    if address and endpoint:
        port = endpoint.port
        asks.append(lambda: kube.kubelet(address, port, "/configz"))
    if proxy:
        asks.append(lambda: kube.request("GET", f"/api/v1/nodes/{node.metadata.name}/proxy/configz"))
    for ask in asks:
        with suppress(NodefallError, msgspec.DecodeError, KeyError, TypeError):
            response = ask()
            if response.status == 200:
                return dict(msgspec.json.decode(response.body)["kubeletconfig"])
    return {}
