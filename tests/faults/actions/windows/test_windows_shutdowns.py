"""Windows forms of the actions that take a machine down: commands, refusals, undo, exit codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.command import Delivery, HostCommand, Outcome, PowerCapability, had_no_effect, is_success, refusal
from chaos.core.encoded_script import decode_script
from chaos.core.errors import Unsupported
from chaos.faults.actions.windows.shutdown import CANCEL, shut_down
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from chaos.faults.readings.windows.shutdown_requests import abort_own_words
from tests.kit.actionkit import ActionDescription, action_for, describe, prepare

TOOL = r"C:\Tools\notmyfault64.exe"
FACTS: dict[str, Any] = {
    "scheduled-shutdown": NO_SHUTDOWN_SCHEDULED,
    "preparing-for-shutdown": "b false",
    "kubelet-state": "active",
    "boot-posted": True,
    "crash-auto-reboot": True,
}


def target(power: str = "redfish", **facts: Any) -> Target:
    named = {name.replace("_", "-"): value for name, value in facts.items()}
    return Target("n1", "windows", power=power, facts=FACTS | named, tag="run-do", run="run", crash_tool=TOOL)


def shutdown(option: str, seconds: int = 0) -> str:
    return f"shutdown.exe {option} /f /t {seconds} /d p:4:1 /c 'nodefall run-do'"


ON = "power on unless the machine is on"
ON_WITHOUT_STATE = "power on unless no shutdown is in progress"
UP = [
    "no shutdown is in progress",
    "the kubelet is active",
    "the Node object has the current boot ID",
    "the node is Ready",
]
NONE_PENDING = [f"scheduled-shutdown is {NO_SHUTDOWN_SCHEDULED}"]
OWN = "nodefall-shutdown?tag=run-do is"
ABORT = f"shutdown.exe /a unless {OWN} False when {OWN} True"
CRASH = rf"'{TOOL}' /accepteula /crash"
RESET = f"power off unless {UP[0]}"
WITHOUT_STATE = replace(target("manual"), power_capabilities=frozenset({PowerCapability.ON, PowerCapability.OFF}))
TABLE = [
    ("poweroff", {}, target(), [shutdown("/s")], NONE_PENDING, [ON], ["the machine is on", *UP]),
    ("reboot", {}, target(), [shutdown("/r")], NONE_PENDING, [ON], UP),
    ("reboot", {}, target(""), [shutdown("/r")], NONE_PENDING, [], UP),
    ("cancel-shutdown", {}, target(""), ["shutdown.exe /a"], ["nodefall-shutdown?run=run is True"], [], [UP[-1]]),
    ("hard-reboot", {}, target(), ["power off", "power on"], [], [ON], UP),
    ("hard-reboot", {}, WITHOUT_STATE, ["power off", "power on"], [], [ON_WITHOUT_STATE], UP),
    ("power-cut", {}, target(), ["power off"], [], [ON], ["the machine is on", *UP]),
    ("power-on", {}, target(), ["power on"], [], [], []),
    ("kernel-crash", {}, target(), [CRASH], [], [RESET, ON], UP),
    ("kernel-crash", {}, target(crash_auto_reboot=False), [CRASH], [], [RESET, ON], UP),
    ("kernel-crash", {}, WITHOUT_STATE, [CRASH], [], [RESET, ON_WITHOUT_STATE], UP),
    ("kernel-crash", {}, target(""), [CRASH], [], [], UP),
    (
        *("schedule-shutdown", {"in": "2m", "fires": True}, target(), [shutdown("/s", 120)], NONE_PENDING),
        *([ON, ABORT], [f"{OWN} False", "the machine is on", *UP]),
    ),
]


@pytest.mark.parametrize(("action", "given", "where", "inject", "preconditions", "undo", "proof"), TABLE)
def test_what_is_sent(
    action: str,
    given: dict[str, Any],
    where: Target,
    inject: list[str],
    preconditions: list[str],
    undo: list[str],
    proof: list[str],
) -> None:
    assert describe(action, given, where) == ActionDescription(inject, preconditions, "", undo, proof, "")


def test_a_shutdown_that_may_not_happen_is_cancelled_by_the_host() -> None:
    """By a task that cancels only the step's own: somebody else may have scheduled one meanwhile."""
    found = describe("schedule-shutdown", {"in": "60s"}, target(""))
    assert (found.inject, found.undo) == ([shutdown("/s", 60)], [ABORT])
    assert found.proof == [f"{OWN} False", *UP]
    assert found.disarm == "nodefall-run-do"
    state = prepare("schedule-shutdown", {"in": "60s"}, target(""))
    timer = action_for("schedule-shutdown", target()).program(state).failsafe
    assert timer is not None
    assert (timer.unit, timer.seconds, timer.argv) == ("nodefall-run-do", 55.0, abort_own_words("run-do"))
    assert decode_script(timer.argv).endswith('"comment":"nodefall run-do"}')


