"""What of a replica is undone: only what an action computes for a node of the plan, whatever somebody wrote."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chaos.app.undo.replica_entries import ReplicaRules, ResolvedReplica, resolve_replica
from chaos.cluster.replica import Authenticity, PendingRun, ReplicaEntry, RunIdentity
from chaos.core.action import FactCheck, Scope, Undo
from chaos.core.cluster_view import ClusterView
from chaos.core.command import HostCommand, KubeCommand, PodsCommand, TaintsCommand
from chaos.core.inventory import Inventory
from chaos.core.kube import Node
from chaos.core.plan import Plan, PlannedStep
from chaos.core.registry import PluginRegistry
from tests.kit.actionkit import ACTIONS, WINDOWS_ACTIONS
from tools.action_pages import prepare_example

EXAMPLES = {  # as read from JSON: with lists
    name: msgspec.json.decode(msgspec.json.encode(action.encode_state(prepare_example(action))))
    for name, action in ACTIONS.items()
}
RESTORED = sorted(
    name for name, action in ACTIONS.items() if action.program(action.decode_state(EXAMPLES[name])).undo != Undo()
)
WITHOUT_PROGRAMS = sorted(set(RESTORED) - {"command"})
HOSTILE = (
    *("", "--force", "-H=other", "../../etc/shadow", "x; reboot", "$(reboot)", "a\nb.service", "worker-2"),
    *("systemd-poweroff.service", "systemd-reboot.service", "rescue.service", "emergency.target", "poweroff.target"),
    *("/api/v1/nodes/worker-2", "/apis/apps/v1/namespaces/a/deployments/../../../nodes/worker-2", "x" * 3000),
)  # fmt: skip


def node(name: str, labels: dict[str, str] | None = None, machine: str = "", system: str = "") -> Node:
    status = {"nodeInfo": {"machineID": machine, "systemUUID": "", "bootID": "", "operatingSystem": system}}
    return msgspec.convert({"metadata": {"name": name, "labels": labels or {}}, "status": status}, Node)


VIEW = ClusterView(
    "uid",
    {
        "worker-1": node("worker-1", machine="m1"),
        "worker-2": node("worker-2"),
        "cp": node("cp", {"node-role.kubernetes.io/control-plane": ""}),
    },
)


def inventory(**more: Any) -> Inventory:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "x"}}
    return Inventory.model_validate(head | {"cluster": {"kubeconfig": "/k"}} | more)


def rules(authenticity: Authenticity = Authenticity.UNVERIFIED, plan: Plan | None = None, **more: Any) -> ReplicaRules:
    return ReplicaRules(PluginRegistry(ACTIONS, {}), inventory(**more), VIEW, authenticity, plan)


def entry(example: str, state: Any = None, **more: Any) -> ReplicaEntry:
    where = "worker-1" if ACTIONS[example].scope is Scope.NODE else ""
    made = ReplicaEntry(1, "step", example, where, 1.0, EXAMPLES[example] if state is None else state)
    return structs.replace(made, **more)


def resolve(*entries: ReplicaEntry, given: ReplicaRules | None = None) -> ResolvedReplica:
    identity = RunIdentity("run", "e", 1.0, "ann", ("worker-1", "cp"))
    return resolve_replica(PendingRun("nodefall-run-run", identity, entries), given or rules())


@pytest.mark.parametrize("name", WITHOUT_PROGRAMS)
def test_the_action_computes_its_undo_again(name: str) -> None:
    resolved = resolve(entry(name))
    assert not resolved.rejected
    (accepted,) = resolved.accepted
    action = ACTIONS[name]
    assert accepted.undo == action.program(action.decode_state(EXAMPLES[name])).undo
    assert accepted.state == EXAMPLES[name]


PLANNED = PlannedStep("step", "cordon", "worker-1", {}, EXAMPLES["cordon"], (), Undo(), ())
PLAN = Plan("run", "e", "", "uid", 1.0, 1, (), (PLANNED,))
UNIT = EXAMPLES["kubelet-stop"]
NOT_UNDONE: list[tuple[str, ReplicaEntry, ReplicaRules, str]] = [
    ("0.1.0's", structs.replace(entry("cordon"), state=None, commands=("reboot",)), rules(),
     "nodefall 0.1 wrote it, with commands, which are never sent from a cluster: reboot"),
    ("not signed", entry("cordon"), rules(Authenticity.FORGED), "is not signed with cluster.journalKey"),
    ("another node", entry("kubelet-stop", node="worker-2"), rules(), "worker-2 is not a node of the run's plan"),
    ("another node inside", entry("cordon", EXAMPLES["cordon"] | {"node": "worker-2"}), rules(),
     "its state is about another node: worker-2"),
    ("a control plane", entry("kubelet-stop", node="cp"), rules(), "the inventory protects cp"),
    ("a protected node", entry("kubelet-stop"), rules(protected={"nodes": ["worker-1"]}),
     "the inventory protects worker-1"),
    ("an unknown action", entry("cordon", action="melt"), rules(), "the action melt is not installed here"),
    ("a node for the cluster", entry("scale", node="worker-1"), rules(), "scale acts on the cluster"),
    ("no node", entry("cordon", node=""), rules(), "cordon acts on a node"),
    ("a program", entry("command"), rules(), "the state of command is a program: it must be signed"),
    ("a program as identity", entry("cordon", identity=(FactCheck("command-exit?argv=reboot", 0),)), rules(),
     "command-exit?argv=reboot does not identify a host"),
    ("no state", entry("kubelet-stop", {}), rules(), "invalid state: Object missing required field"),
    ("another run's mark", entry("cordon", EXAMPLES["cordon"] | {"origin": {"run": "r-2", "step": "step"}}), rules(),
     "its state is about another step"),
    ("another run's timer", entry("kubelet-stop", UNIT | {"tag": "run-2-step"}), rules(),
     "its state is about another step: run-2-step"),
    ("another run's Node", entry("create-node", EXAMPLES["create-node"] | {"tag": "run-2-step"}), rules(),
     "its state is about another step: run-2-step"),
    ("a host that nothing identifies", entry("kubelet-stop"), replace(rules(), view=ClusterView("uid", {})),
     "nothing identifies the host of worker-1: it may be another machine"),
    ("a unit that powers off", entry("kubelet-stop", UNIT | {"unit": "systemd-poweroff.service"}), rules(),
     "invalid state: Expected `str` matching regex"),
    ("a unit that relabels all files and reboots",
     entry("certificate-expired", EXAMPLES["certificate-expired"] | {"unit": "selinux-autorelabel.service"}), rules(),
     "invalid state: Expected `str` matching regex"),
    ("an unknown fact", entry("poweroff", {**EXAMPLES["poweroff"],
     "machine": {**EXAMPLES["poweroff"]["machine"], "reporting_facts": ["command-exit?argv=reboot"]}}), rules(),
     "invalid state: KeyError"),
    ("filters of others", entry("packet-loss", EXAMPLES["packet-loss"] | {"direction": "in", "first": ""}), rules(),
     "invalid state: the first filter for inbound packets is not known"),
    ("another state than planned", entry("cordon", EXAMPLES["cordon"] | {"cordoned": True}), rules(plan=PLAN),
     "its state is not that of the run's plan"),
    ("not planned", entry("drain"), rules(plan=PLAN), "the run's plan has no such step"),
    ("another namespace", entry("cordon", {}, action="workload", node="kube-system"), rules(),
     "the namespace kube-system is not the one of the run's workload"),
    ("another object", entry("cordon", {"finalizers": ["/api/v1/namespaces/kube-system/configmaps/x"]},
     action="workload", node="nodefall-run"), rules(), "does not belong to the workload in nodefall-run"),
]  # fmt: skip


@pytest.mark.parametrize(("_what", "given", "by", "why"), NOT_UNDONE, ids=[row[0] for row in NOT_UNDONE])
def test_what_is_not_undone(_what: str, given: ReplicaEntry, by: ReplicaRules, why: str) -> None:
    resolved = resolve(given, entry("cordon"), given=by)
    rejected = resolved.rejected[0]
    assert rejected.entry == given
    assert why in rejected.why


def test_the_others_are_undone_all_the_same() -> None:
    resolved = resolve(entry("kubelet-stop", node="worker-2"), entry("cordon"))
    assert [accepted.action for accepted in resolved.accepted] == ["cordon"]


def test_a_program_that_is_signed_is_sent() -> None:
    assert resolve(entry("command"), given=rules(Authenticity.SIGNED)).accepted


def test_the_workload_is_removed() -> None:
    (accepted,) = resolve(entry("cordon", {"priority_classes": True}, action="workload", node="nodefall-run")).accepted
    assert [str(step.command).partition(" ")[0] for step in accepted.undo.steps] == ["DELETE", "DELETE"]


@pytest.mark.parametrize(
    ("recorded", "reported"),
    [
        (FactCheck("machine-id", "other"), FactCheck("machine-id", "m1")),  # as 0.2.0 wrote it
        (FactCheck("stable-id", "machine other"), FactCheck("stable-id", "machine m1")),
        # a container: the machine ID that its Node reports may be that of an earlier boot
        (FactCheck("stable-id", "container other"), FactCheck("kubelet-user", "system:node:worker-1")),
        (FactCheck("host-key", "ssh-ed25519 other"), FactCheck("machine-id", "m1")),
        (FactCheck("stable-id", ""), FactCheck("machine-id", "m1")),
    ],
)
def test_an_unsigned_copy_cannot_name_another_machine(recorded: FactCheck, reported: FactCheck) -> None:
    """What the Node itself is known by is checked besides the recorded value: no other host has both."""
    checks = (recorded,)
    (accepted,) = resolve(entry("kubelet-stop", identity=checks)).accepted
    assert accepted.identity == (*checks, reported)
    (accepted,) = resolve(entry("kubelet-stop", identity=checks), given=rules(Authenticity.SIGNED)).accepted
    assert accepted.identity == checks


def test_a_plan_on_this_machine_vouches_for_the_undo() -> None:
    (accepted,) = resolve(entry("cordon"), given=rules(plan=PLAN)).accepted
    assert accepted.undo == PLANNED.undo


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all texts, and of all keys."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, ("key", key))
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif isinstance(value, str):
        yield path


def _changed(state: Any, path: tuple[Any, ...], text: str) -> Any:
    changed = copy.deepcopy(state)
    inside = changed
    for part in path[:-1]:
        inside = inside[part]
    if isinstance(path[-1], tuple):
        inside[text] = inside.pop(path[-1][1])
    else:
        inside[path[-1]] = text
    return changed


NAMED = ("interface", "path", "source", "target")  # what these name is touched only where it is nodefall's


def _may_be_sent(path: tuple[Any, ...], text: str) -> bool:
    """Whether a changed text may be a word of a command: the name of a unit, interface or file, and no option."""
    return text.endswith(".service") or (path[-1] in NAMED and bool(text) and not text.startswith("-"))


@given(st.data())
def test_a_changed_state_reaches_no_other_node_and_no_other_program(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(WITHOUT_PROGRAMS))
    path = data.draw(st.sampled_from(list(_leaves(EXAMPLES[name])) or [()]))
    if not path:
        return
    text = data.draw(st.sampled_from(HOSTILE) | st.text())
    for accepted in resolve(entry(name, _changed(EXAMPLES[name], path, text))).accepted:
        usual = ACTIONS[name].program(ACTIONS[name].decode_state(EXAMPLES[name])).undo
        programs = {step.command.argv[:2] for step in usual.steps if isinstance(step.command, HostCommand)}
        for step in accepted.undo.steps:
            command = step.command
            if isinstance(command, HostCommand):
                assert command.argv[:2] in programs
                assert text not in command.argv or _may_be_sent(path, text)
            elif isinstance(command, KubeCommand):
                assert ".." not in command.path
                assert "worker-2" not in command.path or text == "worker-2"
                assert not command.path.startswith("/api/v1/nodes/worker-2") or name == "create-node"
            elif isinstance(command, TaintsCommand):
                assert command.node == "worker-1"
            elif isinstance(command, PodsCommand):
                assert command.pods.node == "worker-1"


WINDOWS_VIEW = ClusterView("uid", {"worker-1": node("worker-1", machine="win1", system="windows")})
WINDOWS_EXAMPLES = {
    name: msgspec.json.decode(msgspec.json.encode(action.encode_state(prepare_example(action))))
    for name, action in WINDOWS_ACTIONS.items()
}
WINDOWS_HOSTS = {"worker-1": {"os": "windows", "transport": "ssh"}}


def windows_rules(**more: Any) -> ReplicaRules:
    registry = PluginRegistry(ACTIONS, {}, windows_actions=WINDOWS_ACTIONS)
    return ReplicaRules(registry, inventory(**more), WINDOWS_VIEW, Authenticity.UNVERIFIED)


def commands_on_windows(name: str, state: Any) -> set[tuple[str, ...]]:
    """Those that the undo of a Windows form sends to the host; none if the entry is rejected."""
    found = resolve(entry(name, state), given=windows_rules(hosts=WINDOWS_HOSTS))
    steps = [step for accepted in found.accepted for step in accepted.undo.steps]
    return {step.command.argv for step in steps if isinstance(step.command, HostCommand)}


@pytest.mark.parametrize("name", sorted(WINDOWS_EXAMPLES))
def test_a_changed_state_of_a_windows_form_reaches_no_other_program(name: str) -> None:
    """Nothing that a ConfigMap says stands in a script or a command, but one of four names of services."""
    usual = commands_on_windows(name, WINDOWS_EXAMPLES[name])
    programs = {(argv[0], argv[1]) for argv in usual}
    for path in _leaves(WINDOWS_EXAMPLES[name]):
        for text in (*HOSTILE, "'; reboot; '", "kubelet\n", "/a", "nodefall-other"):
            sent = commands_on_windows(name, _changed(WINDOWS_EXAMPLES[name], path, text))
            assert sent <= usual, (path, text)
        for text in ("containerd", "w32time"):
            sent = commands_on_windows(name, _changed(WINDOWS_EXAMPLES[name], path, text))
            assert {(argv[0], argv[1]) for argv in sent} <= programs


@pytest.mark.parametrize("hosts", [{}, {"worker-1": {"user": "x"}}])
def test_a_node_of_another_system_than_its_host_is_left_alone(hosts: dict[str, Any]) -> None:
    """The status of a Node is written by whoever holds its credentials: it does not choose the commands."""
    found = resolve(entry("kubelet-stop", WINDOWS_EXAMPLES["kubelet-stop"]), given=windows_rules(hosts=hosts))
    assert [each.why for each in found.rejected] == [
        "worker-1 runs windows, and its host in the inventory has os linux"
    ]


def test_a_step_through_the_api_needs_no_host_of_the_system() -> None:
    found = resolve(entry("cordon"), given=windows_rules())
    assert not found.rejected
