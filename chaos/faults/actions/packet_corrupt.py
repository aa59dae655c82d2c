"""Packets of a node changed on their way."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from chaos.core.action import Proof, Target
from chaos.faults.actions._netem import NETEM, NetemAction
from chaos.faults.actions._netem_params import NetemParams
from chaos.faults.actions._netem_proof import check_corruption


class Params(NetemParams):
    """How many packets are changed."""

    percent: float = Field(ge=1, le=99, description="of packets, each by chance, in which one bit is flipped")

    @model_validator(mode="after")
    def _validate_direction(self) -> Self:
        """Inbound packets are changed after the network card has verified them: programs would get wrong data."""
        if self.direction != "out":
            raise ValueError("direction is out: the checksums of inbound packets have been verified before")
        return self


class PacketCorrupt(NetemAction[Params]):
    """Flips a random bit in packets of the host and its pods, by netem, after their checksums were made. nodefall's own
    connection is exempt.

    Only outbound packets: inbound ones are changed after the network card has verified them, and programs would get
    wrong data.

    Who receives such a packet discards it by a wrong checksum, so it is lost, but on the way it costs what others do.
    Pings prove it: some are lost though netem drops none. A bit of the sender's MAC address, which is not checked, does
    no harm: about 6 % of pings. The checksums of TCP, UDP and IP find one flipped bit always.
    """

    name = "packet-corrupt"
    summary = "flip a bit in some of a node's packets to the control plane, other nodes, zones or networks"
    example = "{name: corrupt, action: packet-corrupt, target: victim, with: {percent: 30, duration: 100s}}"
    params = Params
    proofs = (Proof("changed-pings-are-lost", check_corruption),)

    def effect(self, target: Target, params: Params, interface: str) -> str:  # noqa: ARG002 - the same on every node
        return f"{NETEM} corrupt {params.percent:g}%"


ACTION = PacketCorrupt()
