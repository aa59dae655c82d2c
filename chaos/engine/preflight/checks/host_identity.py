"""Checks of the identity of a host, of its host key, and of machines that must never be targets."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from chaos.core.api_fact import PseudoFact
from chaos.core.cluster_view import node_addresses, normalize_addresses
from chaos.core.identity import MACHINE, NodeIdentity, bind, shared_fields
from chaos.core.inventory import Inventory
from chaos.core.kube import Node, full_name, operating_system
from chaos.engine.observations import ClusterObservations, HostObservations, Need
from chaos.engine.planning.identity import HOST_FACTS, host_identity, node_identity
from chaos.engine.preflight.check import Check, Diagnosis, check, note, ok, refusal, warning

_HOST = frozenset({Need.HOST})
_PROVE = {
    "linux": (
        "make the kubelet's client certificate readable there (root runs sed on"
        " /var/lib/kubelet/pki/kubelet-client-current.pem), or give each machine its own machine ID"
    ),
    "windows": "give each machine its own host name, which its kubelet reports as the machine ID",
}
_NEW_KEYS = {
    "linux": "give each machine its own keys: remove /etc/ssh/ssh_host_*, run `ssh-keygen -A`, restart sshd",
    "windows": (
        "give each machine its own: a certificate for the HTTPS listener of WinRM, or keys of sshd (remove ssh_host_*"
        r" in C:\ProgramData\ssh, restart the service sshd)"
    ),
}


class HostIdentityCheck(Check):
    """Requires at least one proof and no contradiction; see ``chaos.core.identity``."""

    name = "host-identity"
    summary = "the host is the machine behind its Node: one proof, such as the kubelet's certificate, no contradiction"
    facts = HOST_FACTS
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        yield from _inventory_refusals(observations)
        nodes = {name: node_identity(node) for name, node in observations.view.nodes.items()}
        for name, host in sorted(observations.hosts.items()):
            if not host.is_skipped and (mismatch := _system_mismatch(observations, name)):
                yield mismatch
            elif not host.is_skipped and (guess := _loopback_guess(observations, name)):
                yield refusal(guess, f"add {name} with its address to hosts in the inventory", name, _HOST)
            elif host.is_reachable:
                yield _compare(observations.inventory, host, nodes)


def _compare(inventory: Inventory, host: HostObservations, nodes: Mapping[str, NodeIdentity]) -> Diagnosis:
    """Compare a host with its Node, which is one of ``nodes``."""
    name = host.node
    key, _ = inventory.host_of(name)
    binding = bind(nodes[name], host_identity(host.target.facts), nodes)
    if binding.contradictions:
        message = f"host {key} is not the machine of the Node {name}: {'; '.join(binding.contradictions)}"
        hint = f"correct address, port, container or node of the host {key} in the inventory"
        return refusal(message, hint, name, _HOST)
    if not binding.proofs:
        return refusal(
            f"no proof that host {key} is the machine of the Node {name}", _PROVE[host.target.os], name, _HOST
        )
    return ok(f"it is the machine of its Node by {', '.join(binding.proofs)}", name)


def _system_mismatch(observations: ClusterObservations, name: str) -> Diagnosis | None:
    """A refusal if the host has another operating system than its Node reports."""
    system = operating_system(observations.view.nodes[name])
    key, host = observations.inventory.host_of(name)
    if host.os == system:
        return None
    if key not in observations.inventory.hosts:
        message = f"{name} runs {system}, and is not in the inventory"
        return refusal(message, f"add {name} to hosts in the inventory, with os: {system}", name, _HOST)
    message = f"host {key} of the inventory has os {host.os}, but its Node {name} runs {system}"
    return refusal(message, f"set os: {system} for the host {key}, or correct its node", name, _HOST)


def _inventory_refusals(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Refusals for hosts in the inventory that have no Node. Jump hosts do not need one."""
    inventory = observations.inventory
    jumps = _jump_hosts(inventory)
    for key, host in inventory.hosts.items():
        node = host.node or key
        if node not in observations.view.nodes and not (key in jumps and host.node is None):
            message = f"host {key} of the inventory: the cluster has no Node {node}"
            nearest = get_close_matches(node, observations.view.nodes, 1, 0.6)
            guess = f"did you mean {nearest[0]}? " if nearest else ""
            yield refusal(message, f"{guess}correct its key or node, or remove the host", needs=_HOST)


