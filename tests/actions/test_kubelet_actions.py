"""The kubelet and the runtime stopped, started, restarted and frozen."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.model.action import Target
from chaos.model.errors import Unsupported
from tests.kit.actionkit import Told, told

FACTS = {"kubelet-unit": "k3s-agent.service", "kubelet-inhibitor": True, "runtime-unit": "crio.service"}
NODE = Target("n1", facts=FACTS, tag="run-do", max_duration=600.0)
LOCKLESS = Target("n1", facts=FACTS | {"kubelet-inhibitor": False}, tag="run-do")
START = "systemctl start k3s-agent.service"
RUNS = ["kubelet-state is active", "kubelet-inhibitor is True", "node-ready is True"]
CONT = "systemctl kill --kill-who=main --signal=SIGCONT k3s-agent.service"

TABLE = [
    (
        "kubelet-stop",
        Told(
            send=["systemctl stop k3s-agent.service"],
            before=[],
            heal=f"nodefall-run-do after 600s: {START}",
            undo=[f"{START} unless kubelet-state is active"],
            proof=RUNS,
            disarm="nodefall-run-do",
        ),
    ),
    ("kubelet-start", Told([START], [], "", [], [], "")),
    (
        "kubelet-restart",
        Told(
            send=["systemctl restart k3s-agent.service"],
            before=[],
            heal="",
            undo=[f"{START} unless kubelet-state is active"],
            proof=RUNS,
            disarm="",
        ),
    ),
    (
        "kubelet-freeze",
        Told(
            send=["systemctl kill --kill-who=main --signal=SIGSTOP k3s-agent.service"],
            before=[],
            heal=f"nodefall-run-do after 600s: {CONT}",
            undo=[f"{CONT} unless kubelet-frozen is False"],
            proof=["kubelet-frozen is False", "node-ready is True"],
            disarm="nodefall-run-do",
        ),
    ),
    (
        "runtime-stop",
        Told(
            send=["systemctl stop crio.service"],
            before=[],
            heal="nodefall-run-do after 600s: systemctl start crio.service",
            undo=["systemctl start crio.service unless runtime-state is active"],
            proof=["runtime-state is active", "node-ready is True"],
            disarm="nodefall-run-do",
        ),
    ),
]


@pytest.mark.parametrize(("name", "expected"), TABLE)
def test_what_is_done_and_taken_back(name: str, expected: Told) -> None:
    assert told(name, {}, NODE) == expected


def test_a_lock_that_was_not_held_is_not_asked_back() -> None:
    assert told("kubelet-stop", {}, LOCKLESS).proof == ["kubelet-state is active", "node-ready is True"]


@pytest.mark.parametrize("name", [row[0] for row in TABLE])
def test_without_its_unit_it_is_refused_naming_the_fact(name: str) -> None:
    fact = "runtime-unit" if name.startswith("runtime") else "kubelet-unit"
    bare: dict[str, Any] = {fact: "none of them is loaded"}
    with pytest.raises(Unsupported, match=f"the fact {fact} is not known: none of them is loaded"):
        told(name, {}, Target("n1", unknown=bare))
