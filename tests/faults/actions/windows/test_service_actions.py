"""Windows services: what stops, starts and restores kubelet and runtime, and in which order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chaos.core.action import Target
from chaos.core.command import Delivery, HostCommand, Outcome, had_no_effect, is_success, undecided_answer
from chaos.core.errors import Unsupported
from chaos.machines.windows_command_line import quote_argument
from tests.kit.actionkit import WINDOWS_ACTIONS, describe, prepare
from tests.kit.win_host import WindowsHost

FACTS: dict[str, Any] = {"kubelet-unit": "kubelet", "runtime-unit": "containerd", "kubelet-dependencies": []}
BOTH = FACTS | {"kubelet-dependencies": ["containerd"]}
READY = "the node is Ready"
START_KUBELET = "sc.exe start kubelet unless the kubelet is active"
START_RUNTIME = "sc.exe start containerd unless runtime-state is active"


def target(facts: dict[str, Any]) -> Target:
    return Target("w1", "windows", facts=facts, tag="run-step", max_duration=300.0)


TABLE = [
    ("kubelet-start", FACTS, ["sc.exe start kubelet"], "", []),
    (
        "kubelet-stop",
        FACTS,
        ["sc.exe stop kubelet"],
        "kubelet",
        [START_KUBELET],
    ),
    ("kubelet-restart", FACTS, ['restart-service {"service":"kubelet"}'], "", [START_KUBELET]),
    (
        "runtime-stop",
        FACTS,
        ["sc.exe stop containerd"],
        "containerd",
        [START_RUNTIME],
    ),
    (
        "runtime-stop",
        BOTH,
        ['stop-services {"services":["kubelet"]}', "sc.exe stop containerd"],
        "kubelet",
        [START_RUNTIME, START_KUBELET],
    ),
]


@pytest.mark.parametrize(("name", "facts", "inject", "failsafe", "undo"), TABLE)
def test_commands(name: str, facts: dict[str, Any], inject: list[str], failsafe: str, undo: list[str]) -> None:
    described = describe(name, {}, target(facts))
    assert (described.inject, described.undo) == (inject, undo)
    assert described.disarm == ("nodefall-run-step" if failsafe else "")
    assert described.failsafe.startswith("nodefall-run-step after 300s: " if failsafe else "")
    assert (f'failsafe-start-service {{"service":"{failsafe}"}}' in described.failsafe) is bool(failsafe)
    assert described.proof == ([*(step.partition(" unless ")[2] for step in undo), READY] if undo else [])


def failsafe_line() -> str:
    """Of kubelet-stop."""
    action = WINDOWS_ACTIONS["kubelet-stop"]
    timer = action.program(prepare("kubelet-stop", {}, target(FACTS))).failsafe
    assert timer is not None
    return " ".join(map(quote_argument, timer.argv))


def test_the_failsafe_task_starts_a_service_that_cannot_be_started_yet() -> None:
    host = WindowsHost()
    host.run("sc.exe stop kubelet")
    host.wait(30.0)
    kubelet = host.machine.services.get("kubelet")
    host.configure("kubelet", "disabled")
    task = host.start(failsafe_line(), cmd=False).task
    host.wait(60.0)
    assert (kubelet.is_running, task.done()) == (False, False)
    host.configure("kubelet", "auto")
    host.wait(60.0)
    assert kubelet.is_running
    assert task.result() == 0


def test_the_failsafe_task_gives_up_until_the_next_boot() -> None:
    host = WindowsHost()
    host.run("sc.exe stop kubelet")
    host.configure("kubelet", "disabled")
    assert host.run(failsafe_line(), cmd=False)[0] == 1
    assert not host.machine.services.get("kubelet").is_running


@pytest.mark.parametrize("missing", ["runtime-unit", "kubelet-dependencies", "kubelet-unit"])
def test_a_runtime_is_not_stopped_without_its_facts(missing: str) -> None:
    facts = {name: value for name, value in BOTH.items() if name != missing}
    with pytest.raises(Unsupported, match=missing):
        prepare("runtime-stop", {}, target(facts))


@pytest.mark.parametrize("name", ["kubelet-stop", "kubelet-start", "kubelet-restart"])
def test_a_kubelet_that_is_no_service_is_refused(name: str) -> None:
    with pytest.raises(Unsupported, match="kubelet-unit"):
        prepare(name, {}, target({}))


def command(name: str) -> HostCommand:
    action = WINDOWS_ACTIONS[name]
    found = action.program(prepare(name, {}, target(FACTS))).commands[-1]
    assert isinstance(found, HostCommand)
    return found


CODES = [
    ("kubelet-stop", 0, "accepted"),
    ("kubelet-stop", 1062, "accepted"),
    ("kubelet-stop", 1051, "no effect"),
    ("kubelet-stop", 1060, "no effect"),
    ("kubelet-stop", 1061, "no effect"),
    ("kubelet-stop", 1053, "undecided"),
    ("kubelet-stop", 5, "failed"),
    ("kubelet-start", 1056, "accepted"),
    ("kubelet-start", 1058, "no effect"),
    ("kubelet-start", 1053, "undecided"),
]


@pytest.mark.parametrize("over_ssh", [False, True])
@pytest.mark.parametrize(("name", "code", "expected"), CODES)
def test_codes_of_the_service_control_manager(name: str, code: int, expected: str, over_ssh: bool) -> None:
    """The word before the code is translated, as FEHLER in German. Over SSH the exit code may be 1."""
    sent = command(name)
    outcome = Outcome(
        Delivery.ANSWERED,
        min(code, 1) if over_ssh else code,
        f"[SC] ControlService FEHLER {code}:\r\n\r\nText\r\n" if code else "",
    )
    found = {
        "accepted": is_success(sent, outcome),
        "no effect": had_no_effect(sent, outcome),
        "undecided": bool(undecided_answer(sent, outcome)),
    }
    assert [word for word, holds in found.items() if holds] == ([expected] if expected != "failed" else [])


@pytest.mark.parametrize("service", ["lsass", "kubelet;calc", "kubelet' -Force;'", "", "-kubelet"])
@pytest.mark.parametrize("name", ["kubelet-stop", "runtime-stop"])
def test_a_state_names_no_other_service(name: str, service: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        WINDOWS_ACTIONS[name].decode_state({"service": service, "tag": "a", "seconds": 1.0})
