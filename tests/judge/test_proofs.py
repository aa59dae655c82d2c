"""What proves that an action took effect, and what only looks like it: another boot, another step, an early end."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.judge.context import Options
from chaos.judge.judge import judge
from chaos.model.action import ProofStatus
from chaos.model.result import StepResult
from tests.kit.story import Story, catalogue, experiment

BOOTED, ANEW = 100, 190  # starts of PID 1


def proved(story: Story, *steps: tuple[str, str]) -> tuple[StepResult, ...]:
    """The steps' results; ``steps`` are names and actions."""
    method = [f"{{name: {name}, action: {action}, target: victim}}" for name, action in steps]
    result = judge(experiment(method=f"[{', '.join(method)}]"), story.timeline(300), catalogue(), Options())
    return result.steps


def there(*facts: tuple[str, Any]) -> Story:
    story = Story().node(0, "n1").host(9, "pid1-start", BOOTED)
    for name, value in facts:
        story.host(9, name, value)
    return story


PROCESSES = [
    ("kubelet-restart", "kubelet-process", {"pid": 7}, {"pid": 8}),
    ("dbus-restart", "bus-processes", {"bus": 7, "logind": 9}, {"bus": 8, "logind": 9}),
    ("logind-restart", "bus-processes", {"bus": 7, "logind": 9}, {"bus": 7, "logind": 8}),
]


@pytest.mark.parametrize(("action", "fact", "before", "after"), PROCESSES)
@pytest.mark.parametrize(
    ("start", "shown"), [(BOOTED, ProofStatus.PROVEN), (ANEW, ProofStatus.UNPROVEN), (None, ProofStatus.UNPROVEN)]
)
def test_another_process_of_another_boot_is_no_restart(
    action: str, fact: str, before: Any, after: Any, start: int | None, shown: ProofStatus
) -> None:
    """A kubelet that is restarted in the window of a shutdown comes back with the next boot, restarted or not."""
    story = there((fact, before)).done(10, action).host(60, fact, after)
    if start is not None:
        story.host(61, "pid1-start", start)
    (step,) = proved(story, ("do", action))
    assert step.proof_status is shown, step.because


@pytest.mark.parametrize(
    ("pid", "at", "shown"), [(8, 11, ProofStatus.PROVEN), (7, 11, ProofStatus.UNPROVEN), (8, 20, ProofStatus.UNPROVEN)]
)
def test_a_machine_that_goes_down_shows_a_restart_by_its_answer(pid: int, at: float, shown: ProofStatus) -> None:
    """Nobody can look at its processes twice; only what it answered tells."""
    story = there(("kubelet-process", {"pid": 7})).done(10, "kubelet-restart")
    (step,) = proved(story.host(at, "kubelet-process", {"pid": pid}), ("do", "kubelet-restart"))
    assert step.proof_status is shown, step.because
    assert step.weak is (shown is ProofStatus.PROVEN)


@pytest.mark.parametrize(
    ("evidence", "machine", "shown"),
    [
        ({"began": 10.1}, "off", ProofStatus.PROVEN),
        ({"began": 10.1}, "on", ProofStatus.UNPROVEN),
        ({}, "off", ProofStatus.UNPROVEN),
    ],
)
def test_a_restart_that_took_the_machine_down_shows_by_its_begin(
    evidence: dict[str, float], machine: str, shown: ProofStatus
) -> None:
    """The lock was let go, so nothing waited any more; the host told that it began, and nothing after that."""
    story = there(("kubelet-process", {"pid": 7})).act(10, "kubelet-restart", "begin")
    story.act(10.9, "kubelet-restart", "returned", delivery="lost", evidence=evidence).host(13, "machine", machine)
    (step,) = proved(story, ("do", "kubelet-restart"))
    assert step.proof_status is shown, step.because
    assert step.weak is (shown is ProofStatus.PROVEN)


@pytest.mark.parametrize("action", ["cancel-shutdown", "cancel-shutdown-in-flight"])
@pytest.mark.parametrize(("start", "shown"), [(BOOTED + 1, ProofStatus.PROVEN), (ANEW, ProofStatus.DISPROVEN)])
def test_a_machine_that_booted_anew_was_not_saved_by_a_cancellation(
    action: str, start: int, shown: ProofStatus
) -> None:
    story = there(("preparing-for-shutdown", "b true")).done(10, action)
    story.host(60, "pid1-start", start).host(60.1, "preparing-for-shutdown", "b false").host(62, "pid1-start", start)
    (step,) = proved(story, ("do", action))
    assert step.proof_status is shown, step.because


