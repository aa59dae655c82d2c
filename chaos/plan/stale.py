"""Whether a plan that somebody has read is still what would be done."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.errors import Refused
from chaos.model.plan import Plan, PlannedStep, PlannedTarget

GOOD_FOR = 15 * 60.0  # seconds
_AGAIN = "make a new one with nodefall plan, and read it"


def check_age(plan: Plan, now: float) -> None:
    """Raises Refused for one that is too old, or from a clock that is ahead of ours."""
    age = now - plan.created
    if not -60.0 <= age <= GOOD_FOR:
        when = f"{age / 60:.0f} min old" if age > 0 else "from the future"
        raise Refused(f"the plan is {when}; one is good for {GOOD_FOR / 60:.0f} min", hint=_AGAIN)


def check_same(kept: Plan, fresh: Plan) -> None:
    """``fresh`` is what would be planned now, with the same seed. Raises Refused, saying what has changed."""
    if why := _changed(kept, fresh):
        raise Refused(f"the plan is stale: {why}", hint=_AGAIN)


def _changed(kept: Plan, fresh: Plan) -> str:
    if kept.cluster_uid != fresh.cluster_uid:
        return f"it is for the cluster {kept.cluster_uid}, this is {fresh.cluster_uid}"
    if kept.experiment_hash != fresh.experiment_hash:
        return f"the experiment {kept.experiment} was changed since"
    if new := {_check(text) for text in fresh.overruled} - {_check(text) for text in kept.overruled}:
        return f"preflight refuses more now: {', '.join(sorted(new))}"
    return next(filter(None, _details(kept, fresh)), "")


def _details(kept: Plan, fresh: Plan) -> Iterator[str]:
    targets = {(t.target, t.node): t for t in fresh.targets}
    for target in kept.targets:
        yield _target_changed(target, targets.get((target.target, target.node)))
    if len(kept.targets) != len(fresh.targets):
        yield "other nodes would be chosen now"
    steps = {(s.step, s.node): s for s in fresh.steps}
    for step in kept.steps:
        yield _step_changed(step, steps.get((step.step, step.node)))


def _check(overruled: str) -> str:
    return overruled.partition(":")[0]


def _target_changed(kept: PlannedTarget, fresh: PlannedTarget | None) -> str:
    if fresh is None:
        return f"{kept.node} would not be chosen for {kept.target} any more"
    if kept.uid != fresh.uid:
        return f"the node {kept.node} is another one (its uid was {kept.uid}, now it is {fresh.uid})"
    if kept.boot != fresh.boot:
        return f"{kept.node} was booted since"
    return ""


def _step_changed(kept: PlannedStep, fresh: PlannedStep | None) -> str:
    if fresh is None:
        return f"the step {kept.label} would not be done any more"
    for name in ("action", "params", "commands", "undo", "before", "self_heal"):
        if getattr(kept, name) != getattr(fresh, name):
            return f"{name.replace('_', '-')} of the step {kept.label} would be different now"
    return ""
