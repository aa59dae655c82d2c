"""Whose packets are delayed, dropped or changed, in which direction; and the facts that measure it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from chaos.core.fact import FactRef
from chaos.core.field_types import DurationText
from chaos.faults.actions._peer_params import PeerParams, peer_limits


class NetemParams(PeerParams):
    """Whose packets, and for how long."""

    families: list[Literal["ipv4", "ipv6"]] | None = Field(None, description="only packets of these; default both")
    direction: Literal["out", "in", "both"] = Field("out", description="as the node sees it")
    duration: DurationText | None = Field(None, description="when the node ends it by itself; default: maxDuration")

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
