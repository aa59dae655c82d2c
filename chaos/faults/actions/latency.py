"""Packets of a node to the control plane or to other nodes delayed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from chaos.core.action import Proof, Target
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.field_types import DurationText
from chaos.faults.actions._netem import NETEM, NetemAction
from chaos.faults.actions._netem_params import NetemParams
from chaos.faults.actions._netem_proof import check_latency

_MAX_SECONDS = 10.0  # a connection is given up after some more; that is a partition


class Params(NetemParams):
    """How much later the packets leave, or arrive."""

    delay: DurationText = Field(description="of each packet, as 200ms")
    jitter: DurationText | None = Field(None, description="by how much the delay varies; packets then overtake others")
    distribution: Literal["uniform", "normal"] | None = Field(None, description="of the jitter; default uniform")

    @model_validator(mode="after")
    def _validate_delay(self) -> Self:
        delay, jitter = parse_duration(self.delay), parse_duration(self.jitter) if self.jitter else 0.0
        if not 0 < delay <= _MAX_SECONDS:
            raise ValueError(f"delay is more than 0 and at most {_MAX_SECONDS:g}s")
        if jitter > delay:
            raise ValueError("jitter is at most the delay")
        if self.distribution and not jitter:
            raise ValueError("distribution requires jitter")
        return self


class Latency(NetemAction[Params]):
    """Delays packets of the host and its pods, by netem. nodefall's own connection is exempt. With ``direction: both``
    round trips take twice the delay longer.

    A slow API server, as nodes see it, is this on all nodes, ``from: control-plane``; there is no other action for it.

    A multi-queue interface has one queue meanwhile, which costs throughput.
    """

    name = "latency"
    summary = "delay a node's packets to or from the control plane, other nodes, zones or networks"
    example = "{name: slow, action: latency, target: victim, with: {delay: 200ms, jitter: 20ms, duration: 100s}}"
    params = Params
    proofs = (Proof("round-trips-rose", check_latency),)

    def effect(self, target: Target, params: Params, interface: str) -> str:  # noqa: ARG002 - the same on each
        distribution = params.distribution or "uniform"
        if distribution == "normal" and "normal" not in target.require_fact("netem-support", "delays may vary"):
            why = f"{target.node}: its tc has no table of the {distribution} distribution"
            raise Unsupported(why, hint="use distribution: uniform")
        words = [NETEM, "delay", _milliseconds(params.delay)]
        if params.jitter:
            words += [_milliseconds(params.jitter), *(["distribution", "normal"] if distribution == "normal" else ())]
        return " ".join(words)


def _milliseconds(text: str) -> str:
    return f"{parse_duration(text) * 1000:g}ms"


ACTION = Latency()
