"""Is a node's Lease renewed?"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from chaos.judge.signals import mask, source_time
from chaos.model.assertion import View
from chaos.model.duration import format_duration, parse_duration
from chaos.model.experiment import DurationText, Model
from chaos.model.kube import Lease, LeaseSpec
from chaos.model.recording import BlindWindow
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import History


class Params(Model):
    """Whose Lease; ``fresh: false`` asks that it is stale."""

    node: str = Field(description="a target, a node's name, or all")
    at_most: DurationText | None = Field(
        None, alias="at-most", description="how old the renewal may be; default: the Lease's own leaseDurationSeconds"
    )
    fresh: bool = True


def _samples(history: History[Lease], params: Params, blinds: list[BlindWindow]) -> Iterator[Sample]:
    """Fresh from each renewal on, stale when the time is over before the next."""
    longest = parse_duration(params.at_most) if params.at_most else None
    renewed, since, before = "", 0.0, float("-inf")
    for version, following in zip(history, (*history.times[1:], float("inf")), strict=True):
        if version.is_deleted:
            yield Sample(version.t, not params.fresh, version.seq, "its Lease was deleted")
            continue
        spec = version.object.spec or LeaseSpec()
        told = source_time(spec.renew_time)
        bound = longest if longest is not None else spec.lease_duration_seconds
        if version.final_state_unknown or told is None or bound is None:
            yield Sample(version.t, None, version.seq, "its Lease does not tell when it was renewed")
            continue
        if spec.renew_time != renewed:
            late = not renewed or any(b.start <= version.t and (b.end or version.t) > before for b in blinds)
            since = min(version.t, told) if late else version.t
        renewed, before = spec.renew_time or "", version.t
        over, seen = since + bound, f"its Lease was renewed {max(version.t - since, 0.0):.0f}s before"
        yield Sample(version.t, (over > version.t) is params.fresh, version.seq, seen)
        if version.t < over < following:
            yield Sample(over, not params.fresh, version.seq, "its Lease is not renewed any more")


class LeaseFresh:
    """The Lease in ``kube-node-lease`` was renewed no longer ago than the bound.

    The age counts from the moment at which we saw a renewal, as the node lifecycle controller does it (facts 5.2), so
    that the node's clock does not matter; where a renewal may have been seen late (first of all, after a blind window)
    also from its own renewTime.
    """

    name = "lease-fresh"
    summary = "the kubelet renews its Lease, or has stopped"
    example = "{assert: lease-fresh, with: {node: victim, fresh: false}, after: power-cut, within: 45s}"
    needs = "the Lease of the node in kube-node-lease, watched without a gap"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        blinds = timeline.blind_windows_in(["leases"], timeline.start, timeline.end)
        subjects = []
        for node in view.nodes(params.node):
            history = timeline.leases.get(node)
            samples = _samples(history, params, blinds) if history else ()
            subjects.append(Subject(node, mask(Signal(tuple(samples)), timeline, "leases")))
        age = f"{format_duration(parse_duration(params.at_most))}" if params.at_most else "its duration"
        expected = f"the Lease was {'' if params.fresh else 'not '}renewed within {age}"
        return SubjectSet(expected, tuple(subjects), empty_reason="no node was seen")


ASSERTION = LeaseFresh()
