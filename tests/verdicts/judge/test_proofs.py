"""Proofs that an action took effect, and evidence of something else: another boot, another step, an early end."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.core.result import StepResult
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import T0, Story, experiment, plugin_registry

BOOTED, REBOOTED = 100, 190  # starts of PID 1


def step_results(story: Story, *steps: tuple[str, str]) -> tuple[StepResult, ...]:
    """Results of the steps; ``steps`` are names and actions."""
    method = [f"{{name: {name}, action: {action}, target: victim}}" for name, action in steps]
    result = judge(experiment(method=f"[{', '.join(method)}]"), story.timeline(300), plugin_registry(), Options())
    return result.steps


def with_facts(*facts: tuple[str, Any]) -> Story:
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
    ("start", "expected"),
    [(BOOTED, ProofStatus.PROVEN), (REBOOTED, ProofStatus.UNPROVEN), (None, ProofStatus.UNPROVEN)],
)
def test_new_process_after_a_boot_is_no_restart(
    action: str, fact: str, before: Any, after: Any, start: int | None, expected: ProofStatus
) -> None:
    """A boot starts a new kubelet, whether the step restarted it before or not."""
    story = with_facts((fact, before)).done(10, action).host(60, fact, after)
    if start is not None:
        story.host(61, "pid1-start", start)
    (step,) = step_results(story, ("do", action))
    assert step.proof_status is expected, step.because


@pytest.mark.parametrize(
    ("pid", "at", "expected"),
    [(8, 11, ProofStatus.PROVEN), (7, 11, ProofStatus.UNPROVEN), (8, 20, ProofStatus.UNPROVEN)],
)
def test_restart_before_a_shutdown_is_proven_by_the_exit_code(pid: int, at: float, expected: ProofStatus) -> None:
    """The processes can be read only once before the machine is off; the exit code is a weak proof."""
    story = with_facts(("kubelet-process", {"pid": 7})).done(10, "kubelet-restart")
    (step,) = step_results(story.host(at, "kubelet-process", {"pid": pid}), ("do", "kubelet-restart"))
    assert step.proof_status is expected, step.because
    assert step.weak is (expected is ProofStatus.PROVEN)


@pytest.mark.parametrize(
    ("evidence", "machine", "expected"),
    [
        ({"began": 10.1}, "off", ProofStatus.PROVEN),
        ({"began": 10.1}, "on", ProofStatus.UNPROVEN),
        ({}, "off", ProofStatus.UNPROVEN),
    ],
)
def test_restart_that_completes_a_shutdown_is_proven_by_its_begin(
    evidence: dict[str, float], machine: str, expected: ProofStatus
) -> None:
    """The restart releases the inhibitor lock, so the shutdown continues; the host reports only the start."""
    story = with_facts(("kubelet-process", {"pid": 7})).act(10, "kubelet-restart", "begin")
    story.act(10.9, "kubelet-restart", "returned", delivery="lost", evidence=evidence).host(13, "machine", machine)
    (step,) = step_results(story, ("do", "kubelet-restart"))
    assert step.proof_status is expected, step.because
    assert step.weak is (expected is ProofStatus.PROVEN)


@pytest.mark.parametrize(
    ("stderr", "later", "expected", "weak"),
    [
        ("Job for kubelet.service canceled.", {}, ProofStatus.PROVEN, False),
        ("Job for kubelet.service canceled.", None, ProofStatus.PROVEN, True),
        ("Job for kubelet.service canceled.", {"pid": 7}, ProofStatus.UNPROVEN, False),
        ("Job for kubelet.service failed.", {}, ProofStatus.UNPROVEN, False),
        (None, {}, ProofStatus.UNPROVEN, False),
    ],
)
def test_restart_that_a_shutdown_cancels_is_proven_by_systemd(
    stderr: str | None, later: Any, expected: ProofStatus, weak: bool
) -> None:
    story = with_facts(("kubelet-process", {"pid": 7})).act(10, "kubelet-restart", "begin")
    evidence = {} if stderr is None else {"stderr": stderr}
    story.act(10.2, "kubelet-restart", "returned", delivery="answered", exit=1, evidence=evidence)
    if later is not None:
        story.host(11, "kubelet-process", later)
    (step,) = step_results(story, ("do", "kubelet-restart"))
    assert (step.proof_status, step.weak) == (expected, weak), step.because


@pytest.mark.parametrize("action", ["cancel-shutdown", "cancel-shutdown-in-flight"])
@pytest.mark.parametrize(("start", "expected"), [(BOOTED + 1, ProofStatus.PROVEN), (REBOOTED, ProofStatus.DISPROVEN)])
def test_reboot_disproves_a_cancellation(action: str, start: int, expected: ProofStatus) -> None:
    story = with_facts(("preparing-for-shutdown", "b true")).done(10, action)
    story.host(60, "pid1-start", start).host(60.1, "preparing-for-shutdown", "b false").host(62, "pid1-start", start)
    (step,) = step_results(story, ("do", action))
    assert step.proof_status is expected, step.because


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, (), ProofStatus.PROVEN),  # a recording of 0.2 does not show it
        (True, (False,), ProofStatus.PROVEN),
        (True, (True, False), ProofStatus.PROVEN),
        (True, (True, True), ProofStatus.UNPROVEN),
        (True, (), ProofStatus.UNPROVEN),
        (None, (True,), ProofStatus.UNPROVEN),
    ],
)
def test_a_cancellation_that_leaves_logins_refused_is_not_proven(
    before: bool | None, after: tuple[bool, ...], expected: ProofStatus
) -> None:
    """As by a logind that was restarted between both, which no longer knows that it made /run/nologin."""
    story = with_facts(*([("nologin", before)] if before is not None else [])).done(10, "cancel-shutdown")
    story.host(12, "preparing-for-shutdown", "b false")
    for number, value in enumerate(after):
        story.host(12.5 + 2 * number, "nologin", value)
    (step,) = step_results(story, ("do", "cancel-shutdown"))
    assert step.proof_status is expected, step.because


STATES = [
    ("kubelet-stop", "kubelet-state", "inactive", "active", "kubelet-start"),
    ("kubelet-stop", "kubelet-state", "inactive", "active", "kubelet-restart"),
    ("runtime-stop", "runtime-state", "failed", "active", "power-cut"),
    ("kubelet-freeze", "kubelet-process", {"pid": 7, "stopped": True}, {"pid": 7, "stopped": False}, "kubelet-restart"),
    ("kubelet-freeze", "kubelet-process", {"pid": 7, "stopped": True}, {}, "kubelet-stop"),
]


@pytest.mark.parametrize(("action", "fact", "done", "over", "later"), STATES)
def test_early_end_of_the_effect_disproves(action: str, fact: str, done: Any, over: Any, later: str) -> None:
    """The cause may be a timer of an earlier run, or configuration management that starts stopped services."""
    story = with_facts().done(10, action).host(10.1, fact, over).host(12, fact, done).host(40, fact, done)
    assert step_results(story, ("do", action))[0].proof_status is ProofStatus.PROVEN
    planned = with_facts().done(10, action).host(12, fact, done).done(30, later).host(50, fact, over)
    assert step_results(planned, ("do", action), ("then", later))[0].proof_status is ProofStatus.PROVEN
    (step,) = step_results(story.host(50, fact, over), ("do", action))
    assert step.proof_status is ProofStatus.DISPROVEN
    assert "the effect ended 40.0 s after the step" in step.because


@pytest.mark.parametrize(("before", "expected"), [(False, ProofStatus.PROVEN), (True, ProofStatus.DISPROVEN)])
def test_entries_at_the_moment_of_the_end_count_by_their_order(before: bool, expected: ProofStatus) -> None:
    """In lockstep, an undo and a reading of its effect may have the same time."""
    story = with_facts().done(10, "runtime-stop").host(12, "runtime-state", "inactive")
    if before:
        story.host(30, "runtime-state", "active").act(30, "runtime-stop", "undo")
    else:
        story.act(30, "runtime-stop", "undo").host(30, "runtime-state", "active")
    assert step_results(story, ("do", "runtime-stop"))[0].proof_status is expected


def test_exit_code_of_a_step_proves_no_other_step() -> None:
    """The connection was lost during the first signal; only the second of the same kind was sent."""
    story = with_facts().act(10, "prepare-for-shutdown", "begin", step="a", params={"active": True})
    story.act(11, "prepare-for-shutdown", "returned", step="a", delivery="lost", params={"active": True})
    story.done(30, "prepare-for-shutdown", step="b", params={"active": True})
    first, second = step_results(story, ("a", "prepare-for-shutdown"), ("b", "prepare-for-shutdown"))
    assert (first.proof_status, second.proof_status) == (ProofStatus.UNPROVEN, ProofStatus.PROVEN)
    assert second.weak


REBOOTS = [("pid1-start", "reboot"), ("pid1-start", "kernel-crash"), ("boot ID", "hard-reboot")]


@pytest.mark.parametrize(("source", "action"), REBOOTS)
def test_boot_of_a_later_step_proves_no_earlier_step(source: str, action: str) -> None:
    story = with_facts().node(1, "n1", boot_id="a").done(10, action).done(100, "reboot")
    if source == "pid1-start":
        story.host(130, source, REBOOTED)
    else:
        story.node(130, "n1", boot_id="b")
    first, second = step_results(story, ("a", action), ("b", "reboot"))
    assert (first.proof_status, second.proof_status) == (ProofStatus.UNPROVEN, ProofStatus.PROVEN), first.because


@pytest.mark.parametrize("action", ["reboot", "hard-reboot"])
def test_a_machine_that_went_off_did_not_reboot(action: str) -> None:
    """As a container whose restart policy is ``no``: only undo, or a later step, starts it again."""
    story = with_facts().done(10, action).host(12, "machine", "off")
    (step,) = step_results(story.host(14, "machine", "off"), ("a", action))
    assert step.proof_status is ProofStatus.UNPROVEN, "it may still boot"
    story.done(100, "power-on").host(110, "machine", "on").host(130, "pid1-start", REBOOTED)
    step, _ = step_results(story, ("a", action), ("b", "power-on"))
    assert step.proof_status is ProofStatus.DISPROVEN
    assert "it was still off 90.0 s later" in step.because


@pytest.mark.parametrize("action", ["reboot", "hard-reboot"])
def test_a_machine_that_was_off_and_booted_rebooted(action: str) -> None:
    story = with_facts().done(10, action).host(12, "machine", "off").host(14, "machine", "on")
    (step,) = step_results(story.host(30, "pid1-start", REBOOTED).done(60, "cordon"), ("a", action))
    assert step.proof_status is ProofStatus.PROVEN


@pytest.mark.parametrize(
    ("before", "after", "start", "expected"),
    [
        ("off", ["on"], None, ProofStatus.PROVEN),
        ("on", ["on", "off", "on"], None, ProofStatus.PROVEN),
        ("on", ["on"], T0 + 101, ProofStatus.PROVEN),
        ("on", ["on"], T0 + 5, ProofStatus.DISPROVEN),
        ("on", ["on", "on"], None, ProofStatus.DISPROVEN),
        ("on", ["on", "off"], None, ProofStatus.DISPROVEN),
        ("off", ["off"], None, ProofStatus.DISPROVEN),
        (None, ["on"], None, ProofStatus.UNPROVEN),
        ("off", [], None, ProofStatus.UNPROVEN),
    ],
)
def test_a_machine_that_never_was_off_was_not_powered_on(
    before: str | None, after: list[str], start: float | None, expected: ProofStatus
) -> None:
    """A machine that is still going down reports on, ignores the command, and goes off later."""
    story = with_facts(*([("machine", before)] if before else [])).done(100, "power-on")
    for number, state in enumerate(after):
        story.host(102 + number, "machine", state)
    if start is not None:
        story.host(130, "pid1-start", start)
    (step,) = step_results(story.lease(95).lease(140), ("a", "power-on"))
    assert step.proof_status is expected, step.because


def test_power_off_is_proven_by_the_next_boot() -> None:
    story = with_facts().done(10, "poweroff").done(100, "power-on").host(130, "pid1-start", REBOOTED)
    off, _ = step_results(story, ("a", "poweroff"), ("b", "power-on"))
    assert off.proof_status is ProofStatus.PROVEN


def lying(action: str, renewed: bool = True) -> Story:
    """A power control that says off after ``action`` at 10, and on after ``power-on`` at 90; the Lease is renewed."""
    story = Story().node(0, "n1").lease(5).done(10, action).done(90, "power-on")
    for t in range(12, 90, 2):
        story.host(t, "machine", "off")
    for t in range(15, 90 if renewed else 15, 10):
        story.lease(t)
    return story.host(92, "machine", "on").lease(95)


SAID = "the power control said that n1 was off 2.0 s after the step, but"
WORDS = [
    (lying("power-cut"), f"{SAID} the Lease of n1 was renewed 13.0 s later"),
    (
        lying("power-cut", renewed=False).host(9, "pid1-start", BOOTED).host(94, "pid1-start", BOOTED),
        f"{SAID} PID 1 of n1 was the same 82.0 s later",
    ),
]


@pytest.mark.parametrize(("story", "because"), WORDS)
def test_a_power_control_that_lies_proves_nothing(story: Story, because: str) -> None:
    off, on = step_results(story, ("a", "power-cut"), ("b", "power-on"))
    assert (off.proof_status, off.because) == (ProofStatus.DISPROVEN, because)
    assert on.proof_status is ProofStatus.DISPROVEN, on.because
    assert len(off.evidence) == 2, "what it said, and what disproves it"


def test_the_proof_of_a_power_control_says_what_it_rests_on() -> None:
    off, on = step_results(lying("power-cut", renewed=False), ("a", "power-cut"), ("b", "power-on"))
    because = "n1 was off 2.0 s after the step: the power control said so, and its Lease was not renewed for 78 s"
    assert (off.proof_status, off.because) == (ProofStatus.PROVEN, because)
    assert on.proof_status is ProofStatus.PROVEN


def test_a_boot_that_the_power_control_did_not_say_proves_the_step() -> None:
    """The Leases of a machine that booted again within seconds do not disprove that it was off."""
    story = lying("hard-reboot").host(9, "pid1-start", BOOTED).host(94, "pid1-start", REBOOTED)
    (step,) = step_results(story, ("a", "hard-reboot"))
    assert step.proof_status is ProofStatus.PROVEN
