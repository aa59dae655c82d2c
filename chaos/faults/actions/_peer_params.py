"""Parameters for the peers and the direction of an action on packets, and the facts that measure it by pings.

Pings to one peer: an action hits the peers of its plan, but which of them is pinged is chosen from those of now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from chaos.core.action import StepRun
from chaos.core.fact import FactRef
from chaos.core.field_types import DurationText, Model
from chaos.core.labels import ZONE_LABEL
from chaos.core.timeline import Fact, Timeline
from chaos.faults.actions._packetfilter import Network

OTHER_ZONES = "other-zones"
FROM = (
    "packets between these peers and the host or its pods; other-zones: nodes with another label"
    f" {ZONE_LABEL} than the target, and their podCIDRs"
)


class PeerParams(Model):
    """The peers whose packets are affected."""

    from_: Literal["control-plane", "nodes", "other-zones", "cidr"] = Field(
        "control-plane", alias="from", description=FROM
    )
    cidrs: list[Network] = Field([], description="With from: cidr, the networks, IPv4 or IPv6.")

    @model_validator(mode="after")
    def _validate_from(self) -> Self:
        if (self.from_ == "cidr") != bool(self.cidrs):
            raise ValueError("cidrs and from: cidr require each other")
        return self


def peer_limits(params: Mapping[str, Any]) -> dict[str, str]:
    """The parameters with which a ping fact pings the peers of a step, given the step's recorded parameters."""
    if params.get("from") == OTHER_ZONES:
        return {"by": "zone"}
    cidrs = params.get("cidrs")
    return {"networks": ",".join(map(str, cidrs))} if cidrs and isinstance(cidrs, list) else {}


class NetemParams(PeerParams):
    """The peers whose packets are affected, and the duration."""

    families: list[Literal["ipv4", "ipv6"]] | None = Field(
        None, description="The IP families of the affected packets. By default, both."
    )
    direction: Literal["out", "in", "both"] = Field("out", description="The direction as seen from the node.")
    duration: DurationText | None = Field(
        None, description="When the node ends the fault by itself. By default, at maxDuration."
    )

    @model_validator(mode="after")
    def _validate_families(self) -> Self:
        if self.families == []:
            raise ValueError("families names at least one")
        return self


def measuring_fact(name: str, params: Mapping[str, Any]) -> str:
    """Reference of a fact that pings the peers of a step, given its recorded parameters."""
    families = set(params.get("families") or ())
    return str(FactRef(name, peer_limits(params) | ({"family": min(families)} if len(families) == 1 else {})))


def routes_fact(params: Mapping[str, Any]) -> str:
    """Reference of the fact ``peer-routes`` for the peers of a step."""
    return str(FactRef("peer-routes", peer_limits(params)))


def directions(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Directions in which a step's packets are affected, given its recorded parameters."""
    direction = str(params.get("direction", "out"))
    return ("out", "in") if direction == "both" else (direction,)


OWN_ZONE = "own-zone"  # kind of the peers that a fault between zones must not hit


@dataclass(frozen=True, slots=True)
class PingedPeer:
    """A kind of peer, and the address of the one that was pinged last before a step, "" if that is not known."""

    kind: str
    address: str

    def pings(self, reading: Fact) -> dict[str, Any]:
        """The pings to this peer in a reading, or {}. Recordings of other tools may have no addresses."""
        found = _pings_to(reading, self.kind)
        return found if not self.address or (found.get("address") or self.address) == self.address else {}


def hit_peer(timeline: Timeline, step: StepRun, fact: str) -> PingedPeer:
    """The pinged peer that the step hits. ``fact``: the reference of the fact with the pings."""
    return _last_pinged(timeline, step, fact, str(step.params.get("from", "control-plane")))


def own_zone_peer(timeline: Timeline, step: StepRun, fact: str) -> PingedPeer:
    """The pinged peer in the node's own zone."""
    return _last_pinged(timeline, step, fact, OWN_ZONE)


def pings_before(timeline: Timeline, step: StepRun, fact: str, peer: PingedPeer) -> list[dict[str, Any]]:
    """Pings to a peer before the step."""
    return [value for reading in _before(timeline, step, fact) if (value := peer.pings(reading))]


def _last_pinged(timeline: Timeline, step: StepRun, fact: str, kind: str) -> PingedPeer:
    found = [value for reading in _before(timeline, step, fact) if (value := _pings_to(reading, kind))]
    return PingedPeer(kind, str(found[-1].get("address") or "") if found else "")


def _before(timeline: Timeline, step: StepRun, fact: str) -> list[Fact]:
    return [reading for reading in timeline.readings(step.node, fact) if reading.t <= step.begin]


def _pings_to(reading: Fact, kind: str) -> dict[str, Any]:
    value = reading.value if isinstance(reading.value, dict) else {}
    found = value.get(kind)
    return found if isinstance(found, dict) else {}
