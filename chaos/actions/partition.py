"""A node cut off from others by a separate packet filter table, on both address families.

Traffic that bypasses the kernel's packet filter (eBPF data paths that forward for pods, SR-IOV) is not dropped: the
proof on the node is the only evidence.
"""

from __future__ import annotations

from msgspec import Struct

from chaos.actions._packetfilter import TABLE, BlockRule, merge_networks, ruleset
from chaos.actions._partition_params import Params
from chaos.actions._partition_proof import blocks_api, check_partitioned
from chaos.actions._peers import (
    NODES,
    addresses_of,
    capture_reachability,
    control_plane,
    other_nodes,
    own_node,
    pod_networks,
    require_peers,
)
from chaos.model.action import Action, FactCheck, FailsafeTimer, Proof, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.model.api_fact import PseudoFact
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.state_types import Tag

_DELETE_TABLE_ARGV = ("nft", "delete", "table", *TABLE.split())


class PartitionState(Struct, frozen=True):
    """The rules to load, which address families of the API server were reachable (None: unaffected), the timer.

    ``peer``: the connection that the rules leave out, None in a state of 0.1.0.
    """

    rules: str
    reachable: dict[str, bool] | None
    tag: Tag
    seconds: float
    peer: dict[str, str | int] | None = None


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
        return (NODES,)

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
            reachable=capture_reachability(target) if blocks_api(params.from_, params.traffic) else None,
            tag=target.tag,
            seconds=parse_duration(params.duration) if params.duration else target.max_duration,
            peer=target.require_fact("ssh-peer", "the connection to the node must be exempt"),
        )

    def preconditions(self, state: PartitionState) -> tuple[FactCheck, ...]:
        """nft would add to an existing table, and the first undo would delete the rules of both partitions.

        A saved plan may be run from elsewhere, and its rules would then cut nodefall off.
        """
        peer = () if state.peer is None else (FactCheck("ssh-peer", state.peer),)
        return (FactCheck("nft-rules", False), *peer)

    def inject(self, state: PartitionState) -> tuple[Command, ...]:
        return (HostCommand(("nft", "-f", "-"), stdin=state.rules),)

    def failsafe_timer(self, state: PartitionState) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, _DELETE_TABLE_ARGV)

    def undo(self, state: PartitionState) -> Undo:
        gone = FactCheck("nft-rules", False)
        reachable = (FactCheck("api-reachable", state.reachable),) if state.reachable else ()
        proof = (gone, *reachable, FactCheck(PseudoFact.NODE_READY, True))
        return Undo((UndoStep(HostCommand(_DELETE_TABLE_ARGV), unless=gone),), proof, disarm=failsafe_unit(state.tag))


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
        own_networks=merge_networks(pod_networks(own_node(target))),
        exempt_connection=(peer["address"], peer["port"]) if peer else None,
    )


def _peers(target: Target, params: Params) -> list[str]:
    """The networks to block; empty for everything, and for ports. Raises Unsupported where none is known."""
    if params.from_ == "cidr":
        return merge_networks(params.cidrs)
    if params.from_ == "nodes":
        others = other_nodes(target)
        return require_peers(target, [*addresses_of(others), *pod_networks(others)], "another node")
    return control_plane(target) if params.from_ == "control-plane" else []


ACTION = Partition()
