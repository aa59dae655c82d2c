"""What actions may change of a node, by their declarations: a table of the built-in ones that change more than most."""

from __future__ import annotations

import pytest
import yaml

from chaos.verdicts.judge.own_changes import EVERYTHING, NodeChange, changed_node, node_changes
from tests.kit.story import plugin_registry

REGISTRY = plugin_registry()
ACTIONS = REGISTRY.actions
TABLE = {
    "spec": "cordon uncordon taint untaint",
    "boot shutdown reporting": "hard-reboot kernel-crash power-button power-cut poweroff reboot schedule-shutdown",
    "boot reporting": "memory-pressure pid-pressure power-on",
    "shutdown reporting": (
        "cancel-shutdown cancel-shutdown-in-flight dbus-restart logind-restart prepare-for-shutdown"
    ),
    "evictions": "evict-pod mark-disruption",
    "object": "create-node",
    "object spec reporting": "delete-node",
    "spec evictions": "drain",
    "spec reporting": "out-of-service",
    " ".join(NodeChange): "command",
}
CHANGES = {name: set(changes.split()) for changes, names in TABLE.items() for name in names.split()}


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_built_in_actions(name: str) -> None:
    """Those that are not in the table may change what the kubelet reports, if they act on the machine."""
    example = yaml.safe_load(ACTIONS[name].example)
    others = {str(NodeChange.REPORTING)} if ACTIONS[name].on_host else set()
    changes = node_changes(REGISTRY.bind_recorded(name, example.get("with", {})))
    assert set(map(str, changes)) == CHANGES.get(name, others)


def test_what_is_not_known_explains_everything() -> None:
    assert node_changes(REGISTRY.bind_recorded("heal", {})) == EVERYTHING
    assert node_changes(REGISTRY.bind_recorded("power-cut", {"how": "outside"})) == EVERYTHING, "of another recorder"


def test_the_node_of_a_step() -> None:
    def node_of(action: str, node: str, params: dict[str, object]) -> str:
        return changed_node(REGISTRY.bind_recorded(action, params), node)

    assert node_of("cordon", "n1", {}) == "n1"
    assert node_of("create-node", "", {"node": "made"}) == "made"
    assert node_of("create-node", "", {}) == "nodefall-nowhere"
    web = {"kind": "deployment", "namespace": "default", "name": "web", "replicas": 3}
    assert node_of("scale", "", web) == ""
    assert node_of("heal", "n1", {}) == "n1"
