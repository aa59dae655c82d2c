"""Proofs of delayed, dropped, changed and duplicated packets, by pings before and during the fault.

Binomial probabilities of ping loss are also here.
"""

from __future__ import annotations

from math import exp, lgamma, log
from typing import Any

from chaos.core.action import ProofResult, ProofStatus, StepRun
from chaos.core.duration import parse_duration
from chaos.core.evidence import no_proof, readings_after, within_duration
from chaos.core.timeline import Fact, Timeline
from chaos.faults.actions._peer_params import directions, hit_peer, measuring_fact, own_zone_peer, pings_before

_NEGLIGIBLE = 1e-12  # part of a sum
_STEPS = 50  # of the usual share, between 0 and 1


def at_most(hit: int, sent: int, share: float) -> float:
    """Probability that ``hit`` or fewer of ``sent`` are hit, each with the probability ``share``."""
    if share <= 0 or hit >= sent:
        return 1.0
    if share >= 1:
        return 0.0
    if hit > sent * share:
        return 1 - _tail(sent - hit - 1, sent, 1 - share)
    return _tail(hit, sent, share)


def at_least(hit: int, sent: int, share: float) -> float:
    """Probability that ``hit`` or more are hit."""
    return at_most(sent - hit, sent, 1 - share)


def too_many(hit: tuple[int, int], usual: tuple[int, int], share: float) -> float:
    """Probability of so few before and so many now, if ``share`` is hit now besides what is usual.

    ``hit`` and ``usual`` are how many of how many were hit, now and before. What is usual is not known exactly: this is
    the probability at the usual share with which it is highest.
    """
    return max(at_most(*usual, base) * at_least(*hit, _both(base, share)) for base in _bases())


def too_few(hit: tuple[int, int], usual: tuple[int, int], share: float) -> float:
    """Like :func:`too_many`: the probability of so many before and so few now."""
    return max(at_least(*usual, base) * at_most(*hit, _both(base, share)) for base in _bases())


def _bases() -> list[float]:
    return [step / _STEPS for step in range(_STEPS + 1)]


def _both(base: float, share: float) -> float:
    return 1 - (1 - base) * (1 - share)


def _tail(hit: int, sent: int, share: float) -> float:
    """:func:`at_most` for a ``hit`` that is not above the mean: the terms fall from it on."""
    if hit < 0:
        return 0.0
    ways = lgamma(sent + 1) - lgamma(hit + 1) - lgamma(sent - hit + 1)
    term, total = exp(ways + hit * log(share) + (sent - hit) * log(1 - share)), 0.0
    for count in range(hit, -1, -1):
        total += term
        term *= count * (1 - share) / ((sent - count + 1) * share)
        if term < total * _NEGLIGIBLE:
            break
    return total


_MIN_HITS = 3.0  # expected, before anything is said
_IMPOSSIBLE = 1e-6  # probability of so few
_UNLIKELY = 1e-3  # probability of so few, or of so many
_USUAL = 0.3  # of the asked share, the most before the step
_NOTICED = 0.9  # of pings in which a bit was flipped: the rest have it in the address of their sender
# Times the delay, and seconds, by which the mean round trip may rise: other packets of a busy network wait in queues,
# and a busy host answers late, but beyond that something else delays packets, which may be all of the rise.
_MOST_RISE, _BUSY = 3.0, 0.2
_RISE = 0.8  # share of the delay that the mean round trip must rise by; jitter and few pings explain the rest


