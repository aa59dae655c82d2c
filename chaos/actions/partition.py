"""A node cut off from others by a packet filter table of its own, on both address families.

What passes beside the kernel's packet filter (eBPF data paths that forward for pods, SR-IOV) is not cut: only the
proof on the node tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from chaos.actions._packetfilter import TABLE, BlockRule, merge_networks, parse_network, ruleset
from chaos.model.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoState,
    UndoStep,
)
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import last_reading_before, no_proof, readings_after
from chaos.model.experiment import DurationText, Model
from chaos.model.kube import Lease
from chaos.model.timeline import Timeline, Version

_NODES = "/api/v1/nodes"
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_PROBE_TIMEOUT = 3.0  # seconds; see the fact api-reachable
_MIN_RENEWALS = 2
_DELETE_TABLE_ARGV = ("nft", "delete", "table", *TABLE.split())


class Params(Model):
    """What is cut. Both address families are, always: a node that is dual-stack lives on over the other."""

    from_: Literal["control-plane", "nodes", "everything-but-us", "cidr", "port"] = Field("control-plane", alias="from")
    cidrs: list[str] = Field([], description="with from: cidr; networks of either family")
    ports: list[int] = Field([], description="with from: port; destination ports of TCP and UDP")
    families: list[Literal["ipv4", "ipv6"]] | None = Field(None, description="only to match recordings of others")
    direction: Literal["both", "in", "out"] | None = Field(None, description="as the node sees it; default both")
    traffic: Literal["host", "pods", "all"] | None = Field(None, description="whose; default all")
    duration: DurationText | None = Field(None, description="the node heals itself after it; default: maxDuration")

    @field_validator("cidrs")
    @classmethod
    def _validate_cidrs(cls, value: list[str]) -> list[str]:
        for text in value:
            parse_network(text)
        return value

    @field_validator("ports")
    @classmethod
    def _validate_ports(cls, value: list[int]) -> list[int]:
        if any(not 1 <= port <= 65535 for port in value):
            raise ValueError("a port is a number from 1 to 65535")
        return value

    @model_validator(mode="after")
    def _validate_from(self) -> Self:
        for kind, given in (("cidr", self.cidrs), ("port", self.ports)):
            if (self.from_ == kind) != bool(given):
                raise ValueError(f"{kind}s belongs to from: {kind}, and that needs it")
        return self


def _partition_end(step: StepRun) -> float:
    """When the cut was surely still there: the node heals itself, and a reading is as old as its slowest try."""
    duration = step.params.get("duration")
    own = step.begin + parse_duration(str(duration)) - _PROBE_TIMEOUT if duration else step.until
    return min(step.until, own)


def _partition_begin(step: StepRun) -> float:
    """From when on a reading was surely begun after the cut."""
    return (step.returned or step.begin) + _PROBE_TIMEOUT


def _check_rules_removed(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Somebody removed the rules, say with ``nft flush ruleset``: whatever was seen later is not the partition's."""
    for reading in readings_after(timeline, step, "nodefall-rules", _partition_end(step)):
        if reading.value is False and reading.t > _partition_begin(step):
            because = f"{step.node} had no rules of nodefall {reading.t - step.begin:.1f}s after the cut"
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    return None


