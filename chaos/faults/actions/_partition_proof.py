"""Proof of a partition: connections to the API server, Lease renewals, pings to peers, packets dropped on the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.core.action import ProofResult, ProofStatus, StepRun
from chaos.core.evidence import is_number, last_reading_before, no_proof, readings_after, within_duration
from chaos.core.fact import FactRef
from chaos.core.kube import Lease
from chaos.core.timeline import Fact, Timeline, Version
from chaos.faults.actions._peer_params import OTHER_ZONES, hit_peer, own_zone_peer, peer_limits, pings_before

_PROBE_TIMEOUT = 3.0  # seconds; see the fact api-reachable
_MIN_RENEWALS = 2
_RULES = ("nft-rules", "firewall-rules")  # facts on Linux and Windows; false or empty without rules


def blocks_api(from_: str, traffic: str | None) -> bool:
    """Whether a partition with these parameters blocks the host's own connections to the API server."""
    return from_ in ("control-plane", "everything-but-us") and traffic != "pods"


def pings_fact(params: Mapping[str, Any]) -> str | None:
    """Reference of the pings that a partition with these recorded parameters cuts; None where it cuts none for sure."""
    is_cut = params.get("from") in ("nodes", OTHER_ZONES, "cidr") and params.get("traffic") != "pods"
    return str(FactRef("round-trips", peer_limits(params))) if is_cut else None


def _partition_end(step: StepRun) -> float:
    """The end of the time in which readings show the partition: later the node may have removed the rules by itself."""
    return within_duration(step).until


def _partition_begin(step: StepRun) -> float:
    """The time from which readings began after the rules were loaded."""
    return (step.returned or step.begin) + _PROBE_TIMEOUT


