"""DNS failure: a node on which names are not resolved."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Literal

from pydantic import Field

from chaos.core.action import (
    NODE_NAME,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    UndoKind,
)
from chaos.core.api_fact import pods_path
from chaos.core.errors import Unsupported
from chaos.core.evidence import last_reading_before, no_proof, readings_after, within_duration
from chaos.core.fact import FactRef
from chaos.core.field_types import DnsName, Model
from chaos.core.node_mark import LookupName
from chaos.core.timeline import Timeline
from chaos.faults.actions._packetfilter import TABLE, filter_chain, parse_network
from chaos.faults.actions._params import RulesEnd, timer_seconds
from chaos.faults.actions._peers import NODES, own_node, pod_networks
from chaos.faults.actions._table import (
    TABLE_FACTS,
    TableState,
    caught_packets,
    check_loaded,
    load_table,
    require_clean_table,
)

_NAME = "kubernetes.io"
_POD_INTERFACES = 'meta iifkind { "veth", "bridge" }'  # of pods, if the Node does not say which addresses they have
_ROUTES, _EARLY_REJECT = "peer-routes", "nft-early-reject"
_EARLY = -150  # before destination NAT: the DNS of a cluster may listen on another port behind its Service


class Params(Model):
    """The pods or host whose lookups fail, and how they fail."""

    name: DnsName = Field(_NAME, description="A name that the node's DNS server knows. Looking it up proves the fault.")
    how: Literal["drop", "reject"] = Field("drop", description="Whether lookups time out or fail at once.")
    traffic: Literal["host", "pods", "all"] = Field("all", description="Whose lookups fail.")
    duration: RulesEnd = None


def _lookup(name: str) -> str:
    return str(FactRef("dns-lookup", {"name": name}))


def _check_lookups_fail(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven for the host by a lookup that newly fails, and for host and pods by packets that the rules caught."""
    step = within_duration(step)
    begin = step.returned or step.begin
    if unloaded := check_loaded(timeline, step):
        return unloaded
    if step.params.get("traffic") == "pods":
        return _check_caught(timeline, step)
    name = str(step.params.get("name", _NAME))
    before = last_reading_before(timeline, step, _lookup(name))
    for reading in (r for r in readings_after(timeline, step, _lookup(name)) if r.began >= begin):
        if reading.value:
            because = f"{step.node} looked up {name} {reading.t - step.begin:.1f} s after the step"
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
        if before and before.value and caught_packets(timeline, step):
            return ProofResult(ProofStatus.PROVEN, f"{step.node} could no longer look up {name}", (reading.seq,))
    return no_proof(f"{step.node} was not seen to look up {name} before the step and to be stopped by its rules after")


def _check_caught(timeline: Timeline, step: StepRun) -> ProofResult:
    for reading in readings_after(timeline, step, "nft-rules"):
        if packets := reading.value.get("packets", 0) if isinstance(reading.value, dict) else 0:
            because = f"{packets} packets of pods of {step.node} to port 53 were caught"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"no pod of {step.node} was seen to look up a name")


class LookupState(TableState, frozen=True):
    """The table's state, and the name that is looked up, or ""."""

    name: LookupName = ""


def _rules(target: Target, params: Params) -> str:
    """The nft rules. Raises Unsupported for an invalid podCIDR."""
    verdicts = {"drop": ("drop", "drop"), "reject": ("reject", "reject with tcp reset")}[params.how]
    rules = [
        f"{protocol} dport 53 counter {verdict}" for protocol, verdict in zip(("udp", "tcp"), verdicts, strict=True)
    ]
    chains = []
    if params.traffic != "pods":
        chains.append(filter_chain("out", "output", rules, _EARLY))
    if params.traffic != "host":
        chains.append(filter_chain("pods", "prerouting", _of_pods(target, rules), _EARLY))
    return f"table {TABLE} {{\n{''.join(chains)}}}\n"


