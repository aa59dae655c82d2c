"""A node cut off from others by a separate packet filter table, on both address families.

Traffic that bypasses the kernel's packet filter (eBPF data paths that forward for pods, SR-IOV) is not dropped: the
proof on the node is the only evidence.
"""

from __future__ import annotations

from chaos.core.action import FactCheck, Proof, Target
from chaos.core.errors import Unsupported
from chaos.faults.actions._packetfilter import BlockRule
from chaos.faults.actions._params import timer_seconds
from chaos.faults.actions._partition_params import Params
from chaos.faults.actions._partition_proof import blocks_api, check_partitioned, pings_fact
from chaos.faults.actions._peer_params import OTHER_ZONES
from chaos.faults.actions._peers import BLACK_HOLES, capture_reachability
from chaos.faults.actions._table import TableAction, TableState, block_rules, require_clean_table
from chaos.faults.actions._zones import servers_are_in_other_zones


class PartitionState(TableState, frozen=True):
    """Besides: which address families of the API server were reachable (None: unaffected)."""

    reachable: dict[str, bool] | None = None


class Partition(TableAction[Params, PartitionState]):
    """Loads one nft table, ``inet nodefall``, and changes no other. nodefall's own connection is exempt."""

    name = "partition"
    summary = (
        "block a node's traffic with the control plane, other nodes, zones, networks or ports, on both address families"
    )
    example = "{name: cut, action: partition, target: victim, with: {from: control-plane, duration: 100s}}"
    params = Params
    state = PartitionState
    may_disconnect = True
    keeps_pods_running = False
    proofs = (Proof("cut-is-felt", check_partitioned),)
    proof_facts = ("api-reachable", "nft-rules")
    facts = ("nft", "ssh-peer", "nft-rules", "server-addresses", "api-peers", "api-reachable", BLACK_HOLES)

    def proof_facts_for(self, params: Params) -> tuple[str, ...]:
        pings = pings_fact(params.model_dump(by_alias=True))
        return (*self.proof_facts, *([pings] if pings else []))

    def prepare(self, target: Target, params: Params) -> PartitionState:
        require_clean_table(target)
        if params.families is not None and len(set(params.families)) < 2:
            why = "one address family is no partition: a dual-stack node uses the other one"
            raise Unsupported(why, hint="leave families out")
        traffic = params.traffic or "all"
        rule = BlockRule(
            ports=params.ports,
            directions=("in", "out") if params.direction in (None, "both") else (params.direction,),
            host=traffic in ("host", "all"),
            pods=traffic in ("pods", "all"),
        )
        return PartitionState(
            rules=block_rules(target, rule, params.from_, params.cidrs),
            reachable=capture_reachability(target) if _cuts_api(target, params) else None,
            tag=target.tag,
            seconds=timer_seconds(target, params.duration),
            peer=target.require_fact("ssh-peer", "the connection to the node must be exempt"),
        )

    def restored(self, state: PartitionState) -> tuple[FactCheck, ...]:
        return (FactCheck("api-reachable", state.reachable),) if state.reachable else ()


def _cuts_api(target: Target, params: Params) -> bool:
    """Whether the host cannot reach any API server. Those of the control plane may all be in other zones."""
    if params.from_ == OTHER_ZONES:
        return params.traffic != "pods" and servers_are_in_other_zones(target)
    return blocks_api(params.from_, params.traffic)


ACTION = Partition()