ALREADY = "shutdown.exe for NT AUTHORITY\\SYSTEM: Update"
NO_OFF = replace(target(), power_capabilities=frozenset({PowerCapability.ON}))
REFUSED = [
    ("poweroff", {}, target(""), "could not be powered on again after poweroff"),
    ("poweroff", {"force": True}, target(), "only after it has notified its services"),
    ("poweroff", {"wake": "5m"}, target(), "no alarm of its clock"),
    ("power-cut", {"how": "sysrq"}, target(), "has no SysRq"),
    ("power-cut", {}, target(""), "no power control to cut its power with"),
    ("power-cut", {}, NO_OFF, "cannot power it off"),
    ("hard-reboot", {}, target(""), "reboots without a shutdown only by a power control"),
    ("hard-reboot", {}, NO_OFF, "cannot power it off"),
    ("schedule-shutdown", {"fires": True}, target(""), "could not be powered on again"),
    ("kernel-crash", {}, replace(target(), crash_tool=""), "no command that crashes it"),
    ("kernel-crash", {}, target("", crash_auto_reboot=False), "AutoReboot of CrashControl is 0"),
    *(
        (action, {}, target(scheduled_shutdown=ALREADY), "has a shutdown pending (shutdown.exe for NT AUTHORITY")
        for action in ("poweroff", "reboot", "schedule-shutdown")
    ),
    *(
        (action, {}, replace(target(), facts={}, unknown={"scheduled-shutdown": "no log"}), "no log")
        for action in ("poweroff", "reboot", "schedule-shutdown")
    ),
]


@pytest.mark.parametrize(("action", "given", "where", "why"), REFUSED)
def test_refused_before_the_fault(action: str, given: dict[str, Any], where: Target, why: str) -> None:
    with pytest.raises(Unsupported) as refused:
        prepare(action, given, where)
    assert why in refused.value.message


@pytest.mark.parametrize("code", [1115, 1190, 1717, 5, 1314])
@pytest.mark.parametrize("over_ssh", [False, True])
def test_a_refused_shutdown_is_explained_and_leaves_nothing_to_undo(code: int, over_ssh: bool) -> None:
    """Its text is translated. Over SSH the code may be only in that text."""
    command = shut_down("/s", 0, "run-do")
    outcome = Outcome(Delivery.ANSWERED, 1 if over_ssh else code, stderr=f"Das System wird heruntergefahren.({code})\n")
    assert not is_success(command, outcome)
    assert refusal(command, outcome)
    assert had_no_effect(command, outcome)


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (shut_down("/s", 0, "run-do"), Outcome(Delivery.ANSWERED, 0)),
        (shut_down("/s", 0, "run-do"), Outcome(Delivery.LOST)),
        (shut_down("/s", 0, "run-do"), Outcome(Delivery.LOST, 1190)),
        (shut_down("/s", 0, "run-do"), Outcome(Delivery.ANSWERED, 1, stderr="(119)")),
        (shut_down("/s", 0, "run-do"), Outcome(Delivery.ANSWERED, 2, stderr="(1190)")),
        (CANCEL, Outcome(Delivery.ANSWERED, 1190)),
        (HostCommand(("shutdown", "-c")), Outcome(Delivery.ANSWERED, 1116)),
    ],
)
def test_no_refusal(command: HostCommand, outcome: Outcome) -> None:
    assert not refusal(command, outcome)
    assert not had_no_effect(command, outcome)


@pytest.mark.parametrize("code", [1115, 1116, 1717])
def test_a_cancellation_after_the_countdown_names_the_reason(code: int) -> None:
    """The pre-shutdown notice cannot be taken back: AbortSystemShutdown works only until the timer expires."""
    assert "only until its countdown is over" in refusal(CANCEL, Outcome(Delivery.ANSWERED, code))


def test_a_lost_connection_is_expected_only_where_the_machine_goes_at_once() -> None:
    assert [shut_down("/s", seconds, "run-do").ends_session for seconds in (0, 60)] == [True, False]
