"""A saved plan is executed unchanged, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.core.action import FactCheck, Undo
from chaos.core.command import HostCommand
from chaos.core.errors import Refused
from chaos.core.plan import Plan, PlannedStep, PlannedTarget
from chaos.engine.planning.planner import check_age, check_unchanged

TARGET = PlannedTarget("victim", "n1", "uid-1", "boot 1")
STEP = PlannedStep("stop", "kubelet-stop", "n1", {}, {"unit": "kubelet"}, (HostCommand(("systemctl",)),), Undo(), ())
PLAN = Plan("r-1", "x", "hash", "cluster-1", 1000.0, 7, (TARGET,), (STEP,))


@pytest.mark.parametrize("age", [0.0, 899.0, 900.0, -59.0])
def test_a_plan_is_valid_for_15_minutes(age: float) -> None:
    check_age(PLAN, 1000.0 + age)


@pytest.mark.parametrize(
    ("age", "message"), [(901.0, "15 min old"), (86_400.0, "1440 min old"), (-61.0, "from the future")]
)
def test_a_plan_of_another_time_is_refused(age: float, message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_age(PLAN, 1000.0 + age)


def test_differences_without_effect_are_accepted() -> None:
    check_unchanged(
        PLAN, replace(PLAN, created=1300.0, facts={"n1": {"disk": 7}}, steps=(replace(STEP, undo_state={"x": 1}),))
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cluster_uid": "cluster-2"}, "the plan is for cluster cluster-1, but the server reports cluster-2"),
        ({"experiment_hash": "other"}, "the experiment x has changed"),
        ({"overridden": ("logind: no",)}, "more preflight checks fail now: logind"),
        ({"targets": ()}, "n1 would not be selected for victim any more"),
        ({"targets": (TARGET, replace(TARGET, node="n2"))}, "other nodes would be selected now"),
        ({"targets": (replace(TARGET, uid="uid-2"),)}, r"n1 was replaced \(its UID was uid-1, now it is uid-2\)"),
        ({"targets": (replace(TARGET, boot_identity="boot 2"),)}, "n1 has booted since"),
        ({"slack": 1.5}, r"the slack of the inventory was 1, now it is 1\.5"),
        ({"workload_nodes": ("n1", "n2")}, "the workload would be confined to other nodes now"),
        ({"steps": (replace(STEP, awaits=(FactCheck("machine", "off"),)),)}, "awaits of the step stop on n1 would be"),
        ({"steps": ()}, "the step stop on n1 would not be done any more"),
        ({"steps": (replace(STEP, commands=(HostCommand(("rm",)),)),)}, "commands of the step stop on n1 would be"),
        ({"steps": (replace(STEP, params={"a": 1}),)}, "params of the step stop on n1"),
    ],
)
def test_the_error_names_the_change(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=f"the plan is stale: .*{message}"):
        check_unchanged(PLAN, replace(PLAN, **changed))


def test_another_host_key_is_named() -> None:
    saved, fresh = (replace(PLAN, facts={"n1": {"host-key": key}}) for key in ("ssh-rsa SHA256:a", "ssh-rsa SHA256:b"))
    check_unchanged(saved, saved)
    message = r"n1 presents another host key \(it was ssh-rsa SHA256:a, now it is ssh-rsa SHA256:b\)"
    with pytest.raises(Refused, match=message):
        check_unchanged(saved, fresh)


def test_an_overridden_check_may_report_other_values() -> None:
    saved = replace(PLAN, overridden=("clock: 7.0s ahead", "logind: no"))
    check_unchanged(saved, replace(PLAN, overridden=("clock: 7.1s ahead",)))
