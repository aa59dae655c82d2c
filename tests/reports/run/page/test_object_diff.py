"""Differences between two versions of an object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.kube import Condition, Metadata, Node, NodeMetadata, NodeSpec, NodeStatus, Pod, PodStatus, Taint
from chaos.reports.run.page.changes import object_diff


def node(status: str, *taints: str, heartbeat: str = "") -> Node:
    ready = Condition("Ready", status, last_heartbeat_time=heartbeat)
    return Node(NodeMetadata("n1"), NodeSpec([Taint(t, "NoExecute") for t in taints]), NodeStatus([ready]))


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (node("True"), node("True"), []),
        (node("True", heartbeat="1"), node("True", heartbeat="2"), []),
        (node("True"), node("False"), [("status.conditions[Ready].status", "True", "False")]),
        # A taint before another one does not shift it.
        (
            node("True", "b"),
            node("True", "a", "b"),
            [("spec.taints[a].effect", "", "NoExecute"), ("spec.taints[a].key", "", "a")],
        ),
        (
            Pod(Metadata("p"), None, PodStatus("Running")),
            Pod(Metadata("p", deletion_timestamp="t"), None, PodStatus("Failed")),
            [("metadata.deletionTimestamp", "", "t"), ("status.phase", "Running", "Failed")],
        ),
        ({"a": [1, 2]}, {"a": [1, 3]}, [("a[1]", "2", "3")]),
        ({"a": "x\x1b"}, {"a": "\n"}, [("a", "x\\x1b", "")]),
        ("off", "on", [("", "off", "on")]),
    ],
)
def test_changes(before: Any, after: Any, changes: list[tuple[str, str, str]]) -> None:
    assert object_diff(before, after) == changes


def test_number_and_length_of_changes_are_limited() -> None:
    found = object_diff({}, {str(i): "x" * 9999 for i in range(99)})
    assert len(found) == 40
    assert max(len(after) for _, _, after in found) == 300


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_any_values_can_be_compared_and_equal_ones_do_not_differ(before: Any, after: Any) -> None:
    assert object_diff(before, before) == []
    assert all(text.isprintable() for change in object_diff(before, after) for text in change)
