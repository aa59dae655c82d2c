"""A node cut off from others by a separate packet filter table, on both address families.

Traffic that bypasses the kernel's packet filter (eBPF data paths that forward for pods, SR-IOV) is not dropped: the
proof on the node is the only evidence.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from chaos.core.action import Action, FactCheck, Needs, Program, Proof, Target, UndoKind
from chaos.core.errors import Unsupported
from chaos.core.field_types import Model
from chaos.faults.actions._packetfilter import BlockRule, Network
from chaos.faults.actions._params import RulesEnd, timer_seconds
from chaos.faults.actions._partition_proof import blocks_api, check_partitioned, pings_fact
from chaos.faults.actions._peer_params import FROM, OTHER_ZONES
from chaos.faults.actions._peers import BLACK_HOLES, NODES, capture_reachability, servers_are_in_other_zones
from chaos.faults.actions._table import TABLE_FACTS, TableState, block_rules, load_table, require_clean_table


class Params(Model):
    """The traffic to drop, always on both address families: a dual-stack node would use the other one."""

    from_: Literal["control-plane", "nodes", "other-zones", "everything-but-us", "cidr", "port"] = Field(
        "control-plane", alias="from", description=FROM
    )
    cidrs: list[Network] = Field([], description="With from: cidr, the networks, IPv4 or IPv6.")
    ports: list[int] = Field([], description="With from: port, the destination ports of TCP and UDP.")
    families: list[Literal["ipv4", "ipv6"]] | None = Field(
        None, description="The IP families. Needed only to match recordings of other tools."
    )
    direction: Literal["both", "in", "out"] | None = Field(
        None, description="The direction as seen from the node. By default, both."
    )
    traffic: Literal["host", "pods", "all"] | None = Field(
        None, description="Whose traffic is cut. By default, all traffic."
    )
    duration: RulesEnd = None

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


class PartitionState(TableState, frozen=True):
    """The table's state, and the address families on which the API server was reachable (None: unaffected)."""

    reachable: dict[str, bool] | None = None


def _needs(params: Params) -> Needs:
    pings = pings_fact(params.model_dump(by_alias=True))
    return Needs(
        (*TABLE_FACTS, "server-addresses", "api-peers", "api-reachable", BLACK_HOLES),
        ("api-reachable", "nft-rules", *([pings] if pings else [])),
        objects=(NODES,),
    )


def _prepare(target: Target, params: Params) -> PartitionState:
    require_clean_table(target)
    if params.families is not None and len(set(params.families)) < 2:
        why = "one address family is not a partition: a dual-stack node uses the other one"
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


def _cuts_api(target: Target, params: Params) -> bool:
    """Whether the partition cuts the host off from all API servers, which may all be in other zones."""
    if params.from_ == OTHER_ZONES:
        return params.traffic != "pods" and servers_are_in_other_zones(target)
    return blocks_api(params.from_, params.traffic)


def _program(state: PartitionState) -> Program:
    return load_table(state, *([FactCheck("api-reachable", state.reachable)] if state.reachable else []))


ACTION = Action(
    name="partition",
    summary=(
        "block a node's traffic with the control plane, other nodes, zones, networks or ports, on both address families"
    ),
    description="""
    Loads one nft table, ``inet nodefall``, and changes no other. nodefall's own connection is exempt.
    """,
    example="{name: cut, action: partition, target: victim, with: {from: control-plane, duration: 100s}}",
    params=Params,
    state=PartitionState,
    undo_kind=UndoKind.RESTORES,
    may_disconnect=True,
    proofs=(Proof("cut-is-felt", check_partitioned),),
    needs=_needs,
    prepare=_prepare,
    program=_program,
)
