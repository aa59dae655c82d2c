"""The order of steps, and whether a saved plan still holds."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.core.action import FactCheck, Undo
from chaos.core.command import HostCommand
from chaos.core.errors import Refused, Unsupported
from chaos.core.experiment import Step
from chaos.core.plan import Plan, PlannedStep, PlannedTarget
from chaos.engine.planning.planner import check_age, check_order, check_unchanged, least_delay
from chaos.engine.registry import load_registry


def step(name: str, action: str, after: str | None = None, **params: object) -> Step:
    made = Step.model_validate({"name": name, "action": action, "target": "victim", "after": after, "with": params})
    load_registry().bind_step(made)
    return made


def method(*after: str | None) -> list[Step]:
    """A schedule named s, then a reboot of nothing in particular, then a cancellation named c."""
    actions = ("schedule-shutdown", "uncordon", "cancel-shutdown")
    return [step(name, action, text) for name, action, text in zip("smc", actions, after, strict=True)]


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ((None, None, None), 0.0),
        ((None, None, "s + 20s"), 20.0),
        ((None, None, "end(s) + 20s"), 20.0),
        ((None, "s + 30s", "m + 20s"), 50.0),
        ((None, "30s", "20s"), 50.0),
        ((None, "s + 30s", None), 30.0),
        (("10s", "20s", "s + 5s"), 5.0),
        (("10s", "20s", "m + 5s"), 25.0),
    ],
)
def test_least_delay(after: tuple[str | None, ...], seconds: float) -> None:
    assert least_delay(method(*after), "s", "c") == seconds


def test_a_reference_to_a_step_before_the_first_says_nothing() -> None:
    steps = [step("a", "uncordon"), *method(None, None, "a + 90s")]
    assert least_delay(steps, "s", "c") == 0.0


def planned(steps: list[Step]) -> list[PlannedStep]:
    return [PlannedStep(s.name, s.action, "n1", {"in": "60s"}, {}, (), Undo(), ()) for s in steps]


@pytest.mark.parametrize(
    ("after", "is_refused"), [("s + 59s", False), ("s + 60s", True), ("s + 2m", True), ("5m", True)]
)
def test_windows_cancels_no_shutdown_after_its_countdown(after: str, is_refused: bool) -> None:
    steps = method(None, None, after)
    check_order(steps, planned(steps), "linux")  # systemd 257 and later cancel that one, too
    if not is_refused:
        check_order(steps, planned(steps), "windows")
        return
    with pytest.raises(Unsupported, match="countdown of 1m") as refused:
        check_order(steps, planned(steps), "windows")
    assert refused.value.message.startswith("step c on n1: it would come ")
    assert refused.value.hint


@pytest.mark.parametrize("action", ["poweroff", "reboot"])
def test_windows_cancels_no_shutdown_without_a_countdown(action: str) -> None:
    steps = [step("s", action), step("c", "cancel-shutdown", "1s")]
    with pytest.raises(Unsupported, match=rf"shutdown \({action}\) with a countdown of 0s"):
        check_order(steps, planned(steps), "windows")


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
