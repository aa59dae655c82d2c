"""Shared by the tables of actions: what an action would do with given parameters on a given target, as text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import chaos.actions
from chaos.model.action import AnyAction, Target, UndoStep
from chaos.model.registry import discover

ACTIONS: dict[str, AnyAction] = discover(chaos.actions, "ACTION")
LOCKED = {"inhibitor-kubelet": True, "kubelet-unit": "k3s.service", "configz": {"shutdownGracePeriod": "30s"}}
BARE = Target("n1", facts={"shared-kernel": False}, tag="run-step")
NODE = Target("n1", power="redfish", facts=LOCKED, tag="run-step")
STATIC = Target("n1", power="redfish", static_pods=("etcd-n1",), tag="run-step")
UP = ["preparing-for-shutdown is b false", "node-ready is True"]


def prepare(name: str, given: dict[str, Any], target: Target) -> Any:
    """The action's state for parameters as in YAML."""
    action = ACTIONS[name]
    return action.prepare(target, action.params.model_validate(given))


def _when(step: UndoStep) -> str:
    return f" when {' and '.join(map(str, step.when))}" if step.when else ""


@dataclass(frozen=True)
class ActionDescription:
    """``failsafe`` is "UNIT after 5s: COMMAND" or ""; undo steps are "COMMAND unless CHECK [when CHECK and CHECK]"."""

    inject: list[str]
    preconditions: list[str]
    failsafe: str
    undo: list[str]
    proof: list[str]
    disarm: str


def describe(name: str, given: dict[str, Any], target: Target) -> ActionDescription:
    """What the action would send with these parameters on this target, and its undo."""
    action, state = ACTIONS[name], prepare(name, given, target)
    timer, undo = action.failsafe_timer(state), action.undo(state)
    return ActionDescription(
        inject=[str(command) for command in action.inject(state)],
        preconditions=[str(check) for check in action.preconditions(state)],
        failsafe=f"{timer.unit} after {timer.seconds:g}s: {shlex.join(timer.argv)}" if timer else "",
        undo=[f"{step.command} unless {step.unless}{_when(step)}" for step in undo.steps],
        proof=[str(check) for check in undo.proof],
        disarm=undo.disarm,
    )
