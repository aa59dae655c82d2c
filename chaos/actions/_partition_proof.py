"""Proof of a partition: connections to the API server, Lease renewals, packets dropped on the node."""

from __future__ import annotations

from chaos.model.action import ProofResult, ProofStatus, StepRun
from chaos.model.duration import parse_duration
from chaos.model.evidence import last_reading_before, no_proof, readings_after
from chaos.model.kube import Lease
from chaos.model.timeline import Timeline, Version

_PROBE_TIMEOUT = 3.0  # seconds; see the fact api-reachable
_MIN_RENEWALS = 2
_RULES = ("nft-rules", "firewall-rules")  # facts on Linux and Windows; false or empty without rules


def blocks_api(from_: str, traffic: str | None) -> bool:
    """Whether a partition with these parameters blocks the host's own connections to the API server."""
    return from_ in ("control-plane", "everything-but-us") and traffic != "pods"


def _partition_end(step: StepRun) -> float:
    """Until when a reading shows the partition: the node removes the rules by itself, and a probe takes its time."""
    duration = step.params.get("duration")
    failsafe = step.begin + parse_duration(str(duration)) - _PROBE_TIMEOUT if duration else step.until
    return min(step.until, failsafe)


def _partition_begin(step: StepRun) -> float:
    """From when on a reading has begun after the rules were loaded."""
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
    """Proven when the table exists and has dropped packets."""
    readings = readings_after(timeline, step, "nft-rules", _partition_end(step))
    for reading in readings:
        packets = reading.value.get("packets", 0) if isinstance(reading.value, dict) else 0
        if packets:
            return ProofResult(
                ProofStatus.PROVEN, f"the packet filter of {step.node} dropped {packets} packets", (reading.seq,)
            )
    return no_proof(f"the packet filter of {step.node} was not seen to drop anything")


def check_partitioned(timeline: Timeline, step: StepRun) -> ProofResult:
    """From the API: proven by connections, never by a counter. From others: by the packets that the rules dropped."""
    from_api = blocks_api(step.params.get("from", "control-plane"), step.params.get("traffic"))
    if removed := _check_rules_removed(timeline, step):
        return removed
    if not from_api:
        return _check_dropped(timeline, step)
    reached = _check_api_unreachable(timeline, step)
    return reached if reached.status is ProofStatus.DISPROVEN else _check_lease_renewed(timeline, step) or reached
