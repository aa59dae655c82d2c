"""The least time between two steps, and what a step needs to know of it."""

from __future__ import annotations

import pytest

from chaos.core.action import Undo
from chaos.core.errors import Unsupported
from chaos.core.experiment import Step
from chaos.core.plan import PlannedStep
from chaos.engine.planning.planner import check_order, least_delay
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
