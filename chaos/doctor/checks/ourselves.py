"""Never ourselves: what nodefall runs on, and what it needs to reach the cluster and its hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refusal
from chaos.doctor.signs import HostSigns, Signs
from chaos.model.kube import Node, full_name
from chaos.plan.cluster import node_addresses, plain_addresses

_ELSEWHERE = "run nodefall elsewhere, or choose another target"


class Ourselves(Check):
    """By machine ID, by address, by the pod that we may be, and by the way that our own lines take."""

    name = "ourselves"
    summary = "the host is not the one that nodefall runs on, a jump host on its way, or the API server's address"
    facts = ("machine-id", "boot-id", "ssh-peer", "host-addresses")
    final = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        peers = {peer: name for name, host in signs.hosts.items() for peer in _peer(host) - signs.own.addresses}
        for name, host in sorted(signs.hosts.items()):
            said = list(_why(signs, host, peers))
            yield from (refusal(what, mend, name) for what, mend in said[:1])
            if not said and (host.reached or host.silent):
                yield ok("it is another machine", name)


def _why(signs: Signs, host: HostSigns, peers: dict[str, str]) -> Iterator[tuple[str, str]]:
    name, node = host.node, signs.view.nodes[host.node]
    if host.reached and not _plain(str(host.fact("machine-id") or "")):
        told = f"{name} has no machine ID, so it cannot be told from this machine"
        yield told, f"run `systemd-machine-id-setup` on {name}"
    clone = f"{_ELSEWHERE}; a clone of this machine needs an ID of its own"
    own = _plain(signs.own.machine_id)
    if own and own in _machine_ids(host, node):
        yield f"{name} is the machine that nodefall runs on (machine ID {own})", clone
    told_by_node, all_ = node_addresses(node), node_addresses(node) | plain_addresses(host.fact("host-addresses") or ())
    shared = signs.own.addresses & all_
    if shared and _same_kernel(signs, host, node):
        yield f"{name} is the machine that nodefall runs on (address {min(shared)})", _ELSEWHERE
    if signs.own.pod and signs.own.pod in _pods(signs, name):
        yield f"nodefall runs on {name} itself, as the pod {signs.own.pod}", _ELSEWHERE
    for jump, addresses in sorted(signs.jumps.items()):
        if name == jump or addresses & all_:
            yield f"{name} is the jump host {jump} of the inventory", "choose another target, or another way"
    for address in sorted(told_by_node & peers.keys()):
        yield f"the line to {peers[address]} comes from {name} ({address})", "choose another target, or another way"
    if held := signs.server & all_:
        hint = "choose another target, or give the kubeconfig an address that another machine holds"
        yield f"{name} holds the address of the API server that nodefall uses ({min(held)})", hint


def _machine_ids(host: HostSigns, node: Node) -> set[str]:
    info = node.status.node_info if node.status else None
    return {_plain(text) for text in (str(host.fact("machine-id") or ""), info.machine_id if info else "")} - {""}


def _same_kernel(signs: Signs, host: HostSigns, node: Node) -> bool:
    """Private addresses are used twice by networks that know nothing of each other; boots are not."""
    info = node.status.node_info if node.status else None
    boot = host.fact("boot-id") or (info.boot_id if info else "")
    return not boot or not signs.own.boot_id or boot == signs.own.boot_id


def _peer(host: HostSigns) -> frozenset[str]:
    peer = host.fact("ssh-peer") or {}
    return plain_addresses([str(peer.get("address", ""))])


def _pods(signs: Signs, node: str) -> set[str]:
    return {full_name(pod.metadata) for pod in signs.view.pods if pod.spec and pod.spec.node_name == node}


def _plain(machine_id: str) -> str:
    """Lower case hex; "" for what systemd writes before the first boot."""
    text = machine_id.strip().lower().replace("-", "")
    return "" if text == "uninitialized" else text


CHECK = Ourselves()
