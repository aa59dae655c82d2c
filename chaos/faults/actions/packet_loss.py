"""Packets of a node to the control plane or to other nodes dropped at random."""

from __future__ import annotations

from pydantic import Field

from chaos.core.action import Proof, Target
from chaos.faults.actions._netem import NETEM, NetemAction
from chaos.faults.actions._netem_params import NetemParams
from chaos.faults.actions._netem_proof import check_loss


class Params(NetemParams):
    """How many packets are dropped."""

    percent: float = Field(ge=1, le=99, description="of packets, each by chance; use partition for all of them")


class PacketLoss(NetemAction[Params]):
    """Drops packets of the host and its pods at random, by netem. nodefall's own connection is exempt.

    TCP repeats what is lost, after 0.2 s and then twice as long each time (tcp(7)), so only about 8 losses in a row
    make a Lease 40 s late: at 30 % a node stays Ready, from about 60 % on it becomes Unknown now and then.

    A multi-queue interface has one queue meanwhile, which costs throughput.
    """

    name = "packet-loss"
    summary = "drop some of a node's packets to or from the control plane, other nodes, zones or networks"
    example = "{name: lossy, action: packet-loss, target: victim, with: {percent: 30, duration: 100s}}"
    params = Params
    proofs = (Proof("pings-are-lost", check_loss),)

    def effect(self, target: Target, params: Params, interface: str) -> str:  # noqa: ARG002 - the same on every node
        return f"{NETEM} loss {params.percent:g}%"


ACTION = PacketLoss()
