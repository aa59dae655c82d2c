"""Marks on Nodes: what they say survives the annotation; what is to be done by hand follows from the Node.

Names that a state may have: those that facts report, and no others.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.action import Target
from chaos.core.node_mark import PREFIX, NodeMark, NodeUnit, StepOrigin, decode_mark, found_marks, origin_of
from chaos.faults.readings.units import KUBELET_UNITS, RUNTIME_UNITS

NAMES = st.from_regex("[a-z0-9]([a-z0-9-]{0,29}[a-z0-9])?", fullmatch=True)
TAINTS = st.from_regex(r"(example\.com/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,9}[a-z]:(NoSchedule|NoExecute)", fullmatch=True)
VALUES = st.none() | st.from_regex("([A-Za-z0-9][A-Za-z0-9_.-]{0,9}[a-z])?", fullmatch=True)
STATUSES = st.sampled_from([None, "True", "False", "Unknown"])
TYPES = st.from_regex("[A-Z][A-Za-z]{0,19}", fullmatch=True)
MARKS = st.builds(
    NodeMark,
    run=NAMES,
    step=NAMES,
    cordoned=st.none() | st.booleans(),
    taints=st.dictionaries(TAINTS, VALUES, max_size=3),
    conditions=st.dictionaries(TYPES, STATUSES, max_size=3),
    created=st.booleans(),
)


def node(annotations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "n1", "resourceVersion": "7", "annotations": annotations}
    conditions = [{"type": "Ready", "status": "True"}]
    return {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}}


@given(MARKS)
def test_a_mark_survives_its_annotation(mark: NodeMark) -> None:
    ((key, value),) = mark.to_annotations().items()
    assert value is not None
    assert decode_mark(key, value) == mark
    assert mark.to_removal() == {key: None}
    assert len(key.removeprefix(PREFIX)) <= 63


@given(MARKS)
def test_hand_commands_are_safe_to_paste(mark: NodeMark) -> None:
    """Whoever may write a Node, as its kubelet may, chooses the values."""
    (found,) = found_marks(node(dict(mark.to_annotations())))
    for command in (*found.commands, found.removal):
        words = shlex.split(command)
        assert words[0] == "kubectl"
        assert shlex.join(words).replace("'", "") == command.replace("'", "")


K = {"key": "k", "value": "v", "effect": "NoSchedule"}


NO_READY = '{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}'


COMMANDS = [
    ({"cordoned": False}, {"unschedulable": True}, ["kubectl uncordon n1"]),
    ({"cordoned": False}, {}, []),
    ({"cordoned": True}, {}, ["kubectl cordon n1"]),
    ({"cordoned": True}, {"unschedulable": True}, []),
    ({"taints": {"k:NoSchedule": None}}, {"taints": [K]}, ["kubectl taint node n1 k:NoSchedule-"]),
    ({"taints": {"k:NoSchedule": None}}, {}, []),
    ({"taints": {"k:NoSchedule": "v"}}, {"taints": [K]}, []),
    ({"taints": {"k:NoSchedule": "w"}}, {"taints": [K]}, ["kubectl taint node n1 k=w:NoSchedule --overwrite"]),
    ({"taints": {"k:NoSchedule": ""}}, {}, ["kubectl taint node n1 k=:NoSchedule --overwrite"]),
    ({"conditions": {"Ready": "True"}}, {}, []),
    (
        {"conditions": {"Ready": None}},
        {},
        [f"kubectl patch node n1 --subresource=status --type=strategic -p '{NO_READY}'"],
    ),
    ({"created": True}, {}, ["kubectl delete node n1"]),
]


@pytest.mark.parametrize(("values", "spec", "commands"), COMMANDS)
def test_commands_by_hand(values: dict[str, Any], spec: dict[str, Any], commands: list[str]) -> None:
    mark = NodeMark("r-1", "s", **values)
    (found,) = found_marks(node(dict(mark.to_annotations()), **spec))
    assert list(found.commands) == commands
    assert found.is_stale == (not commands)
    assert found.removal == f"kubectl annotate node n1 {mark.key}-"
    assert found.by_hand == "; ".join([*commands, *([] if mark.created else [found.removal])])
    assert str(found) == "s on n1"


def test_a_node_with_a_machine_is_never_to_be_deleted() -> None:
    """Its kubelet may write any annotation on it."""
    forged = NodeMark("r-1", "s", created=True)
    (found,) = found_marks({**node(dict(forged.to_annotations())), "status": {"nodeInfo": {"machineID": "4c4c4544"}}})
    assert found.commands == ()
    assert found.by_hand == found.removal


GOOD = NodeMark("r-1", "s", cordoned=False)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "true",
        "{",
        json.dumps({"run": "r-1"}),
        json.dumps({"run": "r-1", "step": "s", "cordoned": "no"}),
        json.dumps({"run": "r-1", "step": "s", "labels": {}}),  # of a newer version: its restoration is unknown
        json.dumps({"run": "r-2", "step": "s", "cordoned": False}),  # another key
        json.dumps({"run": "r-1; reboot", "step": "s"}),
        "[" * 100_000,
        json.dumps({"run": "r-1", "step": "s", "taints": {"--server=https://example.com/": None}}),  # an option
    ],
)
def test_an_unreadable_mark_is_never_stale(value: str) -> None:
    assert decode_mark(GOOD.key, value) is None
    (found,) = found_marks(node({GOOD.key: value}))
    assert found.mark is None
    assert not found.is_stale


def test_other_annotations_are_no_marks() -> None:
    assert list(found_marks(node({"nodefall.dev/made-by": "r-1-s", "x": "y"}))) == []
    assert list(found_marks({"metadata": {"name": "n1"}})) == []


def test_origin() -> None:
    assert origin_of(Target("n1", run="r-1", tag="r-1-stop-it")) == StepOrigin("r-1", "stop-it")
    assert origin_of(Target("n1", tag="r-1-stop-it")) is None


@pytest.mark.parametrize("unit", [*KUBELET_UNITS, *RUNTIME_UNITS])
def test_every_unit_of_a_kubelet_or_a_runtime_may_be_in_a_state(unit: str) -> None:
    assert msgspec.convert(unit, NodeUnit) == unit


@pytest.mark.parametrize(
    "unit", ["", "kubelet", "kubelet.service\n", "-kubelet.service", "xkubelet.service", "systemd-reboot.service"]
)
def test_no_other_unit_may_be_in_a_state(unit: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(unit, NodeUnit)
