"""Inspection of hosts before a run, concurrently; a host that does not respond does not delay the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from chaos.cluster.errors import KubeRejected, from_response, status_message
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.action import Target
from chaos.core.api_fact import PseudoFact, node_path
from chaos.core.cluster_view import ClusterView
from chaos.core.command import PowerCapability, PowerState
from chaos.core.errors import NodefallError
from chaos.core.kube import Node, operating_system
from chaos.core.ports import Clock, KubeApi, Response
from chaos.engine.observations import HostObservations
from chaos.machines.concurrency import run_concurrently
from chaos.machines.pool import Hosts

# Talos has no shell and no SSH; Bottlerocket's admin container has both, and is not the host.
SHELL_LESS = ("Talos", "Bottlerocket")
# Without these neither a host nor a boot can be identified. Windows counts its boots, and has no PID 1.
ESSENTIAL = ("machine-id", "boot-id", "pid1-start")
USEFUL = (
    "systemd-version",
    "kubelet-unit",
    "inhibitor-kubelet",
    "inhibitor-locks",
    "scheduled-shutdown",
    "failsafe-timers",
)
_TIME = "host-time"

FactsByNode = Mapping[str, frozenset[str] | None]


def inspect_hosts(
    facts: FactsByNode,
    view: ClusterView,
    hosts: Hosts,
    kube: KubeApi,
    clock: Clock,
    done: Callable[[str], object],
    proxy: bool = False,
) -> dict[str, HostObservations]:
    """Observations of the hosts by node. Each contains the requested facts and the facts that are always read.

    ``facts`` of a host that no step uses are None: it is not contacted. ``done`` is called with the name of each
    finished host, in any thread. ``proxy``: the API's node proxy is allowed for kubelets that do not respond.
    """
    if not facts:
        return {}

    def inspect(name: str) -> HostObservations:
        node = view.nodes[name]
        configz = {"configz": read_configz(node, kube, proxy)}
        system, pods = operating_system(node), view.static_pods(name)
        target = Target(name, system, "", pods, configz, crash_tool=hosts.crash_tool(name))
        observations = _inspect_host(node, target, facts[name], hosts, clock)
        done(name)
        return observations

    return dict(zip(facts, run_concurrently(list(facts), inspect, clock), strict=True))


def list_objects(kube: KubeApi, paths: Iterable[str]) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """List the objects by collection (empty if the server does not have it), and the errors by collection."""
    found: dict[str, list[dict[str, Any]]] = {}
    errors: dict[str, str] = {}
    for path in paths:
        try:
            response = kube.request("GET", path)
            if response.status == 404:
                found[path] = []
            elif response.status == 200:
                found[path] = list(msgspec.json.decode(response.body).get("items") or [])
            else:
                errors[path] = f"{response.status}: {status_message(response)}"
        except NodefallError as error:
            errors[path] = error.message
        except DECODE_ERRORS as error:
            errors[path] = str(error)
    return found, errors


def _inspect_host(
    node: Node, target: Target, requested: frozenset[str] | None, hosts: Hosts, clock: Clock
) -> HostObservations:
    name = target.node
    if requested is None:
        return HostObservations(name, target, is_skipped=True)
    if image := _shell_less_image(node):
        error = f"{name} runs {image}, which has no shell for SSH"
        return HostObservations(name, target, error, "use actions through the API, or another node")
    if target.os != (system := hosts.system_of(name)):
        error = f"{name} was not contacted: its Node runs {target.os}, and its host in the inventory has os {system}"
        return HostObservations(name, target, error, f"set os: {target.os} for its host, or correct its node")
    facts: dict[str, Any] = dict(target.facts)
    unknown: dict[str, str] = {}
    observations = HostObservations(name, target)
    for fact in _in_order(requested):
        if not hosts.has_fact(name, fact):
            unknown[fact] = f"{target.os.capitalize()} has no such fact"
            continue
        try:
            before = clock.now()
            facts[fact] = hosts.read(name, fact)
            if fact == _TIME:
                after = clock.now()
                offset, uncertainty = facts[fact] - (before + after) / 2, (after - before) / 2
                observations = replace(observations, clock_offset=offset, clock_uncertainty=uncertainty)
        except NodefallError as failure:
            if fact in ESSENTIAL:
                return HostObservations(name, target, failure.message, failure.hint)
            unknown[fact] = failure.message
    with suppress(NodefallError):  # a transport without one
        facts[str(PseudoFact.HOST_KEY)] = hosts.read(name, PseudoFact.HOST_KEY)
    return _inspect_power(replace(observations, target=replace(target, facts=facts, unknown=unknown)), hosts)


def _in_order(requested: frozenset[str]) -> Sequence[str]:
    rest = sorted(requested - {*ESSENTIAL, *USEFUL, "configz"})
    return (*ESSENTIAL, *USEFUL, *rest)


def _shell_less_image(node: Node) -> str:
    """The OS image if it has no shell, otherwise ""."""
    image = node.status.node_info.os_image if node.status and node.status.node_info else ""
    return image if image.startswith(SHELL_LESS) else ""


def _inspect_power(observations: HostObservations, hosts: Hosts) -> HostObservations:
    """Add the power control's capabilities to ``observations``, or the reason why it cannot be used."""
    node = observations.node
    try:
        power = hosts.power(node)
        if power is None:
            return observations
        capabilities = power.capabilities
        state = hosts.read(node, PseudoFact.MACHINE) if PowerCapability.STATE in capabilities else PowerState.ON
        policy = hosts.restart_policy(node)
        identity = hosts.power_identity(node)
        risks = hosts.power_risks(node)
    except NodefallError as error:
        message = f"the power control of {node}: {error.message}"
        return _with_power_error(observations, message, error.hint)
    if state != PowerState.ON:
        message = f"the power control of {node} belongs to another machine: it reports {state}, but {node} is up"
        hint = f"correct power of the host of {node} in the inventory"
        return _with_power_error(observations, message, hint)
    target = replace(observations.target, power="power", power_capabilities=capabilities, restart_policy=policy)
    known = {str(PseudoFact.POWER_IDENTITY): identity.key} if identity.key else {}
    target = replace(target, facts={**target.facts, **known})
    return replace(observations, target=target, power_identity=identity, power_risks=risks)


