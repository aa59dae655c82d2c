"""Foreign faults on handmade timelines: each kind, made by someone else and by the run itself; and who did it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chaos.core.result import ForeignFault
from chaos.core.store.recording import build_timeline, read_recording
from chaos.verdicts.judge.foreign_faults import foreign_faults
from tests.kit.node_versions import node
from tests.kit.story import RECORDINGS, T0, Story, plugin_registry, stamp

Made = Callable[[], Story]
UNKNOWN = " (who did it is unknown)"


def started(**meta: Any) -> Story:
    """Two nodes, whose Leases are renewed until 20."""
    story = Story(**({"nodefall": "0.2.0"} | meta))
    for name in ("n1", "n2"):
        node(story, 0, name, type_="LIST")
        for t in (0, 10, 20):
            story.lease(t, name)
    return story


def faults(story: Story, end: float = 200.0, namespace: str = "") -> tuple[ForeignFault, ...]:
    return foreign_faults(story.timeline(end), plugin_registry(), ("n1",), namespace)


def texts(story: Story, **more: Any) -> list[str]:
    return [each.text for each in faults(story, **more)]


def cordoned(name: str = "n2", by: str = "") -> Story:
    return node(started(), 30, name, cordoned=True, owners={"unschedulable": by} if by else None)


def tainted(taints: str, by: str = "", name: str = "n2") -> Story:
    return node(started(), 30, name, taints=taints, owners={"taints": by} if by else None)


def uncordoned() -> Story:
    story = Story(nodefall="0.2.0")
    node(story, 0, "n1", type_="LIST", cordoned=True)
    return node(story, 30, "n1")


def drained() -> Story:
    story = cordoned("n1", "kubectl").pod(0, "web-1", "n1").pod(0, "web-2", "n1")
    for t, name in ((31, "web-1"), (32, "web-2")):
        story.pod(t, name, "n1", disruption="EvictionByEvictionAPI", deleting=True)
    return story


def evicted(name: str) -> Story:
    story = started().pod(0, "web-1", name)
    return story.pod(31, "web-1", name, disruption="EvictionByEvictionAPI")


OTHERS: list[tuple[str, Made, list[str]]] = [
    ("cordon", lambda: cordoned(by="kubectl"), ["n2 was cordoned by kubectl (field manager)"]),
    ("cordon of a server without managed fields", cordoned, [f"n2 was cordoned{UNKNOWN}"]),
    ("cordon by a part of Kubernetes", lambda: cordoned(by="kube-controller-manager"), [f"n2 was cordoned{UNKNOWN}"]),
    ("uncordon, which leaves no owner", uncordoned, [f"n1 was uncordoned{UNKNOWN}"]),
    (
        "uncordon with an Event",
        lambda: uncordoned().event(29, "Uncordoned", "n1", component="kured"),
        ["n1 was uncordoned by kured (Event Uncordoned)"],
    ),
    (
        "taints",
        lambda: tainted("a.com/b:NoSchedule c:NoExecute", "kubectl-taint"),
        [
            "n2 was tainted a.com/b:NoSchedule by kubectl-taint (field manager)",
            "n2 was tainted c:NoExecute by kubectl-taint (field manager)",
        ],
    ),
    ("taints of Kubernetes", lambda: tainted("node.kubernetes.io/not-ready:NoExecute"), []),
    ("taints of the cloud", lambda: tainted("node.cloudprovider.kubernetes.io/shutdown:NoSchedule"), []),
    (
        "out-of-service, which people set",
        lambda: tainted("node.kubernetes.io/out-of-service:NoExecute", "kubectl-taint"),
        ["n2 was tainted node.kubernetes.io/out-of-service:NoExecute by kubectl-taint (field manager)"],
    ),
    ("untaint", lambda: node(tainted("c:NoExecute", "nodefall"), 40), [f"n2 was untainted c:NoExecute{UNKNOWN}"]),
    ("deletion", lambda: node(started(), 30, type_="DELETED"), [f"n2 was deleted{UNKNOWN}"]),
    (
        "deletion by an autoscaler",
        lambda: node(started(), 30, type_="DELETED").event(25, "ScaleDown", "n2", component="cluster-autoscaler"),
        ["n2 was deleted by cluster-autoscaler (Event ScaleDown)"],
    ),
    (
        "creation again",
        lambda: node(started(), 30, uid="other"),
        [f"n2 was deleted{UNKNOWN}"],
    ),
    ("reboot of a node without a step", lambda: node(started(), 30, bootID="new"), [f"n2 was rebooted{UNKNOWN}"]),
    (
        "reboot of a host, whose Node object reports it later",
        lambda: node(started().host(1, "boot-id", "boot-n1").host(29, "boot-id", "new"), 35, "n1", bootID="new"),
        [f"n1 was rebooted{UNKNOWN}"],
    ),
    (
        "reboot of a container",
        lambda: started().host(1, "pid1-start", 100).host(9, "pid1-start", 130).blind(3, 8, "host@n1"),
        [f"n1 was rebooted{UNKNOWN}"],
    ),
    (
        "reboot of a container, faster than the readings",
        lambda: started().host(1, "pid1-start", 100).host(3, "pid1-start", 130).event(2, "Starting", "n1"),
        [f"n1 was rebooted{UNKNOWN}"],
    ),
    (
        "power-off",
        lambda: started().host(15, "machine", "on").host(21, "machine", "off"),
        [f"n1 was powered off{UNKNOWN}"],
    ),
    (
        "a power control that says off of a machine that renews its Lease",
        lambda: started().host(1, "machine", "on").host(9, "machine", "off"),
        [],
    ),
    (
        "shutdown",
        lambda: node(started(), 30, ready="False", message="node is shutting down"),
        [f"n2 is being shut down{UNKNOWN}"],
    ),
    ("silence", lambda: node(started(), 61, ready="Unknown"), [f"n2 no longer reports{UNKNOWN}"]),
    (
        "upgrade",
        lambda: node(node(started(), 30, kubeletVersion="v1.35.1"), 40, kubeletVersion="v1.36.2"),
        [f"n2 was upgraded (kubelet v1.35.1 to v1.36.2){UNKNOWN}"],
    ),
    (
        "drain",
        drained,
        [
            "n1 was cordoned by kubectl (field manager)",
            "n1 had pods evicted by kubectl (field manager)",
        ],
    ),
    (
        "eviction by an autoscaler",
        lambda: (
            started()
            .pod(0, "web-1", "n1")
            .pod(31, "web-1", "n1", disruption="EvictionByEvictionAPI")
            .event(31, "ScaleDown", "web-1", "Pod", component="cluster-autoscaler")
        ),
        ["n1 had pods evicted by cluster-autoscaler (Event ScaleDown)"],
    ),
]


@pytest.mark.parametrize(("made", "expected"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_changes_by_others(made: Made, expected: list[str]) -> None:
    assert texts(made()) == expected


def own(action: str, t: float = 29, name: str = "n1", **record: Any) -> Callable[[Story], Story]:
    return lambda story: story.done(t, action, name, **record)


def undone(action: str, t: float, name: str = "n1") -> Callable[[Story], Story]:
    return lambda story: story.done(5, action, name).act(t, action, "undo", name).act(t + 1, action, "undone", name)


OURS: list[tuple[str, Made, Callable[[Story], Story]]] = [
    ("cordon", lambda: cordoned("n1"), own("cordon")),
    ("drain", lambda: cordoned("n1"), own("drain")),
    ("undo of a cordon", uncordoned, undone("cordon", 29)),
    ("uncordon", uncordoned, own("uncordon")),
    ("taint", lambda: tainted("c:NoExecute", name="n1"), own("taint", params={"key": "c", "effect": "NoExecute"})),
    ("deletion", lambda: node(started(), 30, "n1", type_="DELETED"), own("delete-node")),
    ("another uid", lambda: node(started(), 30, "n1", uid="other"), own("delete-node")),
    ("reboot", lambda: node(started(), 80, "n1", bootID="new"), own("reboot")),
    (
        "power-off and boot",
        lambda: node(started().host(1, "machine", "on").host(40, "machine", "off"), 80, "n1", bootID="new"),
        own("poweroff"),
    ),
    ("boot by an undo", lambda: node(started(), 80, "n1", bootID="new"), undone("power-cut", 70)),
    (
        "the clock moves the start of PID 1",
        lambda: started().host(1, "pid1-start", 100).host(3, "pid1-start", 130).blind(1.5, 2, "host@n1"),
        own("clock-skew", 1.2, params={"offset": "30s"}),
    ),
    (
        "shutdown",
        lambda: node(started(), 30, "n1", ready="False", message="node is shutting down"),
        own("prepare-for-shutdown", params={"active": True}),
    ),
    ("silence", lambda: node(started(), 80, "n1", ready="Unknown"), own("kubelet-stop")),
    ("eviction", lambda: evicted("n1"), own("drain")),
    ("commands of the user", lambda: node(started(), 80, "n1", kubeletVersion="v2", cordoned=True), own("command")),
    ("an action of another tool", lambda: node(started(), 80, "n1", ready="Unknown", bootID="x"), own("unheard-of")),
]


@pytest.mark.parametrize(("made", "act"), [row[1:] for row in OURS], ids=[row[0] for row in OURS])
def test_changes_by_the_run(made: Made, act: Callable[[Story], Story]) -> None:
    assert texts(made()), "without the step it is someone else's"
    assert texts(act(made())) == []
    other = act(made())
    for line in other.lines:
        if line.kind == "action":
            line.node = "n9"
    assert texts(other) == texts(made()), "a step on another node explains nothing"


def test_field_managers_decide_where_the_server_names_them() -> None:
    assert texts(cordoned(by="nodefall")) == []


def test_a_step_of_ours_does_not_hide_the_act_of_another_manager() -> None:
    story = cordoned("n1", "kubectl").done(29, "cordon")
    assert texts(story) == ["n1 was cordoned by kubectl (field manager)"]


def test_actions_that_another_tool_recorded_are_known_by_their_time() -> None:
    story = started(nodefall="").done(29, "cordon")
    assert texts(node(story, 30, "n1", cordoned=True, owners={"unschedulable": "kubectl"})) == []


def test_a_removal_long_after_the_step_is_not_its_effect() -> None:
    story = node(cordoned("n1", "nodefall").done(29, "cordon"), 60, "n1")
    assert texts(story) == [f"n1 was uncordoned{UNKNOWN}"]


def test_a_change_in_a_blind_window_may_have_come_at_its_begin() -> None:
    (found,) = faults(cordoned(by="kubectl").blind(12, 30, "nodes"))
    assert (found.since, found.at) == (T0 + 12, T0 + 30)
    late = uncordoned().blind(12, 30, "nodes").done(11, "uncordon")
    assert texts(late) == [], "the step was under way when the window began"


def test_each_step_explains_one_boot() -> None:
    story = node(started().done(20, "reboot"), 40, "n1", bootID="second")
    assert texts(story) == []
    (found,) = faults(node(story, 90, "n1", bootID="third"))
    assert (found.text, found.at) == (f"n1 was rebooted{UNKNOWN}", T0 + 90)


def test_a_machine_that_goes_off_after_our_repair() -> None:
    story = started().host(1, "machine", "on").done(5, "power-cut").host(6, "machine", "off").done(20, "power-on")
    story.host(22, "machine", "on")
    assert texts(story) == []
    assert texts(story.host(40, "machine", "off")) == [f"n1 was powered off{UNKNOWN}"]


def test_a_machine_that_is_still_going_down_when_an_aborted_run_is_undone() -> None:
    """The undo powers it on when it is off at last; only the first power-off is that of the step."""
    story = started().host(1, "machine", "on").done(5, "poweroff").act(10, "poweroff", "undo")
    story.host(18, "machine", "on").host(20, "machine", "off")
    assert texts(story) == []
    again = story.host(22, "machine", "on").host(40, "machine", "off")
    assert texts(again) == [f"n1 was powered off{UNKNOWN}"]


def test_a_reboot_by_the_power_control_begins_when_the_machine_is_off() -> None:
    story = started().host(1, "machine", "on").host(65, "machine", "off").done(70, "hard-reboot", command="power on")
    assert texts(story.host(71, "machine", "on")) == []
    without = started().host(1, "machine", "on").host(65, "machine", "off").done(70, "hard-reboot", command="systemctl")
    assert texts(without) == [f"n1 was powered off{UNKNOWN}"]


def test_only_one_power_off_just_before_a_reboot_by_the_power_control_is_its_own() -> None:
    story = started().host(1, "machine", "on").host(5, "machine", "off").host(8, "machine", "on")
    story.host(65, "machine", "off").done(70, "hard-reboot", command="power on")
    assert texts(story) == [f"n1 was powered off{UNKNOWN}"]


def test_a_machine_that_goes_off_after_an_undo_that_is_over() -> None:
    story = started().host(1, "machine", "on").done(5, "poweroff").act(10, "poweroff", "undo")
    story.act(15, "poweroff", "undone").host(18, "machine", "on").host(20, "machine", "off")
    assert texts(story) == [f"n1 was powered off{UNKNOWN}"]


def test_reactions_of_named_controllers_to_a_fault_of_the_run() -> None:
    def lost() -> Story:
        return started().done(20, "power-cut")

    agent = {"taints": "cilium-operator"}
    story = node(lost(), 30, "n1", taints="node.cilium.io/agent-not-ready:NoSchedule", owners=agent)
    assert texts(node(story, 90, "n1")) == [], "set and removed"
    cloud = lost().event(70, "DeletingNode", "n1", component="cloud-node-lifecycle-controller")
    assert texts(node(cloud, 71, "n1", type_="DELETED")) == []
    other = node(started(), 71, "n1", type_="DELETED")
    other.event(70, "DeletingNode", "n1", component="cloud-node-lifecycle-controller")
    assert texts(other) == ["n1 was deleted by cloud-node-lifecycle-controller (Event DeletingNode)"]
    person = node(lost(), 30, "n1", taints="c:NoSchedule", owners={"taints": "kubectl-taint"})
    assert texts(person) == ["n1 was tainted c:NoSchedule by kubectl-taint (field manager)"]


@pytest.mark.parametrize(
    "made",
    [
        lambda: node(started().lease(55, "n2"), 61, ready="Unknown"),  # its kubelet is there: a bug of the cluster
        lambda: node(started().blind(25, 60, "leases"), 61, ready="Unknown"),
        lambda: node(Story().node(0, "n2", type_="LIST"), 61, ready="Unknown"),  # Leases were not observed
        lambda: node(started(), 61, ready="False", message="container runtime is down"),
    ],
)
def test_a_node_that_is_not_ready_though_its_kubelet_may_be_there(made: Made) -> None:
    assert texts(made()) == []


def test_a_fault_of_the_control_plane_may_silence_other_nodes() -> None:
    story = Story(nodefall="0.2.0")
    node(story, 0, "cp", labels={"node-role.kubernetes.io/control-plane": ""}, type_="LIST")
    node(story, 0, "n2", type_="LIST").lease(5, "n2")
    node(story.done(10, "poweroff", "cp"), 61, ready="Unknown")
    assert texts(story) == []


def test_nodes_that_join_during_the_run_are_set_up_by_others() -> None:
    story = node(started().done(5, "cordon"), 20, "n3", taints="karpenter.sh/unregistered:NoExecute", type_="ADDED")
    assert texts(node(story, 30, "n3", cordoned=True)) == []
    relisted = node(started().done(5, "cordon"), 20, "n3", type_="LIST")
    assert texts(node(relisted, 30, "n3", cordoned=True)) == []


def test_evictions_count_on_targets_and_in_the_workload() -> None:
    assert texts(evicted("n1")) == [f"n1 had pods evicted{UNKNOWN}"]
    assert texts(evicted("n2")) == []
    assert texts(evicted("n2"), namespace="demo") == [f"n2 had pods evicted{UNKNOWN}"]
    before = started().pod(0, "web-1", "n1", disruption="EvictionByEvictionAPI")
    assert texts(before) == [], "it was evicted before the run"


def test_an_eviction_long_after_our_drain_is_not_its_effect() -> None:
    assert texts(evicted("n1").done(5, "drain")) == [f"n1 had pods evicted{UNKNOWN}"]
    assert texts(evicted("n1").done(22, "drain")) == []
    assert texts(evicted("n1").done(5, "drain").blind(14, 31, "pods")) == [], "it may have come at 14"


def test_the_last_of_several_managers_is_the_author() -> None:
    story = started()
    owners = [("alice", 5), ("bob", 29), ("carol", 20)]
    entries = [
        {"manager": name, "operation": "Update", "time": stamp(t), "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
        for name, t in owners
    ]
    metadata = {"name": "n2", "uid": "uid-n2", "managedFields": entries}
    story.add(30, "nodes", "MODIFIED", {"metadata": metadata, "spec": {"unschedulable": True}})
    assert texts(story) == ["n2 was cordoned by bob (field manager)"]


def test_one_fault_is_reported_once() -> None:
    story = started()
    for t in (30, 50, 70):
        node(story, t, cordoned=True, owners={"unschedulable": "kubectl"})
        node(story, t + 10)
    assert [f.kind for f in faults(story)] == ["cordon", "uncordon"]


RECORDED = sorted(path.name for path in RECORDINGS.glob("*.gz"))
# What a recording shows to a judge who does not know that its recorder made the fault.
KINDS = {
    "01": {"shutdown", "silence", "reboot"},
    "02": {"shutdown"},
    "05": {"silence"},
    "07": {"silence"},
    "08": {"cordon", "eviction", "uncordon"},
    "10": {"shutdown", "silence"},
    "12": set(),
    "16": {"shutdown", "silence"},
    "25": {"silence"},
    "27": {"shutdown"},
    "31": {"silence", "reboot"},
    "33": {"shutdown", "silence", "reboot"},
}


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_of_a_real_cluster_have_no_foreign_fault(name: str) -> None:
    timeline = build_timeline(read_recording(RECORDINGS / name))
    targets = {entry.node for entry, _ in timeline.actions}
    assert foreign_faults(timeline, plugin_registry(), targets, "demo") == ()
    timeline.actions.clear()
    found = foreign_faults(timeline, plugin_registry(), targets, "demo")
    assert {fault.kind for fault in found} == KINDS[name[:2]]
    assert {fault.node for fault in found} <= targets
