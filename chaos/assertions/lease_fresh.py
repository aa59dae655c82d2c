"""Assertion ``lease-fresh``: the kubelet renews the Lease of its node."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.judge.signals import mask, mask_late
from chaos.model.assertion import View
from chaos.model.document import DurationText, Model
from chaos.model.duration import format_duration, parse_duration
from chaos.model.kube import Lease, LeaseSpec
from chaos.model.recording import BlindWindow
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.source_times import source_time
from chaos.model.timeline import History


class Params(Model):
    """Node of the Lease; ``fresh: false`` means that the Lease is stale."""

    node: str = Field(description="a target, a node's name, or all")
    at_most: DurationText | None = Field(
        None, alias="at-most", description="greatest age of the renewal; default: leaseDurationSeconds of the Lease"
    )
    fresh: bool = True


def _samples(history: History[Lease], params: Params, blinds: list[BlindWindow]) -> Iterator[Sample]:
    """Samples: fresh from each renewal on, stale after the bound unless renewed before."""
    longest = parse_duration(params.at_most) if params.at_most else None
    renewed, since, before = "", 0.0, float("-inf")
    for version, following in zip(history, (*history.times[1:], float("inf")), strict=True):
        if version.is_deleted:
            yield Sample(version.t, not params.fresh, version.seq, "its Lease was deleted")
            continue
        spec = version.object.spec or LeaseSpec()
        renew_time = source_time(spec.renew_time)
        bound = longest if longest is not None else spec.lease_duration_seconds
        if version.final_state_unknown or renew_time is None or bound is None:
            yield Sample(version.t, None, version.seq, "its Lease has no known renewTime")
            continue
        if spec.renew_time != renewed:
            is_late = not renewed or any(b.start <= version.t and (b.end or version.t) > before for b in blinds)
            since = min(version.t, renew_time) if is_late else version.t
        renewed, before = spec.renew_time or "", version.t
        expiry, text = since + bound, f"its Lease was renewed {max(version.t - since, 0.0):.0f} s before"
        yield Sample(version.t, (expiry > version.t) is params.fresh, version.seq, text)
        if version.t < expiry < following:
            yield Sample(expiry, not params.fresh, version.seq, "its Lease is no longer renewed")


class LeaseFresh:
    """The age of the Lease in ``kube-node-lease`` is within the bound.

    The age counts from the observation of a renewal, as in the node lifecycle controller (facts 5.2), so that the clock
    of the node does not matter; for a renewal that may have been observed late (the first one, and any after a blind
    window) from its renewTime, if that is earlier.
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

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        blinds = timeline.uncertain_windows("leases")
        subjects = []
        for node in view.nodes(params.node):
            history = timeline.leases.get(node)
            samples = _samples(history, params, blinds) if history else ()
            subjects.append(
                Subject(node, mask(mask_late(Signal(tuple(samples)), timeline, "leases"), timeline, "leases"))
            )
        age = f"{format_duration(parse_duration(params.at_most))}" if params.at_most else "its duration"
        expected = f"the Lease was {'' if params.fresh else 'not '}renewed within {age}"
        return SubjectSet(expected, tuple(subjects), empty_reason="no node was observed")


ASSERTION = LeaseFresh()