STATES = [
    ("kubelet-stop", "kubelet-state", "inactive", "active", "kubelet-start"),
    ("kubelet-stop", "kubelet-state", "inactive", "active", "kubelet-restart"),
    ("runtime-stop", "runtime-state", "failed", "active", "power-cut"),
    ("kubelet-freeze", "kubelet-process", {"pid": 7, "stopped": True}, {"pid": 7, "stopped": False}, "kubelet-restart"),
    ("kubelet-freeze", "kubelet-process", {"pid": 7, "stopped": True}, {}, "kubelet-stop"),
]


@pytest.mark.parametrize(("action", "fact", "done", "over", "later"), STATES)
def test_an_effect_that_ended_before_its_time_disproves(
    action: str, fact: str, done: Any, over: Any, later: str
) -> None:
    """A timer of an earlier run, or a configuration management that starts what it finds stopped."""
    story = there().done(10, action).host(10.1, fact, over).host(12, fact, done).host(40, fact, done)
    assert proved(story, ("do", action))[0].proof_status is ProofStatus.PROVEN
    meant = there().done(10, action).host(12, fact, done).done(30, later).host(50, fact, over)
    assert proved(meant, ("do", action), ("then", later))[0].proof_status is ProofStatus.PROVEN
    (step,) = proved(story.host(50, fact, over), ("do", action))
    assert step.proof_status is ProofStatus.DISPROVEN
    assert "the effect ended 40.0 s after the step" in step.because


@pytest.mark.parametrize(("before", "shown"), [(False, ProofStatus.PROVEN), (True, ProofStatus.DISPROVEN)])
def test_what_is_seen_in_the_instant_of_its_end_counts_by_its_order(before: bool, shown: ProofStatus) -> None:
    """In lockstep much happens in one instant: an undo, and a reading of what it did."""
    story = there().done(10, "runtime-stop").host(12, "runtime-state", "inactive")
    if before:
        story.host(30, "runtime-state", "active").act(30, "runtime-stop", "undo")
    else:
        story.act(30, "runtime-stop", "undo").host(30, "runtime-state", "active")
    assert proved(story, ("do", "runtime-stop"))[0].proof_status is shown


def test_the_exit_code_of_a_step_proves_no_other() -> None:
    """The first signal was lost with the line, the second of the same kind was sent."""
    story = there().act(10, "prepare-for-shutdown", "begin", step="a", params={"active": True})
    story.act(11, "prepare-for-shutdown", "returned", step="a", delivery="lost", params={"active": True})
    story.done(30, "prepare-for-shutdown", step="b", params={"active": True})
    first, second = proved(story, ("a", "prepare-for-shutdown"), ("b", "prepare-for-shutdown"))
    assert (first.proof_status, second.proof_status) == (ProofStatus.UNPROVEN, ProofStatus.PROVEN)
    assert second.weak


REBOOTS = [("pid1-start", "reboot"), ("pid1-start", "kernel-crash"), ("boot ID", "hard-reboot")]


@pytest.mark.parametrize(("seen", "action"), REBOOTS)
def test_the_boot_that_a_later_step_made_proves_no_earlier_one(seen: str, action: str) -> None:
    story = there().node(1, "n1", boot_id="a").done(10, action).done(100, "reboot")
    if seen == "pid1-start":
        story.host(130, seen, ANEW)
    else:
        story.node(130, "n1", boot_id="b")
    first, second = proved(story, ("a", action), ("b", "reboot"))
    assert (first.proof_status, second.proof_status) == (ProofStatus.UNPROVEN, ProofStatus.PROVEN), first.because


def test_a_machine_that_was_off_is_proven_by_the_boot_that_followed() -> None:
    story = there().done(10, "poweroff").done(100, "power-on").host(130, "pid1-start", ANEW)
    off, _ = proved(story, ("a", "poweroff"), ("b", "power-on"))
    assert off.proof_status is ProofStatus.PROVEN
