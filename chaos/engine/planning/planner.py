"""The planner: makes a plan from an experiment and the state of the cluster, and checks whether a saved plan is still
valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from chaos.core.action import AnyAction, Target
from chaos.core.api_fact import PseudoFact
from chaos.core.cluster_view import ClusterView
from chaos.core.duration import parse_duration
from chaos.core.errors import Refused, Unsupported
from chaos.core.experiment import Experiment, Step, moment_of
from chaos.core.plan import Plan, PlannedStep, PlannedTarget
from chaos.engine.planning.identity import identity_preconditions
from chaos.engine.planning.targets import existing_pods


def least_delay(method: Sequence[Step], first: str, second: str) -> float:
    """The least number of seconds between the starts of two steps, from their ``after``; 0 if ``after`` sets none.

    ``first`` comes before ``second`` in the method.
    """
    index = {step.name: number for number, step in enumerate(method)}
    seconds, name = 0.0, second
    while name != first:
        step = method[index[name]]
        moment = moment_of(step)
        seconds += moment.offset
        name = moment.step or method[index[name] - 1].name
        if index[name] < index[first]:
            return 0.0
    return seconds


def check_order(method: Sequence[Step], steps: Sequence[PlannedStep], system: str) -> None:
    """Check each step against those before it; ``steps`` are those on one node, in order. Raises Unsupported."""
    bound = {step.name: step.bound for step in method}
    for number, step in enumerate(steps):
        check = bound[step.step].on(system).check_order
        if check is None:
            continue
        for earlier in steps[:number]:
            try:
                check(earlier.action, earlier.params, least_delay(method, earlier.step, step.step))
            except Unsupported as error:
                raise Unsupported(f"step {step.step} on {step.node}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Inputs of the planner besides the experiment; ``nodes_by_target`` are the selected nodes."""

    run: str
    now: float
    seed: int
    experiment_text: bytes
    view: ClusterView
    nodes_by_target: Mapping[str, tuple[str, ...]]
    targets: Mapping[str, Target]  # by node
    namespace: str
    objects: Mapping[str, Any] = field(default_factory=dict)  # by API path, see Needs.objects
    source: str = ""


def make_plan(experiment: Experiment, inputs: PlanInputs) -> Plan:
    """The plan of an experiment. Raises Refused, naming step and node, if an action cannot be injected or undone."""
    return Plan(
        run=inputs.run,
        experiment=experiment.metadata.name,
        experiment_hash=hashlib.sha256(inputs.experiment_text).hexdigest(),
        cluster_uid=inputs.view.uid,
        created=inputs.now,
        seed=inputs.seed,
        targets=tuple(
            PlannedTarget(
                name,
                node,
                inputs.view.nodes[node].metadata.uid,
                boot_identity_of(inputs.targets[node].facts),
                existing_pods(experiment.spec.targets[name], node, inputs.view),
            )
            for name, nodes in inputs.nodes_by_target.items()
            for node in nodes
        ),
        steps=_plan_steps(experiment, inputs),
        namespace=inputs.namespace,
        facts={node: dict(target.facts) for node, target in inputs.targets.items()},
        source=inputs.source,
    )


def boot_identity_of(facts: Mapping[str, Any]) -> str:
    """The identity of a boot: the boot ID and the start time of PID 1, because containers share a boot ID."""
    return f"{facts.get('boot-id')} {facts.get('pid1-start')}"


def _plan_steps(experiment: Experiment, inputs: PlanInputs) -> tuple[PlannedStep, ...]:
    steps = tuple(
        plan_step(experiment, step, node, inputs) for step, node in expand_steps(experiment, inputs.nodes_by_target)
    )
    for node in dict.fromkeys(step.node for step in steps):
        on_node = [step for step in steps if step.node == node]
        check_order(experiment.spec.method, on_node, inputs.targets.get(node, Target(node)).os)
    bound = {step.name: step.bound for step in experiment.spec.method}
    for step in steps:
        if why := bound[step.step].action.exclusive_timer_reason:
            _check_exclusive_timer(step, why, steps)
    return steps


def _check_exclusive_timer(step: PlannedStep, why: str, steps: tuple[PlannedStep, ...]) -> None:
    """Raises Refused if another step arms a failsafe timer on the same node."""
    for other in steps:
        if other is not step and other.node == step.node and other.failsafe_timer:
            raise Refused(
                f"step {step.step} on {step.node}: {why}, and step {other.step} arms a timer there"
                f" ({other.failsafe_timer.unit})",
                hint="use two experiments, or another node",
            )


def expand_steps(experiment: Experiment, nodes_by_target: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Step, str]]:
    """Pairs of step and node in order; the node is "" for a step about the cluster."""
    for step in experiment.spec.method:
        for node in nodes_by_target[step.target] if step.target else ("",):
            yield step, node


def _check_system(step: Step, action: AnyAction, target: Target) -> None:
    """Raises Unsupported for an action that has no commands for the operating system of the node."""
    if not (action.on_host and target.node and target.os not in action.systems):
        return
    name = target.os.capitalize()
    reason = action.no_windows_reason if target.os == "windows" else ""
    has_none = f"can have no {name} form, as {reason}" if reason else f"has no {name} form yet"
    raise Unsupported(
        f"step {step.name}: action {action.name} {has_none}, and {target.node} runs {name}",
        hint="use an action through the API, such as drain, or a node with another operating system",
    )


def plan_step(experiment: Experiment, step: Step, node: str, inputs: PlanInputs) -> PlannedStep:
    """The plan of one step on one node. Raises Unsupported if the action cannot be injected or undone."""
    found = inputs.targets.get(node, Target(node))
    action, params = step.bound.on(found.os), step.bound.params
    _check_system(step, action, found)
    target = replace(
        found,
        objects=inputs.objects,
        run=inputs.run,
        tag=f"{inputs.run}-{step.name}",
        namespace=inputs.namespace,
        max_duration=parse_duration(experiment.spec.max_duration),
    )
    try:
        state = action.prepare(target, params)
    except Unsupported as error:
        raise Unsupported(f"step {step.name}: {error.message}", hint=error.hint) from error
    encoded = action.encode_state(state)
    try:  # by the types that an undo from a journal is checked with
        program = action.program(action.decode_state(encoded))
    except msgspec.ValidationError as error:
        message = f"step {step.name}: its undo has invalid inputs: {error}"
        raise Unsupported(message, hint="correct its parameters") from error
    identity = identity_preconditions(target.facts, program.commands, program.undo)
    return PlannedStep(
        step=step.name,
        action=step.action,
        node=node,
        params=params.model_dump(by_alias=True, exclude_none=True),
        undo_state=encoded,
        commands=program.commands,
        undo=program.undo,
        proofs=tuple(proof.name for proof in action.proofs),
        preconditions=(*identity, *program.preconditions),
        failsafe_timer=program.failsafe,
        awaits=program.awaits,
    )


MAX_AGE_SECONDS = 15 * 60.0
_MAX_CLOCK_SKEW_SECONDS = 60.0
_HINT = "make a new plan with nodefall plan, and review it"


def check_age(plan: Plan, now: float) -> None:
    """Raises Refused for a plan that is too old, or whose time is in the future."""
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
    """The name of the preflight check in ``NAME: REASON``."""
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