def _of_pods(target: Target, rules: Iterable[str]) -> list[str]:
    try:
        networks = [parse_network(text) for text in pod_networks(own_node(target))]
        outside = [text for text in _pod_addresses(target) if not any(_is_in(text, network) for network in networks)]
    except ValueError as error:
        raise Unsupported(f"{target.node}: no rules can be made of its podCIDRs: {error}") from error
    if outside or not networks:
        return [f"{_of_interfaces(target)} {rule}" for rule in rules]
    families = {4: "ip", 6: "ip6"}
    return [f"{families[network.version]} saddr {network} {rule}" for network in networks for rule in rules]


def _of_interfaces(target: Target) -> str:
    """Pod interfaces by kind, without those that lead to other nodes, which may have the same kind."""
    routes = target.require_fact(_ROUTES, "its interfaces to other nodes must be known")
    links = ", ".join(f'"{name}"' for name in sorted(set(routes.values())))
    return f"iifname != {{ {links} }} {_POD_INTERFACES}" if links else _POD_INTERFACES


def _require_early_reject(target: Target, params: Params) -> None:
    """Raises Unsupported if packets of pods cannot be rejected."""
    if params.how == "reject" and params.traffic != "host":
        why = "packets of pods are rejected before they are routed"
        if not target.require_fact(_EARLY_REJECT, why):
            raise Unsupported(
                f"{target.node}: {why}, which its kernel cannot do (Linux 5.9 and later can)",
                hint="use how: drop, or traffic: host",
            )


def _pod_addresses(target: Target) -> list[str]:
    """The addresses of pods that have their own network."""
    found = (target.objects.get(pods_path(target.node)) or {}).get("items") or []
    pods = [pod for pod in found if not pod["spec"].get("hostNetwork")]
    return [each["ip"] for pod in pods for each in pod.get("status", {}).get("podIPs") or []]


def _is_in(address: str, network: IPv4Network | IPv6Network) -> bool:
    return ip_address(address) in network


def _needs(params: Params) -> Needs:
    early = (_EARLY_REJECT,) if params.how == "reject" and params.traffic != "host" else ()
    return Needs(
        (*TABLE_FACTS, _lookup(params.name), _ROUTES, *early),
        ("nft-rules", _lookup(params.name)),
        objects=(NODES, pods_path(NODE_NAME)),
    )


def _prepare(target: Target, params: Params) -> LookupState:
    require_clean_table(target)
    _require_early_reject(target, params)
    lookup = _lookup(params.name)
    if params.traffic != "pods" and not target.require_fact(lookup, "a lookup proves the fault"):
        why = f"{target.node} cannot look up {params.name} now"
        raise Unsupported(why, hint="set name: to a name that its DNS server knows")
    return LookupState(
        rules=_rules(target, params),
        tag=target.tag,
        seconds=timer_seconds(target, params.duration),
        peer=target.require_fact("ssh-peer", "a saved plan is run from where it was made"),
        name="" if params.traffic == "pods" else params.name,
    )


def _program(state: LookupState) -> Program:
    return load_table(state, *([FactCheck(_lookup(state.name), True)] if state.name else []))


ACTION = Action(
    name="dns-failure",
    summary="make DNS lookups fail on a node and in its pods",
    description="""
    Drops or rejects the packets that the host and its pods send to port 53 over UDP and TCP, including packets to a
    cache on the node (systemd-resolved, NodeLocal DNSCache). The rules are in the nft table ``inet nodefall``. Names
    in /etc/hosts still resolve, and so do names that a program remembers or looks up over TLS or HTTPS.

    nodefall recognizes pods by the podCIDRs of the Node, so other nodes can still reach a DNS server in a pod of this
    node. Without podCIDRs, or if a pod has an address outside of them (as with the address management of Amazon,
    Calico and Cilium), it recognizes pods by the kind of the interface from which their packets come: veth or bridge,
    except interfaces that lead to other nodes. ``drop`` slows down every program that looks up a name first, such as
    sudo if the host's own name is not in /etc/hosts.
    """,
    example="{name: nameless, action: dns-failure, target: victim, with: {duration: 100s}}",
    params=Params,
    state=LookupState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("lookups-fail", _check_lookups_fail),),
    needs=_needs,
    prepare=_prepare,
    program=_program,
)
