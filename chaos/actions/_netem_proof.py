"""Proofs of delayed and dropped packets, by pings before and during the fault."""

from __future__ import annotations

from math import comb
from typing import Any

from chaos.model.action import ProofResult, ProofStatus, StepRun
from chaos.model.duration import parse_duration
from chaos.model.evidence import no_proof, readings_after, within_duration
from chaos.model.timeline import Fact, Timeline

_MIN_LOSSES = 3.0  # expected, before anything is said
_UNLIKELY = 1e-6  # probability of so few losses
_USUAL = 0.3  # of the asked loss, the most before the step
_RISE = 0.8  # share of the delay that the mean round trip must rise by; jitter and few pings explain the rest


def check_loss(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a share of lost pings as asked; disproven by so few that chance does not explain them."""
    during, seqs, ended = _during(timeline, step)
    if ended:
        return ended
    percent = float(step.params["percent"])
    sent = sum(reading["sent"] for reading in during)
    lost = sent - sum(reading["received"] for reading in during)
    if sent * percent / 100 < _MIN_LOSSES:
        return no_proof(f"{sent} pings of {step.node} are too few to show a loss of {percent:g} %")
    because = f"{lost} of {sent} pings of {step.node} were lost ({100 * lost / sent:.1f} %, asked {percent:g} %)"
    if _at_most(lost, sent, percent / 100) < _UNLIKELY:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    before = _before(timeline, step)
    usual = 1 - sum(r["received"] for r in before) / sum(r["sent"] for r in before) if before else 0.0
    if usual > _USUAL * percent / 100:
        return no_proof(f"{because}, and {100 * usual:.1f} % before the step")
    return ProofResult(ProofStatus.PROVEN, because, seqs) if lost else no_proof(because)


def check_latency(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the mean round trip rose by the delay; disproven if it rose by less than half of it."""
    during, seqs, ended = _during(timeline, step)
    if ended:
        return ended
    usual, now = _mean(_before(timeline, step)), _mean(during)
    if usual is None or now is None:
        return no_proof(f"no pings of {step.node} were answered {'during' if now is None else 'before'} the step")
    delay = parse_duration(str(step.params["delay"]))
    because = f"round trips of {step.node} took {now * 1000:.1f} ms, {usual * 1000:.1f} ms before"
    because += f" (asked {delay * 1000:g} ms more)"
    if now - usual < delay / 2:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    return ProofResult(ProofStatus.PROVEN, because, seqs) if now - usual >= _RISE * delay else no_proof(because)


def _during(timeline: Timeline, step: StepRun) -> tuple[list[dict[str, Any]], tuple[int, ...], ProofResult | None]:
    """Pings during the fault, with their sequence numbers; a result if it ended too early or there are none."""
    step = within_duration(step)
    begin = step.returned or step.begin
    for reading in readings_after(timeline, step, "netem"):
        if reading.value is False and reading.began >= begin:
            because = f"{step.node} delayed and dropped no packets {reading.t - step.begin:.1f} s after the step"
            return [], (), ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    readings = [r for r in readings_after(timeline, step, "round-trips") if r.began >= begin and _of(step, r)]
    if not readings:
        return [], (), no_proof(f"no pings of {step.node} were seen after the step")
    return [_of(step, r) for r in readings], tuple(r.seq for r in readings), None


def _before(timeline: Timeline, step: StepRun) -> list[dict[str, Any]]:
    """Pings before the fault."""
    return [value for r in timeline.readings(step.node, "round-trips") if r.t <= step.begin if (value := _of(step, r))]


def _of(step: StepRun, reading: Fact) -> dict[str, Any]:
    """Pings to the peers of the step in a reading; {} without."""
    value = reading.value if isinstance(reading.value, dict) else {}
    found: dict[str, Any] = value.get(step.params.get("from", "control-plane")) or {}
    return found


def _mean(readings: list[dict[str, Any]]) -> float | None:
    """Mean of all round trips in seconds, None without one."""
    count = sum(reading["received"] for reading in readings)
    return sum(reading["mean"] * reading["received"] for reading in readings) / count if count else None


def _at_most(lost: int, sent: int, share: float) -> float:
    """Probability of ``lost`` or fewer losses."""
    return sum(comb(sent, k) * share**k * (1 - share) ** (sent - k) for k in range(lost + 1))
