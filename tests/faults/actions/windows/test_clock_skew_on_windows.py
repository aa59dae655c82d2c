"""Clock of a Windows host: what stops its correction, what sets it, and what restores both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from chaos.core.action import FailsafeTimer, Target
from chaos.core.encoded_script import decode_script
from chaos.core.errors import Unsupported
from chaos.core.windows import powershell
from chaos.engine.failsafe import task_argv, task_xml
from tests.kit.actionkit import WINDOWS_ACTIONS, command_text, describe, line_length, prepare

HYPERVISOR, TIME = "service-state?service=vmictimesync", "service-state?service=w32time"
FACTS: dict[str, Any] = {"failsafe-timers": [], "clock-skew": 0, HYPERVISOR: "active", TIME: "active"}
WINDOWS = Target("w1", "windows", facts=FACTS, tag="run-skew", max_duration=300.0)


def test_the_services_stop_before_and_start_after_the_clock_is_right() -> None:
    described = describe("clock-skew", {"by": "90s", "direction": "behind"}, WINDOWS)
    stop, set_clock = described.inject
    assert stop == 'stop-services {"services":["vmictimesync","w32time"]}'
    assert set_clock == 'set-clock {"seconds":-90}'
    assert described.undo == [
        'restore-clock {"services":[],"until_right":false} unless clock-skew is 0',
        f'start-service {{"service":"vmictimesync"}} unless {HYPERVISOR} is active',
        f'start-service {{"service":"w32time"}} unless {TIME} is active',
    ]
    assert described.proof == [
        "clock-skew is 0",
        f"{HYPERVISOR} is active",
        f"{TIME} is active",
        "the node is Ready",
    ]
    assert described.disarm == "nodefall-run-skew"


@pytest.mark.parametrize(
    ("facts", "services"), [({HYPERVISOR: "inactive"}, ("w32time",)), ({HYPERVISOR: "inactive", TIME: "inactive"}, ())]
)
def test_only_what_ran_is_stopped_and_started(facts: dict[str, Any], services: tuple[str, ...]) -> None:
    target = replace(WINDOWS, facts=FACTS | facts)
    assert prepare("clock-skew", {}, target).services == services
    described = describe("clock-skew", {}, target)
    assert len(described.inject) == 1 + bool(services)
    assert len(described.undo) == 1 + len(services)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"failsafe-timers": ["nodefall-x"]}, "nodefall-x, beside which the clock is not set"),
    ({}, {"clock-skew": 5}, "set wrong already"),
    ({"by": "300s"}, {}, "ends logins by Kerberos"),
    ({"by": "10m", "direction": "behind"}, {}, "600 s wrong ends logins"),
]


@pytest.mark.parametrize(("given", "facts", "why"), REFUSED)
def test_refused(given: dict[str, Any], facts: dict[str, Any], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        prepare("clock-skew", given, replace(WINDOWS, facts=FACTS | facts))


@pytest.mark.parametrize("missing", ["failsafe-timers", "clock-skew"])
def test_facts_that_must_be_known(missing: str) -> None:
    with pytest.raises(Unsupported, match=missing):
        prepare("clock-skew", {}, replace(WINDOWS, facts={k: v for k, v in FACTS.items() if k != missing}))


def test_the_failsafe_task_waits_by_itself_and_no_time_starts_it() -> None:
    action = WINDOWS_ACTIONS["clock-skew"]
    timer = action.program(prepare("clock-skew", {}, WINDOWS)).failsafe
    assert timer is not None
    assert timer.by_uptime
    assert decode_script(task_argv(timer, 300.0)).startswith('failsafe-run {"wait":300,')
    # until the clock is right, the task is needed
    assert decode_script(timer.argv) == 'restore-clock {"services":["vmictimesync","w32time"],"until_right":true}'
    xml = task_xml(timer, None)
    assert "TimeTrigger" not in xml
    assert "BootTrigger" in xml
    assert "<ExecutionTimeLimit>PT0S<" in xml


def test_every_command_line_fits_cmd() -> None:
    action = WINDOWS_ACTIONS["clock-skew"]
    state = prepare("clock-skew", {}, WINDOWS)
    timer = action.program(state).failsafe
    assert timer is not None
    for command in action.program(state).commands:
        assert line_length(command) < 8191, command_text(command)
    assert len(" ".join(task_argv(timer, 3600.0))) < 32767  # of Windows: no cmd.exe starts it


@pytest.mark.parametrize("service", ["lsass", "w32time';calc;'", "sshd"])
def test_a_state_starts_no_other_service(service: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        WINDOWS_ACTIONS["clock-skew"].decode_state({"skew": 1, "services": [service], "tag": "a", "seconds": 1.0})


def test_a_timer_is_written_as_before_where_it_follows_the_clock() -> None:
    """Plans of earlier versions are read, and those of Linux hosts do not change."""
    timer = FailsafeTimer("nodefall-x", 5.0, ("sc", "start"))
    assert msgspec.to_builtins(timer) == {"unit": "nodefall-x", "seconds": 5.0, "argv": ("sc", "start")}
    by_uptime = FailsafeTimer("nodefall-x", 5.0, powershell("read-time"), by_uptime=True)
    assert msgspec.convert(msgspec.to_builtins(by_uptime), FailsafeTimer) == by_uptime
