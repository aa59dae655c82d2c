"""The kubelet and the runtime stopped, started, restarted and frozen."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from tests.kit.actionkit import ActionDescription, describe

NO_QUOTA = {"percent": None, "runtime": False, "stale": False}
FACTS = {
    "kubelet-unit": "k3s-agent.service",
    "inhibitor-kubelet": True,
    "runtime-unit": "crio.service",
    "cgroup-version": 2,
    "kubelet-cpu-quota": NO_QUOTA,
}
NODE = Target("n1", facts=FACTS, tag="run-do", max_duration=600.0)
WITHOUT_LOCK = Target("n1", facts=FACTS | {"inhibitor-kubelet": False}, tag="run-do")
START = "systemctl start k3s-agent.service"
RUNS = ["the kubelet is active", "inhibitor-kubelet is True", "the node is Ready"]
RELOAD = (
    """sh -c 'rm --force "$1" && systemctl daemon-reload' nodefall """
    "/run/systemd/system.control/k3s-agent.service.d/50-CPUQuota.conf"
)
CONT = "systemctl kill --kill-who=main --signal=SIGCONT k3s-agent.service"

TABLE = [
    (
        "kubelet-stop",
        ActionDescription(
            inject=["systemctl stop k3s-agent.service"],
            preconditions=[],
            failsafe=f"nodefall-run-do after 600s: {START}",
            undo=[f"{START} unless the kubelet is active"],
            proof=RUNS,
            disarm="nodefall-run-do",
        ),
    ),
    ("kubelet-start", ActionDescription([START], [], "", [], [], "")),
    (
        "kubelet-restart",
        ActionDescription(
            inject=["systemctl restart k3s-agent.service"],
            preconditions=[],
            failsafe="",
            undo=[f"{START} unless the kubelet is active"],
            proof=RUNS,
            disarm="",
        ),
    ),
    (
        "kubelet-freeze",
        ActionDescription(
            inject=["systemctl kill --kill-who=main --signal=SIGSTOP k3s-agent.service"],
            preconditions=[],
            failsafe=f"nodefall-run-do after 600s: {CONT}",
            undo=[f"{CONT} unless kubelet-stopped-state is False"],
            proof=["kubelet-stopped-state is False", "the node is Ready"],
            disarm="nodefall-run-do",
        ),
    ),
    (
        "kubelet-slow",
        ActionDescription(
            inject=["systemctl set-property --runtime k3s-agent.service CPUQuota=5%"],
            preconditions=[f"kubelet-cpu-quota is {NO_QUOTA}"],
            failsafe=f"nodefall-run-do after 600s: {RELOAD}",
            undo=[f"{RELOAD} unless kubelet-cpu-quota is {NO_QUOTA}"],
            proof=[f"kubelet-cpu-quota is {NO_QUOTA}", "the node is Ready"],
            disarm="nodefall-run-do",
        ),
    ),
    (
        "runtime-stop",
        ActionDescription(
            inject=["systemctl stop crio.service"],
            preconditions=[],
            failsafe="nodefall-run-do after 600s: systemctl start crio.service",
            undo=["systemctl start crio.service unless runtime-state is active"],
            proof=["runtime-state is active", "the node is Ready"],
            disarm="nodefall-run-do",
        ),
    ),
]


@pytest.mark.parametrize(("name", "expected"), TABLE)
def test_inject_and_undo(name: str, expected: ActionDescription) -> None:
    assert describe(name, {}, NODE) == expected


def test_a_lock_that_was_not_held_is_not_restored() -> None:
    assert describe("kubelet-stop", {}, WITHOUT_LOCK).proof == ["the kubelet is active", "the node is Ready"]


@pytest.mark.parametrize("name", [row[0] for row in TABLE])
def test_an_unknown_unit_is_refused_by_the_name_of_the_fact(name: str) -> None:
    fact = "runtime-unit" if name.startswith("runtime") else "kubelet-unit"
    bare: dict[str, Any] = {fact: "none of them is loaded"}
    with pytest.raises(Unsupported, match=f"the fact {fact} is not known: none of them is loaded"):
        describe(name, {}, Target("n1", unknown=bare))


def limited(percent: float | None = None, *, runtime: bool = False, stale: bool = False, version: int = 2) -> Target:
    quota = {"percent": percent, "runtime": runtime, "stale": stale}
    return Target("n1", facts=FACTS | {"kubelet-cpu-quota": quota, "cgroup-version": version}, tag="run-do")


def test_a_slow_kubelet_gets_the_quota_of_its_files_back() -> None:
    done = describe("kubelet-slow", {"percent": 0.5, "duration": "90s"}, limited(50.0))
    assert done.inject == ["systemctl set-property --runtime k3s-agent.service CPUQuota=0.5%"]
    assert done.failsafe.startswith("nodefall-run-do after 90s: ")
    assert done.proof[0] == "kubelet-cpu-quota is {'percent': 50.0, 'runtime': False, 'stale': False}"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (limited(runtime=True), "was set at run time"),
        (limited(stale=True), "files of k3s-agent.service have changed"),
        (limited(5.0), "is limited to 5 % of a CPU already"),
        (limited(version=1), "cgroup v1"),
    ],
)
def test_a_slow_kubelet_is_refused(target: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as refused:
        describe("kubelet-slow", {}, target)
    assert refused.value.hint


@pytest.mark.parametrize("unit", ["k0sworker.service", "k0scontroller.service", "rke2-agent.service"])
def test_a_kubelet_that_another_process_starts_is_stopped_and_not_frozen(unit: str) -> None:
    """SIGSTOP to the main process would leave the kubelet running, and its parent stopped for ever."""
    target = Target("n1", facts=FACTS | {"kubelet-unit": unit}, tag="run-do")
    assert describe("kubelet-stop", {}, target).inject == [f"systemctl stop {unit}"]
    with pytest.raises(Unsupported, match="is not the kubelet"):
        describe("kubelet-freeze", {}, target)
