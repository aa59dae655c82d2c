"""Putting a plan together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chaos.model.action import Action, Target
from chaos.model.duration import parse_duration
from chaos.model.errors import Refused, Unsupported
from chaos.model.experiment import Experiment, Step
from chaos.model.plan import Plan, PlannedStep, PlannedTarget
from chaos.model.registry import PluginRegistry
from chaos.plan.cluster import ClusterView


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What the planner is given besides the experiment; ``chosen`` are the nodes of each target."""

    run: str
    now: float
    seed: int
    experiment_text: bytes
    view: ClusterView
    nodes_by_target: Mapping[str, tuple[str, ...]]
    targets: Mapping[str, Target]  # by node
    namespace: str
    objects: Mapping[str, Any] = field(default_factory=dict)  # by API path, see reads_of
    source: str = ""


def make_plan(experiment: Experiment, catalogue: PluginRegistry, draft: PlanInputs) -> Plan:
    """Raises Refused (with the step and node) where an action cannot be done or taken back."""
    return Plan(
        run=draft.run,
        experiment=experiment.metadata.name,
        experiment_hash=hashlib.sha256(draft.experiment_text).hexdigest(),
        cluster_uid=draft.view.uid,
        created=draft.now,
        seed=draft.seed,
        targets=tuple(
            PlannedTarget(name, node, draft.view.nodes[node].metadata.uid, boot_identity_of(draft.targets[node].facts))
            for name, nodes in draft.nodes_by_target.items()
            for node in nodes
        ),
        steps=_plan_steps(experiment, catalogue, draft),
        namespace=draft.namespace,
        facts={node: dict(target.facts) for node, target in draft.targets.items()},
        source=draft.source,
    )


def boot_identity_of(facts: Mapping[str, Any]) -> str:
    """The identity of a boot: boot ID and start of PID 1 (containers share a boot ID)."""
    return f"{facts.get('boot-id')} {facts.get('pid1-start')}"


def _plan_steps(experiment: Experiment, catalogue: PluginRegistry, draft: PlanInputs) -> tuple[PlannedStep, ...]:
    steps = tuple(
        plan_step(experiment, step, catalogue.actions[step.action], node, draft)
        for step, node in expand_steps(experiment, draft.nodes_by_target)
    )
    for step in steps:
        if why := catalogue.actions[step.action].exclusive_timer_reason:
            _check_exclusive_timer(step, why, steps)
    return steps


def _check_exclusive_timer(step: PlannedStep, why: str, steps: tuple[PlannedStep, ...]) -> None:
    """Raises Refused where another step plants a timer on the same node."""
    for other in steps:
        if other is not step and other.node == step.node and other.failsafe_timer:
            raise Refused(
                f"step {step.step} on {step.node}: {why}, and step {other.step} plants a timer there"
                f" ({other.failsafe_timer.unit})",
                hint="use two experiments, or another node",
            )


def expand_steps(experiment: Experiment, chosen: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Step, str]]:
    """Each step with each node of its target, in order; with "" where it is about the cluster."""
    for step in experiment.spec.method:
        for node in chosen[step.target] if step.target else ("",):
            yield step, node


def plan_step(experiment: Experiment, step: Step, action: Action, node: str, draft: PlanInputs) -> PlannedStep:
    """One step on one node. Raises Refused where it cannot be done or taken back."""
    params = action.params.model_validate(step.with_)
    target = replace(
        draft.targets.get(node, Target(node)),
        objects=draft.objects,
        tag=f"{draft.run}-{step.name}",
        namespace=draft.namespace,
        max_duration=parse_duration(experiment.spec.max_duration),
    )
    try:
        memory = action.prepare(target, params)
    except Unsupported as error:
        raise Refused(f"step {step.name}: {error.message}", hint=error.hint) from error
    return PlannedStep(
        step=step.name,
        action=step.action,
        node=node,
        params=params.model_dump(by_alias=True, exclude_none=True),
        undo_state=memory,
        commands=action.inject(memory),
        undo=action.undo(memory),
        proofs=tuple(proof.name for proof in action.proofs),
        preconditions=action.preconditions(memory),
        failsafe_timer=action.failsafe_timer(memory),
    )
