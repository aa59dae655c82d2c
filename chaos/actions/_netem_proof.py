"""Proofs of delayed, dropped, changed and duplicated packets, by pings before and during the fault."""

from __future__ import annotations

from math import comb
from typing import Any

from chaos.actions._netem_params import directions, measuring_fact
from chaos.model.action import ProofResult, ProofStatus, StepRun
from chaos.model.duration import parse_duration
from chaos.model.evidence import no_proof, readings_after, within_duration
from chaos.model.timeline import Fact, Timeline

_MIN_HITS = 3.0  # expected, before anything is said
_UNLIKELY = 1e-6  # probability of so few
_USUAL = 0.3  # of the asked share, the most before the step
_NOTICED = 0.9  # of pings in which a bit was flipped: the rest have it in the address of their sender
_RISE = 0.8  # share of the delay that the mean round trip must rise by; jitter and few pings explain the rest


def check_loss(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a share of lost pings as asked; disproven by so few that chance does not explain them."""
    return _check_share(timeline, step, "received", _share(step), f"asked {step.params['percent']:g} %")


def check_corruption(timeline: Timeline, step: StepRun) -> ProofResult:
    """As :func:`check_loss`, if netem itself dropped none: then those that are missing were discarded as corrupt."""
    for reading in readings_after(timeline, within_duration(step), "netem"):
        if isinstance(reading.value, dict) and reading.value["dropped"]:
            return no_proof(f"netem of {step.node} dropped {reading.value['dropped']} packets: they were not corrupt")
    what = f"asked {step.params['percent']:g} % corrupt, netem dropped none"
    return _check_share(timeline, step, "received", _share(step) * _NOTICED, what)


def check_duplicates(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a share of pings that were answered twice as asked; disproven by too few for chance."""
    return _check_share(timeline, step, "duplicates", _share(step), f"asked {step.params['percent']:g} %")


def _check_share(timeline: Timeline, step: StepRun, key: str, share: float, wanted: str) -> ProofResult:
    """``key``: what is counted of pings; received ones are those that were not lost."""
    readings, seqs, ended = during(timeline, step, "round-trips")
    if ended:
        return ended
    sent = sum(reading["sent"] for reading in readings)
    hit = _hits(readings, key)
    word = "lost" if key == "received" else "answered twice"
    if sent * share < _MIN_HITS:
        return no_proof(f"{sent} pings of {step.node} are too few to show what was {wanted}")
    because = f"{hit} of {sent} pings of {step.node} were {word} ({100 * hit / sent:.1f} %, {wanted})"
    if _at_most(hit, sent, share) < _UNLIKELY:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    earlier = before(timeline, step, "round-trips")
    usual = _hits(earlier, key) / sum(r["sent"] for r in earlier) if earlier else 0.0
    if usual > _USUAL * share:
        return no_proof(f"{because}, and {100 * usual:.1f} % before the step")
    return ProofResult(ProofStatus.PROVEN, because, seqs) if hit else no_proof(because)


def _share(step: StepRun) -> float:
    """Of pings that are hit: a ping passes as often as there are directions."""
    passes = 1 - float(step.params["percent"]) / 100
    return float(1 - passes ** len(directions(step.params)))


def _hits(readings: list[dict[str, Any]], key: str) -> int:
    if key == "received":
        return sum(reading["sent"] - reading["received"] for reading in readings)
    return sum(min(reading.get(key, 0), reading["sent"]) for reading in readings)


def check_latency(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the mean round trip rose by the delay; disproven if it rose by less than half of it."""
    readings, seqs, ended = during(timeline, step, "round-trips")
    if ended:
        return ended
    usual, now = _mean(before(timeline, step, "round-trips")), _mean(readings)
    if usual is None or now is None:
        return no_proof(f"no pings of {step.node} were answered {'during' if now is None else 'before'} the step")
    delay = parse_duration(str(step.params["delay"])) * len(directions(step.params))
    because = f"round trips of {step.node} took {now * 1000:.1f} ms, {usual * 1000:.1f} ms before"
    because += f" (asked {delay * 1000:g} ms more)"
    if now - usual < delay / 2:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    return ProofResult(ProofStatus.PROVEN, because, seqs) if now - usual >= _RISE * delay else no_proof(because)


def during(
    timeline: Timeline, step: StepRun, fact: str
) -> tuple[list[dict[str, Any]], tuple[int, ...], ProofResult | None]:
    """Pings during the fault, with their sequence numbers; a result if it ended too early or there are none.

    ``fact``: name of that with the pings. What the queueing discipline has not seen, it did not hit.
    """
    step = within_duration(step)
    begin = step.returned or step.begin
    seen = 0
    for reading in readings_after(timeline, step, "netem"):
        seen += reading.value["passed"] + reading.value["dropped"] if isinstance(reading.value, dict) else 0
        if reading.value is False and reading.began >= begin:
            because = (
                f"{step.node} had no queueing discipline of nodefall {reading.t - step.begin:.1f} s after the step"
            )
            return [], (), ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    reference = measuring_fact(fact, step.params)
    readings = [r for r in readings_after(timeline, step, reference) if r.began >= begin and _of(step, r)]
    if not readings:
        return [], (), no_proof(f"no pings of {step.node} were seen after the step")
    if not seen:
        return [], (), no_proof(f"no packet of {step.node} was seen in the queueing discipline of nodefall")
    return [_of(step, r) for r in readings], tuple(r.seq for r in readings), None


def before(timeline: Timeline, step: StepRun, fact: str) -> list[dict[str, Any]]:
    """Pings before the fault."""
    found = timeline.readings(step.node, measuring_fact(fact, step.params))
    return [value for r in found if r.t <= step.begin if (value := _of(step, r))]


def _of(step: StepRun, reading: Fact) -> dict[str, Any]:
    """Pings to the peers of the step in a reading; {} without."""
    value = reading.value if isinstance(reading.value, dict) else {}
    found: dict[str, Any] = value.get(step.params.get("from", "control-plane")) or {}
    return found


def _mean(readings: list[dict[str, Any]]) -> float | None:
    """Mean of all round trips in seconds, None without one."""
    count = sum(reading["received"] for reading in readings)
    return sum(reading["mean"] * reading["received"] for reading in readings) / count if count else None


def _at_most(hit: int, sent: int, share: float) -> float:
    """Probability of ``hit`` or fewer."""
    return sum(comb(sent, k) * share**k * (1 - share) ** (sent - k) for k in range(hit + 1))