def _jump_hosts(inventory: Inventory) -> set[str]:
    """The inventory keys of hosts that are jump hosts."""
    connections = (inventory.defaults, *inventory.hosts.values())
    return {jump for connection in connections for jump in connection.proxy_jump or ()}


def _loopback_guess(observations: ClusterObservations, name: str) -> str:
    """Why the address in a Node, used for a host outside of the inventory, leads to this machine; "" if it does not."""
    inventory = observations.inventory
    key, _ = inventory.host_of(name)
    if key in inventory.hosts or inventory.defaults.transport == "docker":
        return ""
    status = observations.view.nodes[name].status
    listed = [each.address for each in (status.addresses if status else None) or ()]
    addresses = normalize_addresses(listed)
    if own := addresses & observations.local_identity.addresses:
        return f"{name} is not in the inventory, and its Node has the address {min(own)} of this machine"
    if not addresses and any(map(_is_loopback, listed)):
        return f"{name} is not in the inventory, and its Node has only a loopback address, which is this machine's"
    return ""


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class HostKeyCheck(Check):
    """Checks the value that identifies a host before each command, after a proof has bound the host to its Node."""

    name = "host-key"
    summary = "by its SSH host key, or by another value that no other machine has, the host is recognized later"
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        nodes = {name: node_identity(node) for name, node in observations.view.nodes.items()}
        for host in observations.reachable_hosts():
            yield _diagnose(host, _others_with_its_key(host, observations), nodes)


def _diagnose(host: HostObservations, others: list[str], nodes: Mapping[str, NodeIdentity]) -> Diagnosis:
    """The diagnosis of one host, whose host key the nodes ``others`` also present."""
    name, key = host.node, host.fact(PseudoFact.HOST_KEY)
    if key and not others:
        return ok("no other machine is known to have its host key", name)
    if not _has_own_value(host, nodes):
        why = f"{', '.join(others)} may have the same host key" if others else "its transport reports no host key"
        is_shared = str(host.fact("stable-id") or "").startswith(MACHINE)
        no_id = "its machine ID is shared" if is_shared else "it has no ID that is the same after a boot"
        message = f"{name} cannot be recognized later: {no_id}, its kubelet has no certificate, and {why}"
        return refusal(message, _NEW_KEYS[host.target.os], name, _HOST)
    if others:
        message = f"the host key of {name} proves nothing: {', '.join(others)} has it too"
        return warning(message, _NEW_KEYS[host.target.os], name, _HOST)
    return ok("it has no host key, but another value that no other machine has", name)


def _has_own_value(host: HostObservations, nodes: Mapping[str, NodeIdentity]) -> bool:
    """Whether a value that is compared before each command is unique to this machine."""
    shared = shared_fields(nodes[host.node], nodes)
    own_uuid = bool(host.fact("system-uuid")) and "system_uuid" not in shared
    kind, _, _ = str(host.fact("stable-id") or "").partition(" ")
    own_id = kind == "container" or (kind == "machine" and "machine_id" not in shared)
    return bool(host.fact("kubelet-user")) or own_id or own_uuid


def _others_with_its_key(host: HostObservations, observations: ClusterObservations) -> list[str]:
    """Nodes whose hosts also present this host key, or may do so according to known_hosts."""
    key = host.fact(PseudoFact.HOST_KEY)
    present = {name for name, each in observations.hosts.items() if key and each.fact(PseudoFact.HOST_KEY) == key}
    known = {name for name, keys in observations.known_host_keys.items() if key in keys}
    return sorted((present | known) - {host.node})


HOST_IDENTITY, HOST_KEY = HostIdentityCheck(), HostKeyCheck()


_RUN_ELSEWHERE = "run nodefall elsewhere, or choose another target"


