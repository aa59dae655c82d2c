"""No parameter and no state of an action names another object than it says: contract tests over all actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from pydantic import ValidationError

from chaos.core.action import Undo, UndoStep
from chaos.core.api_path import object_path, refuse_unsafe_path, resource_path
from chaos.core.command import ApiCommand, KubeCommand
from chaos.core.errors import NodefallError, Refused
from chaos.core.permission import Permission, permission_for_fact, permissions_for_command
from chaos.core.plan import Plan, PlannedStep
from chaos.engine.planning.permissions import PermissionInputs, compute_permissions, refuse_unreviewed
from tests.kit.actionkit import ACTIONS
from tests.kit.api_actions import THROUGH_THE_API, experiment, planned_step

TRAVERSAL = "../../../../../../apis/apps/v1/namespaces/default/replicasets/x?y="
HOSTILE = [
    *(TRAVERSAL, "..", ".", "x/..", "../x", "a/b/c", "/x", "x/", "//"),
    *("x?y=", "x#y", "x%2f..%2fy", "%2e%2e", "x\\..\\y", "x y", "x\ny", "x\x00", "x;reboot", "$(id)", "`id`"),
    *("--kubeconfig=x", "x,spec.nodeName!=y", "{node}", "{namespace}", "ä", "\u202ex", "x" * 600),
]
# The program of a user, which experiments must allow.
FREE = {("command", "inject"), ("command", "undo"), ("command", "proof")}
# What means nothing else than it says where it is: paths on a host, parts of an image, selectors of labels.
HARMLESS = {("path", "/x"), ("image", "a/b/c"), ("selector", "x,spec.nodeName!=y")}


def fields() -> Iterator[tuple[str, str]]:
    for name, action in sorted(ACTIONS.items()):
        for field, info in action.params.model_fields.items():
            yield name, info.alias or field


@pytest.mark.parametrize(("name", "field"), [pair for pair in fields() if pair not in FREE], ids=str)
def test_a_parameter_with_a_hostile_name_is_refused(name: str, field: str) -> None:
    """Of the example of its page, which is valid."""
    given = yaml.safe_load(ACTIONS[name].example).get("with", {})
    ACTIONS[name].params.model_validate(given)
    for hostile in HOSTILE:
        if (field, hostile) in HARMLESS:
            continue
        for value in (hostile, [hostile], {hostile: hostile}):
            with pytest.raises(ValidationError, match=r"."):
                ACTIONS[name].params.model_validate(given | {field: value})


def replaced(value: Any, hostile: str) -> Iterator[Any]:
    """``value`` with one of its texts or keys replaced, once for each of them."""
    if isinstance(value, str):
        yield hostile
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in replaced(item, hostile))
    elif isinstance(value, dict):
        for key, item in value.items():
            rest = {other: each for other, each in value.items() if other != key}
            yield rest | {hostile: item}
            yield from (rest | {key: other} for other in replaced(item, hostile))


def requests(commands: Any, undo: Undo) -> set[Permission]:
    sent = [*commands, *(step.command for step in undo.steps)]
    checks = [*undo.proof, *(check for step in undo.steps for check in (step.unless, *step.when) if check)]
    needed = {each for command in sent if isinstance(command, ApiCommand) for each in permissions_for_command(command)}
    return needed | {each for check in checks if (each := permission_for_fact(check.fact))}


@pytest.mark.parametrize(("name", "given"), THROUGH_THE_API, ids=str)
def test_a_state_with_a_hostile_name_reaches_no_other_object(name: str, given: dict[str, Any]) -> None:
    """A state may come from a ConfigMap: it is refused, or its requests are those of the state that was planned."""
    planned = planned_step(name, given)
    action, own = ACTIONS[name], requests(planned.commands, planned.undo)
    states = [state for hostile in HOSTILE for state in replaced(planned.undo_state, hostile)]
    assert states
    refused = 0
    for state in states:
        try:
            program = action.program(action.decode_state(state))
            assert requests(program.commands, program.undo) <= own, state
        except (msgspec.ValidationError, NodefallError):
            refused += 1
    assert refused >= len(HOSTILE)


@pytest.mark.parametrize(("name", "given"), THROUGH_THE_API, ids=str)
def test_a_plan_is_compared_with_the_permissions_that_were_shown(name: str, given: dict[str, Any]) -> None:
    planned = planned_step(name, given)
    permissions = compute_permissions(experiment(name, given), PermissionInputs("kube-system"))
    refuse_unreviewed(plan(planned), permissions)
    for each in requests(planned.commands, planned.undo):
        with pytest.raises(Refused, match="would"):
            refuse_unreviewed(plan(planned), [other for other in permissions if not other.covers(each)])


def plan(step: PlannedStep) -> Plan:
    return Plan("run", "x", "", "uid", 0.0, 1, (), (step,), namespace="demo")


SCALE = {"namespace": "workload", "name": "web", "kind": "deployment", "replicas": 1}


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/apis/apps/v1/namespaces/default/deployments/web/scale", "about namespace demo"),
        ("/apis/apps/v1/namespaces/demo/replicasets/web", "patch replicasets.apps"),
        (f"/apis/apps/v1/namespaces/demo/deployments/{TRAVERSAL}/scale", "not a plain path|not the path"),
        ("/apis/apps/v1/namespaces/demo/deployments/x%2Fy/scale", "not a plain path|not the path"),
    ],
)
def test_a_request_beyond_what_the_plan_shows_is_refused(path: str, part: str) -> None:
    """Of an action whose program does not do what its declaration says, for its fault and for its undo."""
    planned = planned_step("scale", SCALE)
    permissions = compute_permissions(experiment("scale", SCALE), PermissionInputs("kube-system"))
    command = KubeCommand("PATCH", path, {})
    for changes in ({"commands": (command,)}, {"undo": Undo((UndoStep(command),))}):
        with pytest.raises(Refused, match=part):
            refuse_unreviewed(plan(msgspec.structs.replace(planned, **changes)), permissions)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_built_path_is_refused_or_names_one_object(name: str) -> None:
    places = [("pods", "default", name, "eviction"), ("pods", name, "web", ""), (name, "", "", "")]
    for place in places:
        with pytest.raises(Refused):
            refuse_unsafe_path(resource_path("v1", *place))
    with pytest.raises(Refused):
        refuse_unsafe_path(object_path("/api/v1/nodes", name))


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        ("/api/v1/nodes/n1.example.com", True),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node", True),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", True),
        ("/api/v1/namespaces?labelSelector=nodefall.dev/run%3Dx", True),  # as an undo of 0.2 has it
        ("/api/v1/namespaces/a/services/https:web:80/proxy/health?x=../y", True),
        ("/api/v1/namespaces/a/services/web:80/proxy/../../secrets", False),
        ("/api/v1/namespaces/a/services/web:80/proxy/%2e%2e/%2e%2e/secrets", False),
        ("/api/v1/namespaces/a/services/../proxy/x", False),
        ("/api/v1/namespaces/a/pods/p/exec?container=c&command=id", True),
        ("/api/v1/namespaces/a/pods/p?labelSelector=x/status", False),
        ("/api/v1/pods?limit=1", False),
        ("/api/v1/nodes/n1/", False),
        ("/api/v1//nodes", False),
        ("api/v1/nodes", False),
        ("", False),
    ],
)
def test_paths_that_a_client_sends(path: str, safe: bool) -> None:
    if safe:
        refuse_unsafe_path(path)
    else:
        with pytest.raises(Refused):
            refuse_unsafe_path(path)
