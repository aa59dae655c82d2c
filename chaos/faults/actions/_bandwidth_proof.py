"""Proof of a limited rate by many pings at once: how long the last of them had to wait."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chaos.core.action import ProofResult, ProofStatus, StepRun
from chaos.core.evidence import no_proof
from chaos.core.timeline import Timeline
from chaos.faults.actions._netem_proof import before, during, to_own_zone
from chaos.faults.readings.pings import BURST_BYTES

BURST = 6000  # bytes that tbf lets pass at once: at 100 Mbit/s it is called every 0.5 ms
LARGEST_BURST = 9500  # for jumbo frames: with it, pings seem to pass 13 % faster than they do
_RATE = re.compile(r"(\d+(?:\.\d+)?)(k|m)bit")
_UNITS = {"k": 1_000, "m": 1_000_000}
_EXACT, _TWICE = 1.25, 2.0  # times the rate of the step


def parse_rate(text: str) -> int:
    """Bits a second. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate such as 500kbit or 1mbit")
    return round(float(match[1]) * _UNITS[match[2]])


def check_bandwidth(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if what was sent at once took as long as at the step's rate; disproven if half of that sufficed.

    Other packets of the node share the rate, so a lower one is proof as well.
    """
    readings, seqs, ended = during(timeline, step, "ping-bursts")
    if ended:
        return ended
    wanted = parse_rate(str(step.params["rate"]))
    found = _rates(readings)
    if not found:
        return no_proof(f"of {step.node} no pings at once were all answered after the step")
    usual, best = _rates(before(timeline, step, "ping-bursts")), max(found)
    shown = f", {_kbit(max(usual))} before" if usual else ""
    because = f"pings of {step.node} passed with {_kbit(best)}{shown} (asked {_kbit(wanted)})"
    if best > _TWICE * wanted:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    if not usual or max(usual) < _TWICE * wanted:
        return no_proof(f"{because}: it is not shown that more passed before the step")
    near_usual, near = map(_rates, to_own_zone(timeline, step, "ping-bursts"))
    if near and max(near_usual, default=0.0) >= _TWICE * wanted:
        because += f", {_kbit(max(near))} to its own zone"
        if max(near) < _TWICE * wanted:
            return no_proof(f"{because}: its own zone was not faster")
    return ProofResult(ProofStatus.PROVEN, because, seqs) if best <= _EXACT * wanted else no_proof(because)


def _rates(readings: Iterable[dict[str, float]]) -> list[float]:
    """Bits a second, of readings without a loss."""
    return [rate for reading in readings if (rate := _rate(reading)) is not None]


def _rate(reading: dict[str, float]) -> float | None:
    """Bits a second, None if a ping was lost."""
    if not reading["received"] or reading["received"] < reading["sent"]:
        return None
    return 8 * (BURST_BYTES - BURST) / max(reading["longest"], 1e-6)


def _kbit(rate: float) -> str:
    return f"{rate / 1000:.0f} kbit/s"