def _check_rules_removed(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Disproven by removed rules, as after ``nft flush ruleset``: later readings do not show the partition."""
    for reading in (r for fact in _RULES for r in readings_after(timeline, step, fact, _partition_end(step))):
        if not reading.value and reading.t > _partition_begin(step):
            because = f"{step.node} had no rules of nodefall {reading.t - step.begin:.1f} s after the step"
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    return None


def _check_lease_renewed(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Disproven by a renewed Lease: the kubelet reaches the API over another address. One renewal may be in flight."""
    seen: list[Version[Lease]] = []
    for version in timeline.leases.get(step.node) or ():
        if version.t > _partition_end(step):
            break
        time = version.object.spec.renew_time if version.object.spec else None
        before = seen[-1].object.spec.renew_time if seen and seen[-1].object.spec else None
        if time and time != before:
            seen.append(version)
    late = [version for version in seen if version.t > _partition_begin(step)]
    if len(late) < _MIN_RENEWALS:
        return None
    because = f"the kubelet of {step.node} renewed its Lease {late[-1].t - step.begin:.1f} s after the step"
    return ProofResult(ProofStatus.DISPROVEN, because, (late[-1].seq,))


def _check_api_unreachable(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven when new connections to the API fail on every address family; disproven by one that succeeds."""
    end = _partition_end(step)
    readings = [r for r in readings_after(timeline, step, "api-reachable", end) if isinstance(r.value, dict)]
    early = {r.seq for r in timeline.readings(step.node, "api-reachable") if r.t <= _partition_begin(step)}
    for reading in (r for r in readings if r.seq not in early):
        open_families = sorted(family for family, reachable in reading.value.items() if reachable)
        if open_families:
            because = (
                f"{step.node} still reached the API over {' and '.join(open_families)}"
                f" {reading.t - step.begin:.1f} s after the step"
            )
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    before = last_reading_before(timeline, step, "api-reachable")
    families = {f for f, open_ in before.value.items() if open_} if before and isinstance(before.value, dict) else set()
    for reading in readings:
        closed = {family for family, reachable in reading.value.items() if reachable is False}
        if closed and closed >= families:
            return ProofResult(
                ProofStatus.PROVEN, f"{step.node} reached the API over no address family", (reading.seq,)
            )
    untried = " and ".join(sorted(families)) if readings else ""
    return no_proof(f"no reading on {step.node} shows whether the API is reachable{untried and f' over {untried}'}")


def _check_dropped(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven when the table exists and has dropped packets, whenever that was read."""
    for reading in readings_after(timeline, step, "nft-rules"):
        packets = reading.value.get("packets", 0) if isinstance(reading.value, dict) else 0
        if packets:
            return ProofResult(
                ProofStatus.PROVEN, f"the packet filter of {step.node} dropped {packets} packets", (reading.seq,)
            )
    return no_proof(f"the packet filter of {step.node} was not seen to drop anything")


def _check_no_answers(timeline: Timeline, step: StepRun, fact: str) -> ProofResult | None:
    """Disproven by an answer; proven if a peer that answered before stays silent. None if the pings show neither.

    With explicit networks an answer proves nothing: the step exempts the addresses of the node's own pods.
    """
    peer, own_zone = hit_peer(timeline, step, fact), own_zone_peer(timeline, step, fact)
    usual, near_usual = (_answered(pings_before(timeline, step, fact, each)[-1:]) for each in (peer, own_zone))
    begin, end = step.returned or _partition_begin(step), within_duration(step).until
    readings = [r for r in readings_after(timeline, step, fact, end) if r.began >= begin]
    seen = [(found, own_zone.pings(r), r) for r in readings if is_number((found := peer.pings(r)).get("received"))]
    for found, _, reading in seen:
        if found["received"] and step.params.get("from") == "cidr":  # a pod of this node may have the address
            return no_proof(_phrase(found, step, reading))
        if found["received"]:
            return ProofResult(ProofStatus.DISPROVEN, _phrase(found, step, reading), (reading.seq,))
    if not seen or not usual:
        return None
    for found, near, reading in seen:
        if not near_usual or not near or near.get("received"):
            because = f"{_phrase(found, step, reading)}, {usual} before"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"pings of {step.node} to its own zone were not answered either")


def _answered(pings: list[dict[str, Any]]) -> str:
    """How many of the last pings were answered, "" if none was."""
    return f"{pings[-1]['received']} of {pings[-1].get('sent')}" if pings and pings[-1].get("received") else ""


def _phrase(found: Mapping[str, Any], step: StepRun, reading: Fact) -> str:
    to = f" to {found['address']}" if found.get("address") else ""
    after = f"{reading.t - step.begin:.1f} s after the step"
    return f"{found['received']} of {found.get('sent')} pings of {step.node}{to} were answered {after}"


def check_partitioned(timeline: Timeline, step: StepRun) -> ProofResult:
    """Check a partition. From the API: proven by connections, never by a counter. From others: by unanswered pings and
    by packets that the rules dropped, which show that the pings were not lost elsewhere.
    """
    from_api = blocks_api(step.params.get("from", "control-plane"), step.params.get("traffic"))
    if removed := _check_rules_removed(timeline, step):
        return removed
    if not from_api:
        return _check_peers_cut(timeline, step)
    reached = _check_api_unreachable(timeline, step)
    return reached if reached.status is ProofStatus.DISPROVEN else _check_lease_renewed(timeline, step) or reached


def _check_peers_cut(timeline: Timeline, step: StepRun) -> ProofResult:
    fact = pings_fact(step.params)
    pings, dropped = fact and _check_no_answers(timeline, step, fact), _check_dropped(timeline, step)
    if not pings or (pings.status, dropped.status) == (ProofStatus.PROVEN, ProofStatus.UNPROVEN):
        return dropped
    if pings.status is not ProofStatus.PROVEN:
        return pings
    evidence = (*pings.evidence, *dropped.evidence)
    return ProofResult(ProofStatus.PROVEN, f"{pings.because}; {dropped.because}", evidence)
