"""Shared by the tables of actions: what an action would do with given parameters on a given target, as text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import chaos.actions
from chaos.model.action import Action, Target, UndoState, UndoStep
from chaos.model.registry import discover

ACTIONS: dict[str, Action] = discover(chaos.actions, "ACTION")
LOCKED = {"kubelet-inhibitor": True, "kubelet-unit": "k3s.service", "configz": {"shutdownGracePeriod": "30s"}}
BARE = Target("n1", tag="run-step")
NODE = Target("n1", power="redfish", facts=LOCKED, tag="run-step")
STATIC = Target("n1", power="redfish", static_pods=("etcd-n1",), tag="run-step")
UP = ["preparing-for-shutdown is b false", "node-ready is True"]


def memory(name: str, given: dict[str, Any], target: Target) -> UndoState:
    action = ACTIONS[name]
    return action.prepare(target, action.params.model_validate(given))


def _when(step: UndoStep) -> str:
    return f" when {' and '.join(map(str, step.when))}" if step.when else ""


@dataclass(frozen=True)
class ActionDescription:
    """``heal`` is "UNIT after 5s: COMMAND" or ""; undo steps are "COMMAND unless CHECK [when CHECK and CHECK]"."""

    send: list[str]
    before: list[str]
    heal: str
    undo: list[str]
    proof: list[str]
    disarm: str


def describe(name: str, given: dict[str, Any], target: Target) -> ActionDescription:
    action, remembered = ACTIONS[name], memory(name, given, target)
    heal, undo = action.failsafe_timer(remembered), action.undo(remembered)
    return ActionDescription(
        send=[str(command) for command in action.inject(remembered)],
        before=[str(check) for check in action.preconditions(remembered)],
        heal=f"{heal.unit} after {heal.seconds:g}s: {shlex.join(heal.argv)}" if heal else "",
        undo=[f"{step.command} unless {step.unless}{_when(step)}" for step in undo.steps],
        proof=[str(check) for check in undo.proof],
        disarm=undo.disarm,
    )
