"""Whether a plan that somebody has read is still what would be done."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.errors import Refused
from chaos.model.plan import Plan, PlannedStep, PlannedTarget

MAX_AGE_SECONDS = 15 * 60.0  # seconds
_HINT = "make a new one with nodefall plan, and read it"


def check_age(plan: Plan, now: float) -> None:
    """Raises Refused for one that is too old, or from a clock that is ahead of ours."""
    age = now - plan.created
    if not -60.0 <= age <= MAX_AGE_SECONDS:
        when = f"{age / 60:.0f} min old" if age > 0 else "from the future"
        raise Refused(f"the plan is {when}; one is good for {MAX_AGE_SECONDS / 60:.0f} min", hint=_HINT)


def check_unchanged(kept: Plan, fresh: Plan) -> None:
    """``fresh`` is what would be planned now, with the same seed. Raises Refused, saying what has changed."""
    if why := _describe_change(kept, fresh):
        raise Refused(f"the plan is stale: {why}", hint=_HINT)


def _describe_change(kept: Plan, fresh: Plan) -> str:
    if kept.cluster_uid != fresh.cluster_uid:
        return f"it is for the cluster {kept.cluster_uid}, this is {fresh.cluster_uid}"
    if kept.experiment_hash != fresh.experiment_hash:
        return f"the experiment {kept.experiment} was changed since"
    if new := {_check_name(text) for text in fresh.overridden} - {_check_name(text) for text in kept.overridden}:
        return f"preflight refuses more now: {', '.join(sorted(new))}"
    return next(filter(None, _describe_changes(kept, fresh)), "")


def _describe_changes(kept: Plan, fresh: Plan) -> Iterator[str]:
    targets = {(t.target, t.node): t for t in fresh.targets}
    for target in kept.targets:
        yield _describe_target_change(target, targets.get((target.target, target.node)))
    if len(kept.targets) != len(fresh.targets):
        yield "other nodes would be chosen now"
    steps = {(s.step, s.node): s for s in fresh.steps}
    for step in kept.steps:
        yield _describe_step_change(step, steps.get((step.step, step.node)))


def _check_name(overruled: str) -> str:
    return overruled.partition(":")[0]


def _describe_target_change(kept: PlannedTarget, fresh: PlannedTarget | None) -> str:
    if fresh is None:
        return f"{kept.node} would not be chosen for {kept.target} any more"
    if kept.uid != fresh.uid:
        return f"the node {kept.node} is another one (its uid was {kept.uid}, now it is {fresh.uid})"
    if kept.boot_identity != fresh.boot_identity:
        return f"{kept.node} was booted since"
    return ""


def _describe_step_change(kept: PlannedStep, fresh: PlannedStep | None) -> str:
    if fresh is None:
        return f"the step {kept.label} would not be done any more"
    for name in ("action", "params", "commands", "undo", "preconditions", "failsafe_timer"):
        if getattr(kept, name) != getattr(fresh, name):
            return f"{name.replace('_', '-')} of the step {kept.label} would be different now"
    return ""
