"""The contract of actions as a helper for tests, of built-in actions and of those of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from pydantic import BaseModel

from chaos.core.action import Action, AnyAction, FactCheck, Needs, Program, Target, Undo, failsafe_unit
from chaos.core.command import Command
from chaos.core.fact import FactRef

P = TypeVar("P", bound=BaseModel)
S = TypeVar("S", bound=Struct)


def check_action(action: Action[P, S], target: Target, params: P) -> S:
    """Check that an action keeps the contract of :class:`Action` on a target, and return its state.

    ``target`` needs the facts that prepare reads, and a tag. Nothing is sent. Raises AssertionError with every breach:

    - ``prepare`` is pure: the same state twice, and an unchanged target;
    - the state is frozen and survives JSON, as the journal stores it; so do the commands and the undo made of it;
    - undo is harmless when run twice and without the fault: each step has ``unless`` or ``when``, and a proof ends it;
    - a proof that is not weak comes first; an action that has only weak ones has no evidence but its exit code;
    - the failsafe timer is :func:`failsafe_unit` of the tag, and ends within ``max_duration``;
    - the facts that it needs, and those of all checks, are named by valid references.
    """
    before = deepcopy(target)
    state = action.prepare(target, params)
    program = action.program(state)
    breaches = [
        *_description(action),
        *_purity(action, state, target, before, params),
        *_json(action, state, program),
        *_undo(program.undo),
        *_timer(program, target),
        *_references(action.needs_with(params), program),
    ]
    if breaches:
        raise AssertionError(f"action {action.name}: " + "; ".join(breaches))
    return state


# What planning, preflight and the confirmation of a run read of an action before they know the system of its node.
_SHARED = (
    *("params", "undo_kind", "scope", "on_host", "takes_down", "powers_on", "keeps_pods_running"),
    *("irreversible_params", "undo_param", "allowance", "requires_later_step"),
)


def check_pair(action: AnyAction, windows_form: AnyAction, params: Any) -> None:
    """Check that an action of the group ``nodefall.windows_actions`` is a form of ``action``.

    A step is loaded, and its run confirmed, before its nodes are known: both forms have the same name, model of
    parameters, undo kind, scope, flags and permissions. Raises AssertionError with every breach.
    """
    breaches = [f"{name} differs" for name in _SHARED if getattr(action, name) != getattr(windows_form, name)]
    if action.name != windows_form.name:
        breaches.append(f"it is named {windows_form.name}")
    if not action.on_host:
        breaches.append("the action needs no forms: it acts through the API")
    if windows_form.systems != {"windows"}:
        breaches.append("its systems are not just windows")
    if "windows" in action.systems:
        breaches.append("the action has windows among its systems already")
    if action.needs_with(params).permissions != windows_form.needs_with(params).permissions:
        breaches.append("permissions differs")
    if action.terminates_pods(params) != windows_form.terminates_pods(params):
        breaches.append("terminates_pods differs")
    if breaches:
        raise AssertionError(f"Windows form of {action.name}: " + "; ".join(breaches))


def _description(action: Action[P, S]) -> Iterator[str]:
    if f"action: {action.name}" not in action.example:
        yield "the example is no step of this action"
    if not action.summary:
        yield "there is no summary"
    if not action.proofs or action.proofs[0].weak:
        yield "the first proof is weak, or there is none"


def _purity(action: Action[P, S], state: S, target: Target, before: Target, params: P) -> Iterator[str]:
    if target != before:
        yield "prepare is not pure: it changed the target"
    if action.prepare(before, params) != state:
        yield "prepare is not pure: it returned another state for the same target"


def _json(action: Action[P, S], state: S, program: Program) -> Iterator[str]:
    if not state.__struct_config__.frozen:
        yield "the state is not frozen"
    decoded = action.decode_state(msgspec.json.decode(msgspec.json.encode(action.encode_state(state))))
    if decoded != state:
        yield f"the state does not survive JSON: {state} became {decoded}"
    if action.program(decoded) != program:
        yield "the program differs after the state was written to JSON"
    if msgspec.json.decode(msgspec.json.encode(program.undo), type=Undo) != program.undo:
        yield "the undo does not survive JSON"
    if msgspec.json.decode(msgspec.json.encode(program.commands), type=tuple[Command, ...]) != program.commands:
        yield "the commands do not survive JSON"
    if not program.commands:
        yield "the program has no command"


def _undo(undo: Undo) -> Iterator[str]:
    for step in undo.steps:
        if not step.unless and not step.when:
            yield f"undo sends `{step.command}` also without the fault: give the step `unless`"
    if undo.steps and not undo.proof:
        yield "nothing proves the undo"


def _timer(program: Program, target: Target) -> Iterator[str]:
    timer = program.failsafe
    if timer and timer.unit != failsafe_unit(target.tag):
        yield f"the failsafe timer is {timer.unit}, not {failsafe_unit(target.tag)}"
    if timer and timer.seconds > target.max_duration:
        yield f"the failsafe timer fires after {timer.seconds:g} s, later than maxDuration ({target.max_duration:g} s)"


def _references(needs: Needs, program: Program) -> Iterator[str]:
    checks: list[FactCheck] = [*program.awaits, *program.preconditions, *program.undo.proof]
    for step in program.undo.steps:
        checks += [*step.when, *([step.unless] if step.unless else [])]
    facts = [*needs.facts, *needs.proof_facts, *(check.fact for check in checks)]
    for fact in dict.fromkeys(facts):
        try:
            FactRef.parse(fact)
        except ValueError as error:
            yield f"{fact!r} is no reference of a fact: {error}"
