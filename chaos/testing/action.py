"""The contract of actions as a helper for tests, of built-in actions and of those of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from chaos.core.action import Action, AnyAction, FactCheck, Needs, Program, Target, Undo, UndoKind, failsafe_unit
from chaos.core.command import Command
from chaos.core.errors import NodefallError
from chaos.core.fact import FactRef
from chaos.documents.yaml_text import parse_flow

P = TypeVar("P", bound=BaseModel)
S = TypeVar("S", bound=Struct)
_HOSTILE = "-H host -M x"  # options of systemctl and others that act on another machine


def check_action(action: Action[P, S], target: Target, params: P, *, without_preconditions: str = "") -> S:
    """Check that an action keeps the contract of :class:`Action` on a target, and return its state.

    ``target`` needs the facts that prepare reads, and a tag. Nothing is sent. ``without_preconditions`` is why the undo
    of an action that has none cannot restore a stale value. Raises AssertionError with every breach:

    - ``prepare`` is pure: the same state twice, and an unchanged target;
    - the state is frozen and survives JSON, as the journal stores it; so do the commands and the undo made of it;
    - undo is harmless when run twice and without the fault: each step has ``unless`` or ``when``, and a proof ends it;
    - ``preconditions`` are what prepare relied on, if the action needs facts or objects: a saved plan may be old;
    - the hooks and ``undo_kind`` are what their names say, the example is a step whose parameters fit the model;
    - texts of the state are constrained: undo from another machine reads it from an object that others can write;
    - a proof that is not weak comes first; an action that has only weak ones has no evidence but its exit code;
    - the failsafe timer is :func:`failsafe_unit` of the tag, and ends within ``max_duration``;
    - the facts that it needs, and those of all checks, are named by valid references.
    """
    before = deepcopy(target)
    state = action.prepare(target, params)
    program = action.program(state)
    breaches = [
        *_description(action),
        *_hooks(action),
        *_unconstrained(action, state),
        *(() if without_preconditions else _preconditions(action.needs_with(params), program)),
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
    yield from _example(action)
    if not action.summary:
        yield "there is no summary"
    if not action.proofs or action.proofs[0].weak:
        yield "the first proof is weak, or there is none"


def _example(action: Action[P, S]) -> Iterator[str]:
    try:
        step = parse_flow(action.example)
    except ValueError as error:
        yield f"the example is not YAML: {error}"
        return
    if not isinstance(step, dict) or step.get("action") != action.name:
        yield "the example is no step of this action"
        return
    try:
        action.params.model_validate(step.get("with", {}))
    except ValidationError as error:
        first = error.errors()[0]
        yield f"the example has other parameters: {'.'.join(map(str, first['loc']))}: {first['msg']}"


def _hooks(action: Action[P, S]) -> Iterator[str]:
    if action.undo_kind not in list(UndoKind):
        yield "undo_kind is not a value of UndoKind"
    own = {field.name for field in fields(action)} | {name for name in dir(Action) if not name.startswith("__")}
    for name in sorted(set(vars(action)) | {name for name in vars(type(action)) if not name.startswith("_")}):
        if name not in own:
            near = get_close_matches(name, own, 1)
            yield f"an action has no {name}" + (f": write {near[0]}" if near else "")


def _preconditions(needs: Needs, program: Program) -> Iterator[str]:
    """What undo restores is what prepare has read: it must still be so at the moment of the fault."""
    restored = {step.unless.fact for step in program.undo.steps if step.unless} & set(needs.facts)
    if stale := restored - {check.fact for check in program.preconditions}:
        yield (
            f"undo restores the value that {min(stale)} had when the step was planned, perhaps yesterday: "
            "add it to the preconditions"
        )


def _unconstrained(action: Action[P, S], state: S) -> Iterator[str]:
    """Texts of the state that may be anything and become part of a command of the undo."""
    encoded = action.encode_state(state)
    for name, value in encoded.items():
        if not isinstance(value, str):
            continue
        try:
            undo = action.program(action.decode_state(encoded | {name: _HOSTILE})).undo
        except (ValueError, NodefallError):  # it is constrained
            continue
        if any(_HOSTILE in str(step.command) for step in undo.steps):
            yield f"undo runs with any text as the state's {name}: constrain it, as chaos.extend.action.UnitName does"


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
