"""Packets of a node changed on their way."""

from __future__ import annotations

from pydantic import Field

from chaos.actions._netem import NETEM, NetemAction
from chaos.actions._netem_params import NetemParams
from chaos.actions._netem_proof import check_corruption
from chaos.model.action import Proof, Target


class Params(NetemParams):
    """How many packets are changed."""

    percent: float = Field(ge=1, le=99, description="of packets, each by chance, in which one bit is flipped")


class PacketCorrupt(NetemAction[Params]):
    """Flips a random bit in packets of the host and its pods, by netem, after their checksums were made. nodefall's own
    connection is exempt.

    Who receives such a packet discards it by a wrong checksum, so it is lost, but on the way it costs what others do.
    Pings prove it: some are lost though netem drops none. A bit of the sender's MAC address, which is not checked, does
    no harm: about 6 % of pings. The checksums of TCP, UDP and IP find one flipped bit always.
    """

    name = "packet-corrupt"
    summary = "flip a bit in some of a node's packets to or from the control plane, other nodes or networks"
    example = "{name: corrupt, action: packet-corrupt, target: victim, with: {percent: 30, duration: 100s}}"
    params = Params
    proofs = (Proof("changed-pings-are-lost", check_corruption),)

    def effect(self, target: Target, params: Params) -> str:  # noqa: ARG002 - the same on every node
        return f"{NETEM} corrupt {params.percent:g}%"


ACTION = PacketCorrupt()
