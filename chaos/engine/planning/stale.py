"""Comparison of a saved plan with what would be planned now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.core.api_fact import PseudoFact
from chaos.core.errors import Refused
from chaos.core.plan import Plan, PlannedStep, PlannedTarget

MAX_AGE_SECONDS = 15 * 60.0
_MAX_CLOCK_SKEW_SECONDS = 60.0
_HINT = "make a new plan with nodefall plan, and read it"


def check_age(plan: Plan, now: float) -> None:
    """Raises Refused for a plan that is too old, or that a clock ahead of ours has made."""
    age = now - plan.created
    if not -_MAX_CLOCK_SKEW_SECONDS <= age <= MAX_AGE_SECONDS:
        when = f"{age / 60:.0f} min old" if age > 0 else "from the future"
        raise Refused(f"the plan is {when}: a plan is valid for {MAX_AGE_SECONDS / 60:.0f} min", hint=_HINT)


def check_unchanged(saved: Plan, fresh: Plan) -> None:
    """Raises Refused, naming the change, if ``fresh`` (planned now, with the same seed) differs from ``saved``."""
    if change := _describe_change(saved, fresh):
        raise Refused(f"the plan is stale: {change}", hint=_HINT)


def _describe_change(saved: Plan, fresh: Plan) -> str:
    if saved.cluster_uid != fresh.cluster_uid:
        return f"the plan is for cluster {saved.cluster_uid}, but the server reports {fresh.cluster_uid}"
    if saved.experiment_hash != fresh.experiment_hash:
        return f"the experiment {saved.experiment} has changed"
    if new := {_check_name(text) for text in fresh.overridden} - {_check_name(text) for text in saved.overridden}:
        return f"more preflight checks fail now: {', '.join(sorted(new))}"
    return next(filter(None, _describe_changes(saved, fresh)), "")


def _describe_changes(saved: Plan, fresh: Plan) -> Iterator[str]:
    targets = {(t.target, t.node): t for t in fresh.targets}
    for target in saved.targets:
        yield _describe_target_change(target, targets.get((target.target, target.node)))
    if len(saved.targets) != len(fresh.targets):
        yield "other nodes would be selected now"
    for node in sorted({target.node for target in saved.targets}):
        yield _describe_key_change(node, saved.facts.get(node, {}), fresh.facts.get(node, {}))
    if saved.slack != fresh.slack:
        yield f"the slack of the inventory was {saved.slack:g}, now it is {fresh.slack:g}"
    if saved.workload_nodes != fresh.workload_nodes:
        yield "the workload would be confined to other nodes now"
    steps = {(s.step, s.node): s for s in fresh.steps}
    for step in saved.steps:
        yield _describe_step_change(step, steps.get((step.step, step.node)))


def _check_name(overridden: str) -> str:
    """Name of the preflight check in ``NAME: REASON``."""
    return overridden.partition(":")[0]


def _describe_target_change(saved: PlannedTarget, fresh: PlannedTarget | None) -> str:
    if fresh is None:
        return f"{saved.node} would not be selected for {saved.target} any more"
    if saved.uid != fresh.uid:
        return f"the node {saved.node} was replaced (its UID was {saved.uid}, now it is {fresh.uid})"
    if saved.boot_identity != fresh.boot_identity:
        return f"{saved.node} has booted since"
    return ""


def _describe_key_change(node: str, saved: Mapping[str, Any], fresh: Mapping[str, Any]) -> str:
    before, now = saved.get(PseudoFact.HOST_KEY), fresh.get(PseudoFact.HOST_KEY)
    return f"the host of {node} presents another host key (it was {before}, now it is {now})" if before != now else ""


def _describe_step_change(saved: PlannedStep, fresh: PlannedStep | None) -> str:
    if fresh is None:
        return f"the step {saved.label} would not be done any more"
    for name in ("action", "params", "commands", "undo", "preconditions", "failsafe_timer", "awaits"):
        if getattr(saved, name) != getattr(fresh, name):
            return f"{name.replace('_', ' ')} of the step {saved.label} would be different now"
    return ""
