"""What actions may change of a node, by their declarations: a table of all built-in ones."""

from __future__ import annotations

import pytest
import yaml

from chaos.verdicts.judge.own_changes import EVERYTHING, NodeChange, changed_node, node_changes
from tests.kit.story import plugin_registry

REGISTRY = plugin_registry().actions
TABLE = {
    "spec": "cordon uncordon taint untaint",
    "boot shutdown reporting": "hard-reboot kernel-crash power-button power-cut poweroff reboot schedule-shutdown",
    "boot reporting": "memory-pressure pid-pressure power-on",
    "shutdown reporting": (
        "cancel-shutdown cancel-shutdown-in-flight dbus-restart logind-restart prepare-for-shutdown"
    ),
    "reporting": (
        "bandwidth certificate-expired clock-skew cpu-stress disk-pressure disk-read-only disk-slow dns-failure "
        "etcd-leader-kill kubelet-freeze kubelet-restart kubelet-slow kubelet-start kubelet-stop latency mtu "
        "packet-corrupt packet-duplicate packet-loss partition runtime-stop"
    ),
    "evictions": "evict-pod mark-disruption",
    "object": "create-node",
    "object spec reporting": "delete-node",
    "spec evictions": "drain",
    "spec reporting": "out-of-service",
    " ".join(NodeChange): "command",
    "": (
        "delete-pod force-delete-pod network-unavailable patch-budget preempt remove-finalizers rollout-restart scale"
    ),
}
CHANGES = {name: set(changes.split()) for changes, names in TABLE.items() for name in names.split()}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_built_in_actions(name: str) -> None:
    example = yaml.safe_load(REGISTRY[name].example)
    assert node_changes(REGISTRY[name], example.get("with", {})) == CHANGES[name]


def test_what_is_not_known_explains_everything() -> None:
    assert node_changes(None, {}) == EVERYTHING
    assert node_changes(REGISTRY["power-cut"], {"how": "outside"}) == EVERYTHING, "of another recorder"


def test_the_node_of_a_step() -> None:
    assert changed_node(REGISTRY["cordon"], "n1", {"node": "x"}) == "n1"
    assert changed_node(REGISTRY["create-node"], "", {"node": "made"}) == "made"
    assert changed_node(REGISTRY["create-node"], "", {}) == "nodefall-nowhere"
    assert changed_node(REGISTRY["scale"], "", {"name": "web", "replicas": 3}) == ""
    assert changed_node(None, "n1", {}) == "n1"
