"""A plan that somebody has read is done as it was read, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.model.action import Undo
from chaos.model.command import HostCommand
from chaos.model.errors import Refused
from chaos.model.plan import Plan, PlannedStep, PlannedTarget
from chaos.plan.stale import check_age, check_unchanged

TARGET = PlannedTarget("victim", "n1", "uid-1", "boot 1")
STEP = PlannedStep("stop", "kubelet-stop", "n1", {}, {"unit": "kubelet"}, (HostCommand(("systemctl",)),), Undo(), ())
PLAN = Plan("r-1", "x", "hash", "cluster-1", 1000.0, 7, (TARGET,), (STEP,))


@pytest.mark.parametrize("age", [0.0, 899.0, 900.0, -59.0])
def test_good_for_a_quarter_of_an_hour(age: float) -> None:
    check_age(PLAN, 1000.0 + age)


@pytest.mark.parametrize(
    ("age", "said"), [(901.0, "15 min old"), (86_400.0, "1440 min old"), (-61.0, "from the future")]
)
def test_too_old(age: float, said: str) -> None:
    with pytest.raises(Refused, match=said):
        check_age(PLAN, 1000.0 + age)


def test_what_only_looks_different_is_the_same() -> None:
    check_unchanged(
        PLAN, replace(PLAN, created=1300.0, facts={"n1": {"disk": 7}}, steps=(replace(STEP, undo_state={"x": 1}),))
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cluster_uid": "cluster-2"}, "it is for the cluster cluster-1, this is cluster-2"),
        ({"experiment_hash": "other"}, "the experiment x was changed since"),
        ({"overridden": ("logind: no",)}, "preflight refuses more now: logind"),
        ({"targets": ()}, "n1 would not be chosen for victim any more"),
        ({"targets": (TARGET, replace(TARGET, node="n2"))}, "other nodes would be chosen now"),
        ({"targets": (replace(TARGET, uid="uid-2"),)}, r"another one \(its uid was uid-1, now it is uid-2\)"),
        ({"targets": (replace(TARGET, boot_identity="boot 2"),)}, "n1 was booted since"),
        ({"steps": ()}, "the step stop on n1 would not be done any more"),
        ({"steps": (replace(STEP, commands=(HostCommand(("rm",)),)),)}, "commands of the step stop on n1 would be"),
        ({"steps": (replace(STEP, params={"a": 1}),)}, "params of the step stop on n1"),
    ],
)
def test_what_has_changed_is_said(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=f"the plan is stale: .*{said}"):
        check_unchanged(PLAN, replace(PLAN, **changed))


def test_what_was_set_aside_and_read_may_be_told_in_other_words() -> None:
    kept = replace(PLAN, overridden=("clock: 7.0s ahead", "logind: no"))
    check_unchanged(kept, replace(PLAN, overridden=("clock: 7.1s ahead",)))
