"""Assertion ``lease-fresh``: the kubelet renews the Lease of its node."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, View, format_seconds
from chaos.core.duration import format_duration, parse_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.kube import Lease, LeaseSpec
from chaos.core.recording import USUAL_LAG, BlindWindow
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.time_bounds import source_time
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.signals import mask, uid_of

_NEVER = float("inf"), float("inf")


class Params(Model):
    """Node of the Lease; ``fresh: false`` means that the Lease is stale."""

    node: str = Field(description="a target, a node's name, or all")
    at_most: DurationText | None = Field(
        None, alias="at-most", description="greatest age of the renewal; default: leaseDurationSeconds of the Lease"
    )
    fresh: bool = True


def _moments(version: Version[Lease]) -> tuple[float, float]:
    """The moments between which the version happened: one, if they are as close as usual."""
    latest = min(version.t, version.latest)
    earliest = min(version.earliest, latest)
    return (latest if latest - earliest <= USUAL_LAG else earliest), latest


def _samples(history: History[Lease], params: Params, blinds: list[BlindWindow]) -> Iterator[Sample]:
    """Samples: fresh from each renewal on, stale after the bound unless renewed before."""
    longest = parse_duration(params.at_most) if params.at_most else None
    renewed, before = "", float("-inf")
    since = 0.0, 0.0  # the moments between which it was renewed
    may_be_fresh = False  # when the next version happens
    moments = [_moments(version) for version in history]
    for version, (earliest, at), following in zip(history, moments, (*moments[1:], _NEVER), strict=True):
        may_have_been_fresh, may_be_fresh = may_be_fresh, False
        if version.is_deleted:
            yield Sample(at, not params.fresh, version.seq, "its Lease was deleted", earliest, version.order)
            continue
        spec = version.object.spec or LeaseSpec()
        renew_time = source_time(spec.renew_time)
        bound = longest if longest is not None else spec.lease_duration_seconds
        if version.final_state_unknown or renew_time is None or bound is None:
            yield Sample(at, None, version.seq, "its Lease has no known renewTime", earliest, version.order)
            continue
        if spec.renew_time != renewed:
            hidden = not renewed or any(b.start <= version.t and (b.end or version.t) > before for b in blinds)
            since = (min(at, renew_time),) * 2 if hidden else (earliest, at)
        renewed, before = spec.renew_time or "", version.t
        known, expiry = (moment + bound for moment in since)  # until when it was certainly fresh, and perhaps
        text = f"its Lease was renewed {max(at - since[1], 0.0):.0f} s before"
        value = None if known <= at < expiry else (expiry > at) is params.fresh
        yield Sample(at, value, version.seq, text, at if may_have_been_fresh else earliest, version.order)
        may_be_fresh = at < expiry and expiry > following[0]
        if at < known < following[1] and (known < expiry or may_be_fresh):
            yield Sample(known, None, version.seq, "it is not known when its Lease was renewed")
        if at < expiry < following[1] and not may_be_fresh:
            yield Sample(expiry, not params.fresh, version.seq, "its Lease is no longer renewed")


class LeaseFresh:
    """The age of the Lease in ``kube-node-lease`` is within the bound.

    The age counts from the observation of a renewal, as in the node lifecycle controller (facts 5.2), so that the clock
    of the node does not matter; for the first one, and one after a blind window, from its renewTime if that is earlier.
    A renewal that was received late counts from any moment at which it may have happened.
    """

    name = "lease-fresh"
    summary = "the kubelet renews its Lease, or no longer renews it"
    example = "{assert: lease-fresh, with: {node: victim, fresh: false}, after: power-cut, within: 45s}"
    needs = "the Lease of the node in kube-node-lease, watched without a gap"
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
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
        blinds = [window for window in timeline.blind_windows if window.covers("leases")]
        subjects = []
        for node in view.nodes(params.node):
            history = timeline.leases.get(node)
            signal = Signal(tuple(_samples(history, params, blinds) if history else ()))
            subjects.append(Subject(node, mask(signal, timeline, "leases", uid=uid_of(history))))
        age = f"{format_duration(parse_duration(params.at_most))}" if params.at_most else "its duration"
        expected = f"the Lease was {'' if params.fresh else 'not '}renewed within {age}"
        return SubjectSet(expected, tuple(subjects), empty_reason="no node was observed")


ASSERTION = LeaseFresh()
