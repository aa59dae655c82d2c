"""Shared by the tables of actions: what an action would do with given parameters on a given target, as text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import chaos.faults.actions.windows
from chaos.core.action import Action, AnyAction, Target, UndoStep
from chaos.core.command import Command, HostCommand
from chaos.core.encoded_script import decode_script
from chaos.core.registry import discover
from chaos.machines.windows_command_line import quote_argument

ACTIONS: dict[str, AnyAction] = discover(chaos.faults.actions, Action)
WINDOWS_ACTIONS: dict[str, AnyAction] = discover(chaos.faults.actions.windows, Action)
LOCKED = {"inhibitor-kubelet": True, "kubelet-unit": "k3s.service", "configz": {"shutdownGracePeriod": "30s"}}
BARE = Target("n1", facts={"shared-kernel": False}, tag="run-step")
NODE = Target("n1", power="redfish", facts=LOCKED, tag="run-step")
STATIC = Target("n1", power="redfish", static_pods=("etcd-n1",), tag="run-step")
_FIXED = "undo establishes a state that any node must have, whatever was read"
WITHOUT_PRECONDITIONS = dict.fromkeys(("clock-skew", "dbus-restart", "kernel-crash", "logind-restart"), _FIXED)
UP = ["no shutdown is in progress", "the node is Ready"]


def action_for(name: str, target: Target) -> AnyAction:
    """The action's form for the target's operating system."""
    return WINDOWS_ACTIONS.get(name, ACTIONS[name]) if target.os == "windows" else ACTIONS[name]


def prepare(name: str, given: dict[str, Any], target: Target) -> Any:
    """The state for parameters as in YAML, of the action's form for the target's operating system."""
    action = action_for(name, target)
    return action.prepare(target, action.params.model_validate(given))


def _when(step: UndoStep) -> str:
    return f" when {' and '.join(map(str, step.when))}" if step.when else ""


def command_text(command: Command) -> str:
    """The command in words; of a program of Windows without its directory, of PowerShell its script."""
    return _argv_text(command.argv) if isinstance(command, HostCommand) else str(command)


def _argv_text(argv: tuple[str, ...]) -> str:
    if script := decode_script(argv):
        return script
    program, *rest = argv
    return shlex.join((program.removeprefix("C:\\Windows\\System32\\"), *rest))


def line_length(command: Command) -> int:
    """Characters of the command line that is sent to a Windows host."""
    return len(" ".join(map(quote_argument, command.argv))) if isinstance(command, HostCommand) else 0


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
    action, state = action_for(name, target), prepare(name, given, target)
    program = action.program(state)
    timer, undo = program.failsafe, program.undo
    return ActionDescription(
        inject=[command_text(command) for command in program.commands],
        preconditions=[str(check) for check in program.preconditions],
        failsafe=f"{timer.unit} after {timer.seconds:g}s: {_argv_text(timer.argv)}" if timer else "",
        undo=[f"{command_text(step.command)} unless {step.unless}{_when(step)}" for step in undo.steps],
        proof=[str(check) for check in undo.proof],
        disarm=undo.disarm,
    )
