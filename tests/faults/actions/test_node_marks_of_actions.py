"""Actions on a Node object mark it: the fault and the mark are one request, and so are the undo and its removal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chaos.core.action import Target, Undo
from chaos.core.api_fact import node_path
from chaos.core.command import Command, KubeCommand, TaintsCommand
from chaos.core.node_mark import NodeMark
from chaos.testing import check_action
from tests.kit.actionkit import ACTIONS, prepare

K = {"key": "k", "value": "old", "effect": "NoExecute"}
CONDITION = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
OUT = "node.kubernetes.io/out-of-service"


def target(spec: dict[str, Any] | None = None, conditions: tuple[Any, ...] = ()) -> Target:
    node = {"metadata": {}, "spec": spec or {}, "status": {"conditions": list(conditions)}}
    pods = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"
    objects = {node_path("n1"): node, pods: {"items": []}}
    return Target("n1", power="redfish", objects=objects, run="r-1", tag="r-1-do")


CORDONED = target({"unschedulable": True})
TABLE: list[tuple[str, dict[str, Any], Target, dict[str, Any]]] = [
    ("cordon", {}, target(), {"cordoned": False}),
    ("cordon", {}, CORDONED, {"cordoned": True}),
    ("uncordon", {}, CORDONED, {"cordoned": True}),
    ("drain", {}, target(), {"cordoned": False}),
    ("taint", {"key": "k", "effect": "NoExecute"}, target(), {"taints": {"k:NoExecute": None}}),
    ("taint", {"key": "k", "effect": "NoExecute"}, target({"taints": [K]}), {"taints": {"k:NoExecute": "old"}}),
    ("untaint", {"key": "k"}, target({"taints": [K]}), {"taints": {"k:NoExecute": "old"}}),
    ("out-of-service", {}, target(), {"taints": {f"{OUT}:NoExecute": None}}),
    ("network-unavailable", {}, target(), {"conditions": {"NetworkUnavailable": None}}),
    ("network-unavailable", {}, target({}, (CONDITION,)), {"conditions": {"NetworkUnavailable": "False"}}),
]


def annotations_of(command: Command) -> dict[str, Any]:
    """The annotations that a command writes."""
    if isinstance(command, TaintsCommand):
        return dict(command.annotations)
    assert isinstance(command, KubeCommand)
    return dict(((command.body or {}).get("metadata") or {}).get("annotations") or {})


@pytest.mark.parametrize(("name", "given", "on", "values"), TABLE)
def test_one_request_marks_and_one_removes_the_mark(
    name: str, given: dict[str, Any], on: Target, values: dict[str, Any]
) -> None:
    action, mark = ACTIONS[name], NodeMark("r-1", "do", **values)
    state = check_action(action, on, action.params.model_validate(given))
    assert annotations_of(action.program(state).commands[0]) == mark.to_annotations()
    undo = action.program(state).undo
    assert mark.removed_check("n1") in undo.proof
    assert mark.removed_check("n1") in [step.unless for step in undo.steps]
    # The mark never goes before what it is for: every step is the same request, or comes after what that restores.
    assert {json.dumps(annotations_of(step.command)) for step in undo.steps} == {json.dumps(mark.to_removal())}
    first = [step for step in undo.steps if not set(step.when) & set(undo.proof)]
    assert len({str(step.command) for step in first}) == 1
    assert [step.unless for step in undo.steps] == list(undo.proof)


@pytest.mark.parametrize(("name", "given", "on", "values"), TABLE)
def test_states_of_former_versions_are_undone_without_a_mark(
    name: str, given: dict[str, Any], on: Target, values: dict[str, Any]
) -> None:
    action = ACTIONS[name]
    encoded = action.encode_state(prepare(name, given, on))
    assert encoded.pop("origin") == {"run": "r-1", "step": "do"}
    former = action.decode_state(encoded)
    assert former == prepare(name, given, replace(on, run=""))
    marked, unmarked = (
        action.program(action.decode_state({**encoded, "origin": {"run": "r-1", "step": "do"}})).undo,
        action.program(former).undo,
    )
    assert unmarked.proof == marked.proof[: len(unmarked.proof)]
    assert all(not annotations_of(step.command) for step in unmarked.steps)
    assert not annotations_of(action.program(former).commands[0])


def test_a_step_that_changes_nothing_leaves_no_mark() -> None:
    action, state = ACTIONS["untaint"], prepare("untaint", {"key": "absent"}, target({"taints": [K]}))
    assert action.program(state).undo == Undo()
    assert not annotations_of(action.program(state).commands[0])


def test_several_taints_are_restored_by_one_request() -> None:
    both = target({"taints": [K, {"key": "k", "effect": "NoSchedule"}]})
    undo = ACTIONS["untaint"].program(prepare("untaint", {"key": "k"}, both)).undo
    (command,) = {str(step.command): step.command for step in undo.steps}.values()
    assert isinstance(command, TaintsCommand)
    assert command.add == (K, {"key": "k", "effect": "NoSchedule"})
    assert len(undo.proof) == 3


def test_a_created_node_is_marked() -> None:
    on = Target("", objects={}, run="r-1", tag="r-1-do")
    (command,) = ACTIONS["create-node"].program(prepare("create-node", {"node": "n9"}, on)).commands
    assert NodeMark("r-1", "do", created=True).to_annotations().items() <= annotations_of(command).items()


def test_two_steps_of_a_run_have_two_marks() -> None:
    assert len({NodeMark("r-1", step, cordoned=False).key for step in ("a", "b")}) == 2
