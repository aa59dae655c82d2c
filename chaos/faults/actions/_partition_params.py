"""Parameters of a partition."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from chaos.core.field_types import DurationText, Model
from chaos.faults.actions._packetfilter import Network
from chaos.faults.actions._peer_params import FROM


class Params(Model):
    """Which traffic is dropped, always on both address families: a dual-stack node would use the other one."""

    from_: Literal["control-plane", "nodes", "other-zones", "everything-but-us", "cidr", "port"] = Field(
        "control-plane", alias="from", description=FROM
    )
    cidrs: list[Network] = Field([], description="with from: cidr; networks of either family")
    ports: list[int] = Field([], description="with from: port; destination ports of TCP and UDP")
    families: list[Literal["ipv4", "ipv6"]] | None = Field(None, description="only to match recordings of others")
    direction: Literal["both", "in", "out"] | None = Field(None, description="as the node sees it; default both")
    traffic: Literal["host", "pods", "all"] | None = Field(None, description="whose traffic; default all")
    duration: DurationText | None = Field(
        None, description="when the node removes the rules by itself; default: maxDuration"
    )

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