def _check_lease_renewed(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """A kubelet that renews its Lease reaches the API over an address that nobody has tried. One may be in flight."""
    seen: list[Version[Lease]] = []
    for version in timeline.leases.get(step.node) or ():
        if version.t > _partition_end(step):
            break
        time = version.object.spec.renew_time if version.object.spec else None
        before = seen[-1].object.spec.renew_time if seen and seen[-1].object.spec else None
        if time and time != before:
            seen.append(version)
    late = [version for version in seen if version.t > _partition_begin(step)]
    if len(late) < _MIN_RENEWALS:
        return None
    because = f"the kubelet of {step.node} renewed its Lease {late[-1].t - step.begin:.1f}s after the cut"
    return ProofResult(ProofStatus.DISPROVEN, because, (late[-1].seq,))


def _check_api_unreachable(timeline: Timeline, step: StepRun) -> ProofResult:
    """New connections to the API fail on every address family, throughout."""
    end = _partition_end(step)
    readings = [r for r in readings_after(timeline, step, "api-reachable", end) if isinstance(r.value, dict)]
    watched = {r.seq for r in timeline.readings(step.node, "api-reachable") if r.t <= _partition_begin(step)}
    for reading in (r for r in readings if r.seq not in watched):
        open_families = sorted(family for family, reachable in reading.value.items() if reachable)
        if open_families:
            because = (
                f"{step.node} still reached the API over {' and '.join(open_families)}"
                f" {reading.t - step.begin:.1f}s after the cut"
            )
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    before = last_reading_before(timeline, step, "api-reachable")
    families = {f for f, open_ in before.value.items() if open_} if before and isinstance(before.value, dict) else set()
    for reading in readings:
        closed = {family for family, reachable in reading.value.items() if reachable is False}
        if closed and closed >= families:
            return ProofResult(
                ProofStatus.PROVEN, f"{step.node} reached the API over no address family", (reading.seq,)
            )
    untried = " and ".join(sorted(families)) if readings else ""
    return no_proof(f"nobody tried on {step.node} whether the API is reachable{untried and f' over {untried}'}")


def _check_dropped(timeline: Timeline, step: StepRun) -> ProofResult:
    """The table is there and has dropped packets."""
    readings = readings_after(timeline, step, "nodefall-rules", _partition_end(step))
    for reading in readings:
        packets = reading.value.get("packets", 0) if isinstance(reading.value, dict) else 0
        if packets:
            return ProofResult(
                ProofStatus.PROVEN, f"the packet filter of {step.node} dropped {packets} packets", (reading.seq,)
            )
    return no_proof(f"the packet filter of {step.node} was not seen to drop anything")


def _check_partitioned(timeline: Timeline, step: StepRun) -> ProofResult:
    """From the API: the connection itself decides, never a counter. From others: what the rules dropped."""
    cuts = _blocks_api(step.params.get("from", "control-plane"), step.params.get("traffic"))
    if gone := _check_rules_removed(timeline, step):
        return gone
    if not cuts:
        return _check_dropped(timeline, step)
    tried = _check_api_unreachable(timeline, step)
    return tried if tried.status is ProofStatus.DISPROVEN else _check_lease_renewed(timeline, step) or tried


class Partition(Action):
    """Loaded as one nft table ``inet nodefall``; other tables are never touched. Our own line is spared."""

    name = "partition"
    summary = "cut a node off from the control plane, other nodes, networks or ports, on both address families"
    example = "{name: cut, action: partition, target: victim, with: {from: control-plane, duration: 100s}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    proofs = (Proof("cut-is-felt", _check_partitioned),)
    proof_facts = ("api-reachable", "nodefall-rules")
    facts = ("nft", "ssh-peer", "nodefall-rules", "server-addresses", "api-peers", "api-reachable")

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - all nodes
        return (_NODES,)

    def prepare(self, target: Target, params: Params) -> UndoState:
        target.require_fact("nft", "a partition is made with nft")
        if target.require_fact("nodefall-rules", "a partition starts from a clean table") is not False:
            why = f"{target.node} still has rules of an earlier partition"
            raise Unsupported(why, hint="nodefall undo --list shows whose they are")
        if params.families is not None and len(set(params.families)) < 2:
            why = "a partition of one address family is none: a dual-stack node lives on over the other"
            raise Unsupported(why, hint="leave families out")
        return {
            "rules": _rules(target, params),
            "before": _capture_reachability(target, params),
            "tag": target.tag,
            "seconds": parse_duration(params.duration) if params.duration else target.max_duration,
        }

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        """nft would add to a table that is there, and whoever heals first would take both away."""
        return (FactCheck("nodefall-rules", False),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (HostCommand(("nft", "-f", "-"), stdin=memory["rules"]),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return FailsafeTimer(_timer_unit(memory), memory["seconds"], _DELETE_TABLE_ARGV)

    def undo(self, memory: UndoState) -> Undo:
        gone = FactCheck("nodefall-rules", False)
        back = (FactCheck("api-reachable", memory["before"]),) if memory["before"] else ()
        proof = (gone, *back, FactCheck("node-ready", True))
        return Undo((UndoStep(HostCommand(_DELETE_TABLE_ARGV), unless=gone),), proof, disarm=_timer_unit(memory))


def _timer_unit(memory: UndoState) -> str:
    return f"nodefall-{memory['tag']}"


def _blocks_api(from_: str, traffic: str | None) -> bool:
    """Whether the host itself loses the API server."""
    return from_ in ("control-plane", "everything-but-us") and traffic != "pods"


def _capture_reachability(target: Target, params: Params) -> dict[str, bool] | None:
    """What the node reaches of the API, where the cut takes that away. Raises Unsupported if it reaches nothing."""
    if not _blocks_api(params.from_, params.traffic):
        return None
    before: dict[str, bool] = target.require_fact("api-reachable", "the cut is proven by what the node can reach")
    if not any(before.values()):
        raise Unsupported(f"{target.node} does not reach the API server now", hint="see what cuts it off already")
    servers = {*target.facts["server-addresses"], *(address for address, _ in target.facts["api-peers"])}
    if servers & set(_addresses(node for node in _cluster_nodes(target) if node["metadata"]["name"] == target.node)):
        why = f"{target.node} runs the API server that it uses, from which no packet filter cuts it off"
        raise Unsupported(why, hint="choose a node without a control plane, or from: nodes")
    return before


def _rules(target: Target, params: Params) -> str:
    """Raises Unsupported, also for what the cluster calls an address and is none."""
    try:
        return ruleset(_block_rule(target, params))
    except ValueError as error:
        raise Unsupported(f"{target.node}: no rules can be made of the cluster's addresses: {error}") from error


def _block_rule(target: Target, params: Params) -> BlockRule:
    spared = target.require_fact("ssh-peer", "the line to the node must be spared")
    traffic = params.traffic or "all"
    own = [node for node in _cluster_nodes(target) if node["metadata"]["name"] == target.node]
    return BlockRule(
        peers=_peers(target, params),
        ports=params.ports,
        directions=("in", "out") if params.direction in (None, "both") else (params.direction,),
        host=traffic in ("host", "all"),
        pods=traffic in ("pods", "all"),
        own_networks=merge_networks(_pod_networks(own)),
        exempt_connection=(spared["address"], spared["port"]) if spared else None,
    )


def _peers(target: Target, params: Params) -> list[str]:
    """The networks to cut off; empty for everything, and for ports. Raises Unsupported where none is known."""
    others = [node for node in _cluster_nodes(target) if node["metadata"]["name"] != target.node]
    own = set(_addresses(node for node in _cluster_nodes(target) if node["metadata"]["name"] == target.node))
    if params.from_ == "cidr":
        return merge_networks(params.cidrs)
    if params.from_ == "nodes":
        return _require_peers(target, own, [*_addresses(others), *_pod_networks(others)], "another node")
    if params.from_ == "control-plane":
        known = [
            *target.require_fact("server-addresses", "the control plane must be found"),
            *(address for address, _ in target.require_fact("api-peers", "the control plane must be found")),
        ]
        planes = [node for node in others if any(role in node["metadata"].get("labels", {}) for role in _CONTROL_PLANE)]
        return _require_peers(target, own, [*known, *_addresses(planes)], "the control plane")
    return []


def _require_peers(target: Target, own: set[str], found: Iterable[str], whose: str) -> list[str]:
    peers = merge_networks(text for text in found if text not in own and not parse_network(text).is_loopback)
    if not peers:
        raise Unsupported(f"no address of {whose} is known that is not {target.node}'s own", hint="use from: cidr")
    return peers


def _cluster_nodes(target: Target) -> list[dict[str, Any]]:
    nodes = target.objects.get(_NODES) or {}
    return list(nodes.get("items") or [])


def _addresses(nodes: Iterable[dict[str, Any]]) -> list[str]:
    kinds = ("InternalIP", "ExternalIP")
    return [
        address["address"]
        for node in nodes
        for address in node.get("status", {}).get("addresses") or []
        if address["type"] in kinds
    ]


def _pod_networks(nodes: Iterable[dict[str, Any]]) -> list[str]:
    return [network for node in nodes for network in node.get("spec", {}).get("podCIDRs") or []]


ACTION = Partition()
