"""Never ourselves: what nodefall runs on, and what it needs to reach the cluster and its hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.kube import Node, full_name
from chaos.plan.cluster import node_addresses, normalize_addresses
from chaos.preflight.check import Check, Diagnosis, ok, refusal
from chaos.preflight.observations import ClusterObservations, HostObservations

_RUN_ELSEWHERE = "run nodefall elsewhere, or choose another target"


class SelfProtection(Check):
    """By machine ID, by address, by the pod that we may be, and by the way that our own lines take."""

    name = "ourselves"
    summary = "the host is not the one that nodefall runs on, a jump host on its way, or the API server's address"
    facts = ("machine-id", "boot-id", "ssh-peer", "host-addresses")
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        peers = {
            peer: name
            for name, host in signs.hosts.items()
            for peer in _ssh_peer_addresses(host) - signs.local_identity.addresses
        }
        for name, host in sorted(signs.hosts.items()):
            said = list(_refusal_reasons(signs, host, peers))
            yield from (refusal(what, mend, name) for what, mend in said[:1])
            if not said and (host.is_reachable or host.is_skipped):
                yield ok("it is another machine", name)


def _refusal_reasons(
    signs: ClusterObservations, host: HostObservations, peers: dict[str, str]
) -> Iterator[tuple[str, str]]:
    name, node = host.node, signs.view.nodes[host.node]
    if host.is_reachable and not _normalize_machine_id(str(host.fact("machine-id") or "")):
        told = f"{name} has no machine ID, so it cannot be told from this machine"
        yield told, f"run `systemd-machine-id-setup` on {name}"
    clone = f"{_RUN_ELSEWHERE}; a clone of this machine needs an ID of its own"
    own = _normalize_machine_id(signs.local_identity.machine_id)
    if own and own in _machine_ids(host, node):
        yield f"{name} is the machine that nodefall runs on (machine ID {own})", clone
    told_by_node, all_ = (
        node_addresses(node),
        node_addresses(node) | normalize_addresses(host.fact("host-addresses") or ()),
    )
    shared = signs.local_identity.addresses & all_
    if shared and _same_kernel(signs, host, node):
        yield f"{name} is the machine that nodefall runs on (address {min(shared)})", _RUN_ELSEWHERE
    if signs.local_identity.pod and signs.local_identity.pod in _pods(signs, name):
        yield f"nodefall runs on {name} itself, as the pod {signs.local_identity.pod}", _RUN_ELSEWHERE
    for jump, addresses in sorted(signs.jump_addresses.items()):
        if name == jump or addresses & all_:
            yield f"{name} is the jump host {jump} of the inventory", "choose another target, or another way"
    for address in sorted(told_by_node & peers.keys()):
        yield f"the line to {peers[address]} comes from {name} ({address})", "choose another target, or another way"
    if held := signs.api_server_addresses & all_:
        hint = "choose another target, or give the kubeconfig an address that another machine holds"
        yield f"{name} holds the address of the API server that nodefall uses ({min(held)})", hint


def _machine_ids(host: HostObservations, node: Node) -> set[str]:
    info = node.status.node_info if node.status else None
    return {
        _normalize_machine_id(text) for text in (str(host.fact("machine-id") or ""), info.machine_id if info else "")
    } - {""}


def _same_kernel(signs: ClusterObservations, host: HostObservations, node: Node) -> bool:
    """Private addresses are used twice by networks that know nothing of each other; boots are not."""
    info = node.status.node_info if node.status else None
    boot = host.fact("boot-id") or (info.boot_id if info else "")
    return not boot or not signs.local_identity.boot_id or boot == signs.local_identity.boot_id


def _ssh_peer_addresses(host: HostObservations) -> frozenset[str]:
    peer = host.fact("ssh-peer") or {}
    return normalize_addresses([str(peer.get("address", ""))])


def _pods(signs: ClusterObservations, node: str) -> set[str]:
    return {full_name(pod.metadata) for pod in signs.view.pods if pod.spec and pod.spec.node_name == node}


def _normalize_machine_id(machine_id: str) -> str:
    """Lower case hex; "" for what systemd writes before the first boot."""
    text = machine_id.strip().lower().replace("-", "")
    return "" if text == "uninitialized" else text


CHECK = SelfProtection()