def _with_power_error(observations: HostObservations, message: str, hint: str) -> HostObservations:
    return replace(observations, target=replace(observations.target, power_error=message, power_hint=hint))


def read_configz(node: Node, kube: KubeApi, proxy: bool = False) -> dict[str, Any]:
    """The kubelet's effective configuration; empty if it cannot be read.

    If so, verdicts that depend on it are inconclusive, and requirements refuse the run.
    """
    try:
        return fetch_configz(node, kube, proxy)
    except NodefallError:
        return {}


def fetch_configz(node: Node, kube: KubeApi, proxy: bool = False) -> dict[str, Any]:
    """The kubelet's effective configuration, from its own port or, if allowed, through the API's node proxy.

    Raises the NodefallError of the last attempt.
    """
    status, name = node.status, node.metadata.name
    endpoint = status.daemon_endpoints.kubelet_endpoint if status and status.daemon_endpoints else None
    address = next((a.address for a in (status.addresses if status else None) or () if a.type == "InternalIP"), "")
    requests: list[Callable[[], Response]] = []
    if address and endpoint:
        port = endpoint.port
        requests.append(lambda: kube.kubelet(address, port, "/configz"))
    if proxy:
        requests.append(lambda: kube.request("GET", f"{node_path(name)}/proxy/configz"))
    error = NodefallError(f"the kubelet of {name}: its Node has no address and port")
    for request in requests:
        try:
            return _kubelet_config(request(), name)
        except NodefallError as failure:
            error = failure
    raise error


def _kubelet_config(response: Response, node: str) -> dict[str, Any]:
    """Parse the configuration in a response. Raises KubeRejected."""
    if response.status != 200:
        raise from_response(response, f"/configz of {node}")
    try:
        return dict(msgspec.json.decode(response.body)["kubeletconfig"])
    except (*DECODE_ERRORS, KeyError, TypeError, ValueError) as error:
        raise KubeRejected(200, f"/configz of {node}: invalid response: {error!r}") from error