def check_loss(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the requested share of pings is lost, besides the usual loss; disproven if far too few are lost."""
    return _check_share(timeline, step, "received", (_share(step),) * 2, f"asked {step.params['percent']:g} %")


def check_corruption(timeline: Timeline, step: StepRun) -> ProofResult:
    """Like :func:`check_loss`, if netem itself dropped nothing: the missing pings were then discarded as corrupt."""
    for reading in readings_after(timeline, within_duration(step), "netem"):
        if isinstance(reading.value, dict) and reading.value["dropped"]:
            return no_proof(f"netem of {step.node} dropped {reading.value['dropped']} packets: they were not corrupt")
    what = f"asked {step.params['percent']:g} % corrupt, netem dropped none"
    return _check_share(timeline, step, "received", (_share(step) * _NOTICED, _share(step)), what)


def check_duplicates(timeline: Timeline, step: StepRun) -> ProofResult:
    """Like :func:`check_loss`, for pings answered twice; in two directions, one ping may have three duplicates."""
    most = _share(step) if len(directions(step.params)) == 1 else 1.0
    return _check_share(timeline, step, "duplicates", (_share(step), most), f"asked {step.params['percent']:g} %")


def _check_share(timeline: Timeline, step: StepRun, key: str, shares: tuple[float, float], wanted: str) -> ProofResult:
    """``key``: what is counted of pings; received ones are those that were not lost. ``shares``: least and most."""
    readings, seqs, ended = during(timeline, step, "round-trips")
    if ended:
        return ended
    (hit, sent), least = _counts(readings, key), shares[0]
    if sent * least < _MIN_HITS:
        return no_proof(f"{sent} pings of {step.node} are too few to show what was {wanted}")
    because = f"{_phrase((hit, sent), key, step.node)} ({100 * hit / sent:.1f} %, {wanted})"
    if at_most(hit, sent, least) < _IMPOSSIBLE:
        return ProofResult(ProofStatus.DISPROVEN, because, seqs)
    usual = _counts(before(timeline, step, "round-trips"), key)
    if not usual[1]:
        return no_proof(f"{because}, and no pings before the step show what is usual")
    because = f"{because}, {usual[0]} of {usual[1]} before"
    near = _own_zone_counts(timeline, step, key, least)
    because += f", {near[0]} of {near[1]} to its own zone" if near[1] else ""
    if why := _doubt((hit, sent), usual, shares) or ("its own zone was hit too" if _is_hit(near, least) else ""):
        return no_proof(f"{because}: {why}")
    return ProofResult(ProofStatus.PROVEN, because, seqs)


def _doubt(hit: tuple[int, int], usual: tuple[int, int], shares: tuple[float, float]) -> str:
    """Why these counts, now and before, do not show the shares, or ""."""
    least, most = shares
    if usual[0] > _USUAL * least * usual[1]:
        return "too many are usual"
    if not hit[0]:
        return "it may be chance that none was"
    if too_few(hit, usual, least) < _UNLIKELY:
        return "fewer than chance explains"
    return "more than chance explains" if too_many(hit, usual, most) < _UNLIKELY else ""


def _own_zone_counts(timeline: Timeline, step: StepRun, key: str, least: float) -> tuple[int, int]:
    """Like :func:`_counts`; none without pings before the step, or if too many were hit, as with a down node."""
    usual, near = (_counts(readings, key) for readings in to_own_zone(timeline, step, "round-trips"))
    return near if usual[1] and not _is_hit(usual, least) else (0, 0)


def _is_hit(near: tuple[int, int], least: float) -> bool:
    """Whether more pings were hit than by chance, which may always hit one."""
    return near[0] > max(1, _USUAL * least * near[1])


def _phrase(counts: tuple[int, int], key: str, node: str) -> str:
    hit, sent = counts
    return f"{hit} of {sent} pings of {node} were {'lost' if key == 'received' else 'answered twice'}"


def _share(step: StepRun) -> float:
    """The share of pings that are hit: a ping passes once in each direction."""
    passes = 1 - float(step.params["percent"]) / 100
    return float(1 - passes ** len(directions(step.params)))


def _counts(readings: list[dict[str, Any]], key: str) -> tuple[int, int]:
    """How many pings were hit, and how many were sent."""
    sent = sum(reading["sent"] for reading in readings)
    if key == "received":
        return sum(reading["sent"] - reading["received"] for reading in readings), sent
    return sum(min(reading.get(key, 0), reading["sent"]) for reading in readings), sent


def check_latency(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven if the mean round trip rose by the delay, and not far more; disproven by less than half of it."""
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
    near_usual, near = map(_mean, to_own_zone(timeline, step, "round-trips"))
    if near is not None and near_usual is not None:
        because += f", {near * 1000:.1f} ms to its own zone"
        if near - near_usual >= delay / 2:
            return no_proof(f"{because}: its own zone was late too")
    if now - usual > _MOST_RISE * delay + _BUSY:
        return no_proof(f"{because}: later than a busy network explains")
    return ProofResult(ProofStatus.PROVEN, because, seqs) if now - usual >= _RISE * delay else no_proof(because)


def during(
    timeline: Timeline, step: StepRun, fact: str
) -> tuple[list[dict[str, Any]], tuple[int, ...], ProofResult | None]:
    """Pings during the fault, with their sequence numbers; a result if it ended too early or there are none.

    ``fact``: the name of the fact with the pings. Packets that bypassed the queueing discipline do not count.
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
    peer = hit_peer(timeline, step, measuring_fact(fact, step.params))
    found = [(value, r.seq) for r in _readings(timeline, step, fact) if (value := peer.pings(r))]
    if not found:
        which = f" to {peer.address}" if peer.address else ""
        return [], (), no_proof(f"no pings of {step.node}{which} were seen after the step")
    if not seen:
        return [], (), no_proof(f"no packet of {step.node} was seen in the queueing discipline of nodefall")
    return [value for value, _ in found], tuple(seq for _, seq in found), None


def before(timeline: Timeline, step: StepRun, fact: str) -> list[dict[str, Any]]:
    """Pings before the fault."""
    reference = measuring_fact(fact, step.params)
    return pings_before(timeline, step, reference, hit_peer(timeline, step, reference))


def to_own_zone(timeline: Timeline, step: StepRun, fact: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Pings to another node of the own zone, before and during a fault between zones, which must not hit them.

    Empty for other faults.
    """
    reference = measuring_fact(fact, step.params)
    peer = own_zone_peer(timeline, step, reference)
    near = [value for r in _readings(timeline, within_duration(step), fact) if (value := peer.pings(r))]
    return pings_before(timeline, step, reference, peer), near


def _readings(timeline: Timeline, step: StepRun, fact: str) -> list[Fact]:
    """The readings of the ping fact that began during the fault."""
    begin = step.returned or step.begin
    return [r for r in readings_after(timeline, step, measuring_fact(fact, step.params)) if r.began >= begin]


def _mean(readings: list[dict[str, Any]]) -> float | None:
    """The mean of all round trips in seconds; None if there are none."""
    count = sum(reading["received"] for reading in readings)
    return sum(reading["mean"] * reading["received"] for reading in readings) / count if count else None
