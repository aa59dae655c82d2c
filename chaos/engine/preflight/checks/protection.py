"""Machines that no run may hit."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.cluster_view import node_addresses, normalize_addresses
from chaos.core.kube import Node, full_name
from chaos.engine.observations import ClusterObservations, HostObservations
from chaos.engine.preflight.check import Diagnosis, check, note, ok, refusal

_RUN_ELSEWHERE = "run nodefall elsewhere, or choose another target"


@check(
    "self-protection",
    "the host is not the machine that nodefall runs on, a jump host, or the API server's address",
    facts=("machine-id", "boot-id", "ssh-peer", "connection-peers", "host-addresses"),
    is_final=True,
)
def self_protection(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Compares machine IDs, addresses, the pod of nodefall, and the path of its connections."""
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
    """Where nodefall's connection comes from, as the host sees it; on Windows other clients' too."""
    peer = host.fact("ssh-peer") or {}
    return normalize_addresses([str(peer.get("address", "")), *(host.fact("connection-peers") or ())])


def _own_pod(observations: ClusterObservations, node: str) -> str:
    """Name of the pod on ``node`` that nodefall runs in, "" if none does: by UID, which host names only resemble."""
    own = observations.local_identity
    for pod in observations.view.pods:
        is_own = pod.metadata.uid == own.pod_uid if own.pod_uid else full_name(pod.metadata) == own.pod
        if is_own and pod.spec and pod.spec.node_name == node:
            return full_name(pod.metadata)
    return ""


def _normalize_machine_id(machine_id: str) -> str:
    """Lower case hex, "" for the placeholder that systemd writes before the first boot."""
    text = machine_id.strip().lower().replace("-", "")
    return "" if text == "uninitialized" else text


@check(
    "protected-role",
    "the host of a worker runs no etcd and no API server",
    facts=("control-plane-files",),
    is_final=True,
)
def protected_role(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """A Node without a role label may run etcd or an API server: its host shows that."""
    protects = "control-plane" in observations.inventory.protected.roles
    for host in observations.reachable_hosts():
        paths = host.fact("control-plane-files")
        if not paths or observations.view.role(host.node) != "worker":
            yield ok("it is what its labels say", host.node)
            continue
        message = f"{host.node} has no role label of the control plane, but {paths[0]} exists on its host"
        if protects:
            hint = "choose another target; on a former control plane, remove what is left there"
            yield refusal(f"{message}: the inventory protects control planes", hint, host.node)
        else:
            yield note(message, "", host.node)
