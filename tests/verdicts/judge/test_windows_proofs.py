"""Proofs of the Windows forms: boots are counted, and the System log shows how each one came about."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus, StepRun
from chaos.core.experiment import Step
from chaos.engine.registry import load_registry
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from chaos.verdicts.judge.proof import proof_result
from chaos.verdicts.judge.step_matching import StepMatch
from tests.kit.story import T0, Story

PROVEN, DISPROVEN, UNPROVEN = ProofStatus.PROVEN, ProofStatus.DISPROVEN, ProofStatus.UNPROVEN
OWN, OTHER = r"shutdown.exe for W\A: nodefall run-recorded", r"shutdown.exe for W\A: updates"


def proof(action: str, *readings: tuple[float, str, Any], before: tuple[tuple[str, Any], ...] = ()) -> ProofStatus:
    """Status of a step ``do`` at 10 s on a Windows node with boot 31; ``readings`` by seconds after T0.

    The run ``run`` named the step ``recorded``: another experiment judges it.
    """
    story = Story(run="run").add(0, "nodes", "ADDED", _windows_node()).host(5, "boot-id", "31")
    for name, value in before:
        story.host(9, name, value)
    story.done(10, action, step="recorded")
    for t, name, value in readings:
        story.host(t, name, value)
    timeline = story.timeline(300)
    step = Step.model_validate({"name": "do", "action": action, "target": "victim"})
    run = StepRun("do", action, "n1", {}, T0 + 10, T0 + 11, T0 + 200)
    match = StepMatch(step=step, action=action, runs=(run,), commands=("",), missing="")
    return proof_result(match, run, timeline, load_registry()).status


def _windows_node() -> dict[str, Any]:
    info = {"bootID": "31", "operatingSystem": "windows"}
    labels = {"kubernetes.io/os": "windows"}
    return {"metadata": {"name": "n1", "uid": "u", "labels": labels}, "spec": {}, "status": {"nodeInfo": info}}


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(60, "boot-id", "32"), (60, "last-stop", "bug-check")], PROVEN),
        ([(60, "boot-id", "32"), (62, "last-stop", "clean")], DISPROVEN),
        ([(60, "boot-id", "32"), (62, "last-stop", "unclean")], DISPROVEN),
        ([(60, "boot-id", "32")], UNPROVEN),
        ([(12, "last-stop", "bug-check"), (60, "boot-id", "32")], UNPROVEN),  # of the boot before
        ([(60, "boot-id", "31"), (60, "last-stop", "bug-check")], UNPROVEN),
        ([], UNPROVEN),
    ],
)
def test_a_crash_is_a_boot_after_a_bug_check(readings: list[tuple[float, str, Any]], expected: ProofStatus) -> None:
    assert proof("kernel-crash", *readings) is expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(12, "scheduled-shutdown", OWN)], PROVEN),
        ([(12, "scheduled-shutdown", OTHER)], UNPROVEN),
        ([(12, "scheduled-shutdown", OWN.replace("run-", "other-"))], UNPROVEN),
        ([(12, "scheduled-shutdown", OWN.replace("run-", "run-not-"))], UNPROVEN),
        ([(12, "scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)], UNPROVEN),
        ([(12, "scheduled-shutdown", OTHER), (70, "machine", "off")], UNPROVEN),
        ([(70, "machine", "off"), (90, "boot-id", "32")], UNPROVEN),  # somebody else's
        ([(12, "scheduled-shutdown", OWN), (70, "machine", "off"), (90, "boot-id", "32")], PROVEN),
    ],
)
def test_a_step_has_scheduled_its_own_shutdown(readings: list[tuple[float, str, Any]], expected: ProofStatus) -> None:
    assert proof("schedule-shutdown", *readings) is expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(12, "scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)], PROVEN),
        ([(12, "scheduled-shutdown", OWN)], DISPROVEN),
        ([(12, "scheduled-shutdown", NO_SHUTDOWN_SCHEDULED), (70, "machine", "off")], DISPROVEN),
        ([(12, "boot-id", "32"), (12, "scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)], DISPROVEN),
        ([], UNPROVEN),
    ],
)
def test_a_shutdown_is_cancelled(readings: list[tuple[float, str, Any]], expected: ProofStatus) -> None:
    assert proof("cancel-shutdown", *readings) is expected


@pytest.mark.parametrize(
    ("action", "readings", "expected"),
    [
        ("reboot", [(40, "boot-id", "32")], PROVEN),
        ("reboot", [(40, "boot-id", "33")], PROVEN),
        ("reboot", [(40, "boot-id", "31")], UNPROVEN),
        ("reboot", [(40, "machine", "off")], DISPROVEN),
        ("hard-reboot", [(40, "boot-id", "32")], PROVEN),
        ("poweroff", [(40, "machine", "off")], PROVEN),
        ("poweroff", [(40, "machine", "on")], DISPROVEN),
        ("power-cut", [(40, "boot-id", "32")], PROVEN),
        ("power-on", [(40, "boot-id", "32")], PROVEN),
        ("power-on", [(40, "boot-id", "31")], UNPROVEN),
    ],
)
def test_boots_are_counted(action: str, readings: list[tuple[float, str, Any]], expected: ProofStatus) -> None:
    assert proof(action, *readings) is expected


def test_a_start_of_pid_1_decides_where_there_is_one() -> None:
    """A container has its machine's boot ID, which changes with that of its host."""
    assert proof("power-on", (40, "boot-id", "32"), before=(("pid1-start", T0),)) is UNPROVEN
