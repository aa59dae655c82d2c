"""Whose packets an action hits, and which peers are pinged to prove it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from chaos.core.field_types import Model
from chaos.core.labels import ZONE_LABEL
from chaos.faults.actions._packetfilter import Network

OTHER_ZONES = "other-zones"
FROM = (
    "packets between these peers and the host or its pods; other-zones: nodes with another label"
    f" {ZONE_LABEL} than the target, and their podCIDRs"
)


class PeerParams(Model):
    """Whose packets."""

    from_: Literal["control-plane", "nodes", "other-zones", "cidr"] = Field(
        "control-plane", alias="from", description=FROM
    )
    cidrs: list[Network] = Field([], description="with from: cidr; networks of either family")

    @model_validator(mode="after")
    def _validate_from(self) -> Self:
        if (self.from_ == "cidr") != bool(self.cidrs):
            raise ValueError("cidrs and from: cidr require each other")
        return self


def peer_limits(params: Mapping[str, Any]) -> dict[str, str]:
    """Parameters of a fact that pings peers, by which they are those of a step, given its recorded parameters."""
    if params.get("from") == OTHER_ZONES:
        return {"by": "zone"}
    cidrs = params.get("cidrs")
    return {"networks": ",".join(map(str, cidrs))} if cidrs and isinstance(cidrs, list) else {}
