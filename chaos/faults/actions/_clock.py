"""Parameters and proof of a clock that is set wrong."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from chaos.core.action import Proof, ProofResult, ProofStatus, StepRun
from chaos.core.duration import parse_duration
from chaos.core.evidence import is_number, no_proof, readings_after
from chaos.core.field_types import DurationText, Model
from chaos.core.timeline import Timeline

_MAX_SECONDS = 600.0


def _validate_bounds(text: str) -> str:
    if not 2 <= parse_duration(text) <= _MAX_SECONDS or parse_duration(text) % 1:
        raise ValueError(f"{text!r} is not a whole number of seconds from 2s to {_MAX_SECONDS:g}s")
    return text


class Params(Model):
    """How far, and which way."""

    by: Annotated[DurationText, AfterValidator(_validate_bounds)] = Field(
        "60s", description="how far the clock is set wrong, 2s to 10m"
    )
    direction: Literal["ahead", "behind"] = Field("ahead", description="ahead of the right time, or behind it")


def signed_seconds(params: Params) -> int:
    """Seconds by which the clock is set, negative for behind."""
    return int(parse_duration(params.by)) * (1 if params.direction == "ahead" else -1)


def _check_skew(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the difference to the machine's uptime, which does not depend on the clock."""
    for reading in readings_after(timeline, step, "clock-skew"):
        if is_number(reading.value) and abs(reading.value) > 1:
            because = f"the clock of {step.node} was {reading.value:+d} s wrong"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"the clock of {step.node} was not seen to be wrong")


CLOCK_IS_WRONG = Proof("clock-skew", _check_skew)
