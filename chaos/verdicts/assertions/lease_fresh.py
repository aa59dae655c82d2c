"""Assertion ``lease-fresh``: the kubelet renews the Lease of its node."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, View, format_seconds
from chaos.core.duration import format_duration, parse_duration
from chaos.core.field_types import DurationText, Flag, Model
from chaos.core.kube import Lease, LeaseSpec
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import History
from chaos.verdicts.judge.clocks import UNKNOWN, Bounds, Lists, moment_of, seconds_ahead
from chaos.verdicts.judge.signals import mask, uid_of, version_moments
from chaos.verdicts.judge.temporal import negate

_NEVER = float("inf"), float("inf")


class Params(Model):
    """Node of the Lease; ``fresh: false`` means that the Lease is stale."""

    node: str = Field(description="A target, or all.")
    at_most: DurationText | None = Field(
        None,
        alias="at-most",
        description="The maximum age of the last renewal. By default, leaseDurationSeconds of the Lease.",
    )
    fresh: Flag = True


def _samples(history: History[Lease], at_most: float | None, ahead: Bounds, lists: Lists) -> Iterator[Sample]:
    """Samples of whether the Lease is fresh: from each renewal on, until the bound is over unless renewed before.

    ``ahead``: of the clock of the node.
    """
    renewed, since = "", UNKNOWN
    expiry = float("-inf")  # until when it was perhaps fresh
    moments = [version_moments(version) for version in history]
    for version, (lo, hi), following in zip(history, moments, (*moments[1:], _NEVER), strict=True):
        earliest = lo if lo < hi else float("inf")
        if version.is_deleted:
            yield Sample(hi, False, version.seq, "its Lease was deleted", earliest, version.order)
            continue
        spec = version.object.spec or LeaseSpec()
        bound = at_most if at_most is not None else spec.lease_duration_seconds
        if version.final_state_unknown or not spec.renew_time or bound is None:
            yield Sample(hi, None, version.seq, "its Lease has no known renewTime", earliest, version.order)
            continue
        if spec.renew_time != renewed:
            measured = moment_of(spec.renew_time, ahead)
            is_listed = not renewed or version.t in lists  # it may have been stored long before
            since = (measured[0], min(hi, measured[1])) if is_listed else (lo, hi)
        renewed = spec.renew_time
        was_perhaps_fresh = expiry > lo
        known, expiry = since[0] + bound, since[1] + bound  # until when it was certainly fresh, and perhaps
        value = True if known >= hi else False if expiry <= lo else None
        text = f"its Lease was renewed {max(hi - since[1], 0.0):.0f} s before"
        if value is None and not was_perhaps_fresh:
            yield Sample(lo, None, version.seq, text)
        yield Sample(hi, value, version.seq, text, float("inf") if was_perhaps_fresh else earliest, version.order)
        yield from _expiry(version.seq, value, max(known, hi), expiry, following)


def _expiry(seq: int, value: bool | None, known: float, expiry: float, following: Bounds) -> Iterator[Sample]:
    """The end of freshness between ``known`` and ``expiry``, unless the version that follows comes before."""
    text = "its Lease is no longer renewed"
    if value is False or known >= following[1]:
        return
    if expiry <= following[0]:
        yield Sample(expiry, False, seq, text, known if known < expiry and value else float("inf"))
    elif value:
        yield Sample(known, None, seq, "it is not known when its Lease was renewed")


class LeaseFresh:
    """The age of the Lease in ``kube-node-lease`` is within the bound.

    The age starts when the API server stores a renewal, as in the node lifecycle controller (facts 5.2), so the clock
    of the node does not matter. For the first renewal and for a renewal after an observation gap, its renewTime
    counts if the clock of the node was measured. Otherwise its age is unknown.
    """

    name = "lease-fresh"
    summary = "the kubelet renews its Lease, or no longer renews it"
    example = "{assert: lease-fresh, with: {node: victim, fresh: false}, after: power-cut, within: 45s}"
    needs = "the Lease of the node in kube-node-lease, watched without a gap"
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True
    sources = ("leases", "nodes")

    def claim(self, params: Params, names: Names) -> Claim:
        node = names.nodes(params.node)
        lease = Noun(f"the Leases of {node}" if node.is_plural else f"the Lease of {node}", node.is_plural)
        stale = lease.claim("had expired", "had not expired")
        if params.at_most:
            stale = lease.is_(f"older than {format_seconds(parse_duration(params.at_most))}")
        return Claim(stale.fails, stale.holds) if params.fresh else stale

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        lists = Lists(timeline, "leases")
        at_most = parse_duration(params.at_most) if params.at_most else None
        subjects = []
        for node in view.nodes(params.node):
            history = timeline.leases.get(node)
            samples = _samples(history, at_most, seconds_ahead(timeline, node), lists) if history else ()
            signal = Signal(tuple(samples)) if params.fresh else negate(Signal(tuple(samples)))
            subjects.append(Subject(node, mask(signal, timeline, "leases", uid=uid_of(history))))
        age = f"{format_duration(parse_duration(params.at_most))}" if params.at_most else "its duration"
        expected = f"the Lease was {'' if params.fresh else 'not '}renewed within {age}"
        return SubjectSet(expected, tuple(subjects), empty_reason="no node was observed")


ASSERTION = LeaseFresh()
