"""The planner: from an experiment and what was read of the cluster to a plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chaos.core.action import AnyAction, Target
from chaos.core.cluster_view import ClusterView
from chaos.core.duration import parse_duration
from chaos.core.errors import Refused, Unsupported
from chaos.core.experiment import Experiment, Step
from chaos.core.plan import Plan, PlannedStep, PlannedTarget
from chaos.engine.planning.identity import identity_preconditions
from chaos.engine.planning.order import check_order


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
                name, node, inputs.view.nodes[node].metadata.uid, boot_identity_of(inputs.targets[node].facts)
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
    """The identity of a boot: boot ID and start of PID 1 (containers share a boot ID)."""
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
    program = action.program(state)
    identity = identity_preconditions(target.facts, program.commands, program.undo)
    return PlannedStep(
        step=step.name,
        action=step.action,
        node=node,
        params=params.model_dump(by_alias=True, exclude_none=True),
        undo_state=action.encode_state(state),
        commands=program.commands,
        undo=program.undo,
        proofs=tuple(proof.name for proof in action.proofs),
        preconditions=(*identity, *program.preconditions),
        failsafe_timer=program.failsafe,
        awaits=program.awaits,
    )
