"""JSON of nodefall 0.1.0: readers of plans, results, undos and recordings. To be removed in the version after 0.2.

Each reader accepts JSON of both versions and returns the records, or the keys, of this version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.core.fact import current_fact
from chaos.core.plan import Plan
from chaos.core.result import RunResult

_COMMAND = {"shows": "evidence_pointers"}
_UNDO_STEP = {"patience": "grace_seconds", "sends": "max_attempts"}
_PLANNED_STEP = {"memory": "undo_state", "before": "preconditions", "self_heal": "failsafe_timer"}
_PLANNED_TARGET = {"boot": "boot_identity"}
_PLAN = {"overruled": "overridden"}
STEP_RESULT_KEYS = {"shown": "proof_status"}
PROOF_STATUSES = {"not shown": "unproven"}
VERDICT_KEYS = {"assumed": "assumed_facts"}
RESULT_KEYS = {"by": "started_by", "left_behind": "leftovers", "nodefall": "nodefall_version", "steady": "steady_state"}
_META = {"overruled": "overridden"}


def decode_plan(data: bytes) -> Plan:
    """A plan of either version. Raises msgspec.MsgspecError."""
    plan = _renamed(msgspec.json.decode(data), _PLAN)
    if isinstance(plan, dict):
        plan["targets"] = _each(plan.get("targets"), lambda target: _renamed(target, _PLANNED_TARGET))
        plan["steps"] = _each(plan.get("steps"), _planned_step)
        plan["facts"] = {node: upgrade_facts(facts) for node, facts in _mapping(plan.get("facts")).items()}
    return msgspec.convert(plan, Plan)


def with_former_keys(plan: Plan) -> dict[str, Any]:
    """A plan as JSON types, with the deprecated keys of 0.1.0 beside the current ones."""
    document: dict[str, Any] = msgspec.to_builtins(plan)
    add_former_keys(document, _PLAN)
    for target in document["targets"]:
        add_former_keys(target, _PLANNED_TARGET)
    for step in document["steps"]:
        add_former_keys(step, _PLANNED_STEP)
    return document


def decode_result(data: bytes) -> RunResult:
    """A result of either version. Raises msgspec.MsgspecError."""
    result = _renamed(msgspec.json.decode(data), RESULT_KEYS)
    if isinstance(result, dict):
        result["steps"] = _each(result.get("steps"), _step_result)
        for part in ("steady_state", "hypothesis", "abort", "recovery"):
            result[part] = _each(result.get(part), lambda verdict: _renamed(verdict, VERDICT_KEYS))
    return msgspec.convert(result, RunResult)


def upgrade_undo(undo: Any) -> Any:
    """The undo of a plan, a journal or its replica."""
    if not isinstance(undo, dict):
        return undo
    return undo | {"steps": _each(undo.get("steps"), _undo_step), "proof": _each(undo.get("proof"), _check)}


def upgrade_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """The object of a recording's meta entry."""
    return _renamed(meta, _META)  # type: ignore[no-any-return]


def upgrade_facts(facts: Any) -> Any:
    """Values by the name of a fact."""
    return {current_fact(name): value for name, value in facts.items()} if isinstance(facts, dict) else facts


def _planned_step(step: Any) -> Any:
    step = _renamed(step, _PLANNED_STEP)
    if not isinstance(step, dict):
        return step
    return step | {
        "commands": _each(step.get("commands"), lambda command: _renamed(command, _COMMAND)),
        "undo": upgrade_undo(step.get("undo")),
        "preconditions": _each(step.get("preconditions"), _check),
        "awaits": _each(step.get("awaits"), _check),
    }


def _undo_step(step: Any) -> Any:
    step = _renamed(step, _UNDO_STEP)
    if not isinstance(step, dict):
        return step
    return step | {
        "command": _renamed(step.get("command"), _COMMAND),
        "unless": _check(step.get("unless")),
        "when": _each(step.get("when"), _check),
    }


def _check(check: Any) -> Any:
    if not isinstance(check, dict) or not isinstance(check.get("fact"), str):
        return check
    return check | {"fact": current_fact(check["fact"])}


def _step_result(step: Any) -> Any:
    step = _renamed(step, STEP_RESULT_KEYS)
    if isinstance(step, dict) and step.get("proof_status") in PROOF_STATUSES:
        step["proof_status"] = PROOF_STATUSES[step["proof_status"]]
    return step


def _renamed(value: Any, keys: Mapping[str, str]) -> Any:
    """A copy with the keys of this version, which take precedence; anything but a mapping is returned unchanged."""
    if not isinstance(value, dict):
        return value
    return {keys.get(key, key): item for key, item in value.items() if keys.get(key) not in value}


def add_former_keys(document: dict[str, Any], keys: Mapping[str, str]) -> None:
    """Add the former name of each of ``keys`` beside the present one."""
    document.update({former: document[key] for former, key in keys.items()})


def _each(values: Any, upgrade: Any) -> Any:
    if values is None:
        return []
    return [upgrade(value) for value in values] if isinstance(values, list) else values


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
