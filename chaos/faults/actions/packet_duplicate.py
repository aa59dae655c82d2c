"""Packets of a node that arrive twice."""

from __future__ import annotations

from pydantic import Field

from chaos.core.action import Proof, Target
from chaos.faults.actions._netem import NETEM, NetemAction
from chaos.faults.actions._netem_params import NetemParams
from chaos.faults.actions._netem_proof import check_duplicates


class Params(NetemParams):
    """How many packets are sent twice."""

    percent: float = Field(ge=1, le=100, description="of packets, each by chance")


class PacketDuplicate(NetemAction[Params]):
    """Sends packets of the host and its pods twice, by netem. nodefall's own connection is exempt.

    TCP discards what it has already received; what uses UDP (DNS, QUIC, VXLAN) must do so itself.
    """

    name = "packet-duplicate"
    summary = "duplicate some of a node's packets to or from the control plane, other nodes, zones or networks"
    example = "{name: twice, action: packet-duplicate, target: victim, with: {percent: 30, duration: 100s}}"
    params = Params
    proofs = (Proof("pings-are-answered-twice", check_duplicates),)

    def effect(self, target: Target, params: Params, interface: str) -> str:  # noqa: ARG002 - the same on every node
        return f"{NETEM} duplicate {params.percent:g}%"


ACTION = PacketDuplicate()
