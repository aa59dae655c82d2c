"""A node cut off from others by a separate packet filter table, on both address families.

Traffic that bypasses the kernel's packet filter (eBPF data paths that forward for pods, SR-IOV) is not dropped: the
proof on the node is the only evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from msgspec import Struct
from pydantic import Field, field_validator, model_validator

from chaos.actions._packetfilter import TABLE, BlockRule, merge_networks, parse_network, ruleset
from chaos.actions._partition_proof import blocks_api, check_partitioned
from chaos.model.action import Action, FactCheck, FailsafeTimer, Proof, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.model.api_fact import PseudoFact
from chaos.model.command import Command, HostCommand
from chaos.model.document import DurationText, Model
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.labels import CONTROL_PLANE_LABELS
from chaos.model.state_types import Tag

_NODES = "/api/v1/nodes"
_DELETE_TABLE_ARGV = ("nft", "delete", "table", *TABLE.split())


class Params(Model):
    """Which traffic is dropped, always on both address families: a dual-stack node would use the other one."""

    from_: Literal["control-plane", "nodes", "everything-but-us", "cidr", "port"] = Field("control-plane", alias="from")
    cidrs: list[str] = Field([], description="with from: cidr; networks of either family")
    ports: list[int] = Field([], description="with from: port; destination ports of TCP and UDP")
    families: list[Literal["ipv4", "ipv6"]] | None = Field(None, description="only to match recordings of others")
    direction: Literal["both", "in", "out"] | None = Field(None, description="as the node sees it; default both")
    traffic: Literal["host", "pods", "all"] | None = Field(None, description="whose traffic; default all")
    duration: DurationText | None = Field(
        None, description="when the node removes the rules by itself; default: maxDuration"
    )

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
                raise ValueError(f"{kind}s and from: {kind} require each other")
        return self


class PartitionState(Struct, frozen=True):
    """The rules to load, which address families of the API server were reachable (None: unaffected), the timer."""

    rules: str
    reachable: dict[str, bool] | None
    tag: Tag
    seconds: float


class Partition(Action[Params, PartitionState]):
    """Loads one nft table, ``inet nodefall``, and changes no other. nodefall's own connection is exempt."""

    name = "partition"
    summary = "block a node's traffic with the control plane, other nodes, networks or ports, on both address families"
    example = "{name: cut, action: partition, target: victim, with: {from: control-plane, duration: 100s}}"
    params = Params
    state = PartitionState
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    proofs = (Proof("cut-is-felt", check_partitioned),)
    proof_facts = ("api-reachable", "nft-rules")
    facts = ("nft", "ssh-peer", "nft-rules", "server-addresses", "api-peers", "api-reachable")

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - all nodes
        return (_NODES,)

    def prepare(self, target: Target, params: Params) -> PartitionState:
        target.require_fact("nft", "a partition is made with nft")
        if target.require_fact("nft-rules", "a partition starts from a clean table") is not False:
            why = f"{target.node} still has rules of an earlier partition"
            raise Unsupported(why, hint="find the run with `nodefall undo --list` and undo it")
        if params.families is not None and len(set(params.families)) < 2:
            why = "one address family is no partition: a dual-stack node uses the other one"
            raise Unsupported(why, hint="leave families out")
        return PartitionState(
            rules=_rules(target, params),
            reachable=_capture_reachability(target, params),
            tag=target.tag,
            seconds=parse_duration(params.duration) if params.duration else target.max_duration,
        )

    def preconditions(self, state: PartitionState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        """nft would add to an existing table, and the first undo would delete the rules of both partitions."""
        return (FactCheck("nft-rules", False),)

    def inject(self, state: PartitionState) -> tuple[Command, ...]:
        return (HostCommand(("nft", "-f", "-"), stdin=state.rules),)

    def failsafe_timer(self, state: PartitionState) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, _DELETE_TABLE_ARGV)

    def undo(self, state: PartitionState) -> Undo:
        gone = FactCheck("nft-rules", False)
        reachable = (FactCheck("api-reachable", state.reachable),) if state.reachable else ()
        proof = (gone, *reachable, FactCheck(PseudoFact.NODE_READY, True))
        return Undo((UndoStep(HostCommand(_DELETE_TABLE_ARGV), unless=gone),), proof, disarm=failsafe_unit(state.tag))


def _capture_reachability(target: Target, params: Params) -> dict[str, bool] | None:
    """Reachability of the API by address family; None where the rules do not affect it. Raises Unsupported."""
    if not blocks_api(params.from_, params.traffic):
        return None
    reachable: dict[str, bool] = target.require_fact("api-reachable", "it proves the partition")
    if not any(reachable.values()):
        raise Unsupported(
            f"{target.node} does not reach the API server now", hint="restore its connection to the API server first"
        )
    servers = {*target.facts["server-addresses"], *(address for address, _ in target.facts["api-peers"])}
    if servers & set(_addresses(_own_node(target))):
        why = f"{target.node} runs the API server that it uses, and no packet filter can block that"
        raise Unsupported(why, hint="choose a node without a control plane, or from: nodes")
    return reachable


def _rules(target: Target, params: Params) -> str:
    """The nft rules. Raises Unsupported, also for an invalid address in the cluster's objects."""
    try:
        return ruleset(_block_rule(target, params))
    except ValueError as error:
        raise Unsupported(f"{target.node}: no rules can be made of the cluster's addresses: {error}") from error


def _block_rule(target: Target, params: Params) -> BlockRule:
    peer = target.require_fact("ssh-peer", "the connection to the node must be exempt")
    traffic = params.traffic or "all"
    return BlockRule(
        peers=_peers(target, params),
        ports=params.ports,
        directions=("in", "out") if params.direction in (None, "both") else (params.direction,),
        host=traffic in ("host", "all"),
        pods=traffic in ("pods", "all"),
        own_networks=merge_networks(_pod_networks(_own_node(target))),
        exempt_connection=(peer["address"], peer["port"]) if peer else None,
    )


def _peers(target: Target, params: Params) -> list[str]:
    """The networks to block; empty for everything, and for ports. Raises Unsupported where none is known."""
    others = [node for node in _cluster_nodes(target) if node["metadata"]["name"] != target.node]
    own = set(_addresses(_own_node(target)))
    if params.from_ == "cidr":
        return merge_networks(params.cidrs)
    if params.from_ == "nodes":
        return _require_peers(target, own, [*_addresses(others), *_pod_networks(others)], "another node")
    if params.from_ == "control-plane":
        known = [
            *target.require_fact("server-addresses", "the control plane must be found"),
            *(address for address, _ in target.require_fact("api-peers", "the control plane must be found")),
        ]
        planes = [
            node for node in others if any(role in node["metadata"].get("labels", {}) for role in CONTROL_PLANE_LABELS)
        ]
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


def _own_node(target: Target) -> list[dict[str, Any]]:
    return [node for node in _cluster_nodes(target) if node["metadata"]["name"] == target.node]


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