@check(
    "self-protection",
    "the host is not the machine that nodefall runs on, a jump host, or the API server's address",
    facts=("machine-id", "boot-id", "ssh-peer", "connection-peers", "host-addresses"),
    is_final=True,
)
def self_protection(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Compare machine IDs, addresses, the pod of nodefall, and the path of its connections."""
    peers = {
        peer: name
        for name, host in observations.hosts.items()
        for peer in _peer_addresses(host) - observations.local_identity.addresses
    }
    for name, host in sorted(observations.hosts.items()):
        reasons = list(_refusal_reasons(observations, host, peers))
        yield from (refusal(what, hint, name) for what, hint in reasons[:1])
        if not reasons and (host.is_reachable or host.is_skipped):
            yield ok("it is another machine", name)


def _refusal_reasons(
    observations: ClusterObservations, host: HostObservations, peers: dict[str, str]
) -> Iterator[tuple[str, str]]:
    name, node = host.node, observations.view.nodes[host.node]
    if host.is_reachable and not _normalize_machine_id(str(host.fact("machine-id") or "")):
        message = f"{name} has no machine ID, so it cannot be distinguished from this machine"
        yield message, f"run `systemd-machine-id-setup` on {name}"
    clone = f"{_RUN_ELSEWHERE}; a clone of this machine needs another machine ID"
    own = _normalize_machine_id(observations.local_identity.machine_id)
    if own and own in _machine_ids(host, node):
        yield f"{name} is the machine that nodefall runs on (machine ID {own})", clone
    of_node = node_addresses(node)
    of_host = of_node | normalize_addresses(host.fact("host-addresses") or ())
    shared = observations.local_identity.addresses & of_host
    if shared and _same_kernel(observations, host, node):
        yield f"{name} is the machine that nodefall runs on (address {min(shared)})", _RUN_ELSEWHERE
    if own := _own_pod(observations, name):
        yield f"nodefall runs on {name} itself, as the pod {own}", _RUN_ELSEWHERE
    for jump, addresses in sorted(observations.jump_addresses.items()):
        if name == jump or addresses & of_host:
            yield f"{name} is the jump host {jump} of the inventory", "choose another target, or another path"
    for address in sorted(of_node & peers.keys()):
        yield (
            f"the connection to {peers[address]} comes from {name} ({address})",
            "choose another target, or another path",
        )
    if shared_with_api := observations.api_server_addresses & of_host:
        hint = "choose another target, or give the kubeconfig an address of another machine"
        yield f"{name} holds the address of the API server that nodefall uses ({min(shared_with_api)})", hint


def _machine_ids(host: HostObservations, node: Node) -> set[str]:
    info = node.status.node_info if node.status else None
    return {
        _normalize_machine_id(text) for text in (str(host.fact("machine-id") or ""), info.machine_id if info else "")
    } - {""}


def _same_kernel(observations: ClusterObservations, host: HostObservations, node: Node) -> bool:
    """Whether the boot IDs are equal or unknown: two networks may use the same private addresses, but not boot IDs."""
    info = node.status.node_info if node.status else None
    boot = host.fact("boot-id") or (info.boot_id if info else "")
    return not boot or not observations.local_identity.boot_id or boot == observations.local_identity.boot_id


def _peer_addresses(host: HostObservations) -> frozenset[str]:
    """The addresses from which the host sees nodefall connect; on Windows also those of other clients."""
    peer = host.fact("ssh-peer") or {}
    return normalize_addresses([str(peer.get("address", "")), *(host.fact("connection-peers") or ())])


def _own_pod(observations: ClusterObservations, node: str) -> str:
    """The pod on ``node`` in which nodefall runs, or "". It is found by UID if known, otherwise by host name."""
    own = observations.local_identity
    for pod in observations.view.pods:
        is_own = pod.metadata.uid == own.pod_uid if own.pod_uid else full_name(pod.metadata) == own.pod
        if is_own and pod.spec and pod.spec.node_name == node:
            return full_name(pod.metadata)
    return ""


def _normalize_machine_id(machine_id: str) -> str:
    """The machine ID in lower case; "" for the placeholder that systemd writes before the first boot."""
    text = machine_id.strip().lower().replace("-", "")
    return "" if text == "uninitialized" else text


@check(
    "protected-role",
    "worker hosts run neither etcd nor an API server",
    facts=("control-plane-files",),
    is_final=True,
)
def protected_role(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Find control planes by host facts: a Node without a role label may still run etcd or an API server."""
    protects = "control-plane" in observations.inventory.protected.roles
    for host in observations.reachable_hosts():
        paths = host.fact("control-plane-files")
        if not paths or observations.view.role(host.node) != "worker":
            yield ok("its labels are correct", host.node)
            continue
        message = f"{host.node} has no role label of the control plane, but {paths[0]} exists on its host"
        if protects:
            hint = "choose another target; on a former control plane, remove what is left there"
            yield refusal(f"{message}: the inventory protects control planes", hint, host.node)
        else:
            yield note(message, "", host.node)
