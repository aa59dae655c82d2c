"""How a machine is powered on again, by capabilities of its power control and its restart policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.core.ports import ON, ON_OFF
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED, POWERS_OFF
from tests.kit.actionkit import ActionDescription, describe

FACTS = {"shared-kernel": False, "power-key": POWERS_OFF, "rtc": True, "configz": {"shutdownGracePeriod": "30s"}}
BARE = Target("n1", facts=FACTS, tag="run-do")
DOCKER = replace(BARE, power="power", restart_policy="on-failure:1")
STEADY = replace(BARE, power="power", restart_policy="no")
# A stock node of kind: no logind. A check that is impossible before the fault is not required after it.
WITHOUT_LOGIND = replace(
    DOCKER, facts=FACTS | {"kubelet-state": "active"}, unknown={"preparing-for-shutdown": "no D-Bus"}
)
WAKE = replace(BARE, power="power", power_capabilities=ON)
PERSON = replace(BARE, power="power", power_capabilities=ON_OFF)
UP = ["no shutdown is in progress", "the node is Ready"]
KEEP_OFF, RESTORE_POLICY = (
    "power restart-policy no",
    "power restart-policy on-failure:1 unless restart-policy is on-failure:1",
)
POLICY = "restart-policy is on-failure:1"
ON_UNLESS, ON_UNTIL_UP = "power on unless the machine is on", f"power on unless {UP[0]}"
IDLE = f"scheduled-shutdown is {NO_SHUTDOWN_SCHEDULED}"
CANCEL = f"shutdown -c unless {IDLE}"
OFF, SOON = "systemctl poweroff", "shutdown -P +1"

TABLE: list[tuple[str, dict[str, Any], Target, list[str], list[str], list[str]]] = [
    ("poweroff", {}, STEADY, [OFF], [ON_UNLESS], ["the machine is on", *UP]),
    ("poweroff", {}, DOCKER, [KEEP_OFF, OFF], [ON_UNLESS, RESTORE_POLICY], ["the machine is on", *UP, POLICY]),
    ("poweroff", {}, WAKE, [OFF], [ON_UNTIL_UP], UP),
    ("poweroff", {}, PERSON, [OFF], [ON_UNTIL_UP], UP),
    ("poweroff", {}, BARE, ["rtcwake -m no -s 240", OFF], [], UP),
    ("poweroff", {"wake": "90s"}, BARE, ["rtcwake -m no -s 90", OFF], [], UP),
    ("power-cut", {}, DOCKER, [KEEP_OFF, "power off"], [ON_UNLESS, RESTORE_POLICY], ["the machine is on", *UP, POLICY]),
    ("power-cut", {}, WITHOUT_LOGIND, [KEEP_OFF, "power off"], [ON_UNLESS, RESTORE_POLICY],
     ["the machine is on", "the kubelet is active", "the node is Ready", POLICY]),
    ("power-button", {}, STEADY, ["power soft-off"], [ON_UNLESS],
     ["machine-stopping is False", "the machine is on", *UP]),
    ("power-cut", {}, PERSON, ["power off"], [ON_UNTIL_UP], UP),
    ("schedule-shutdown", {"fires": True}, DOCKER, [KEEP_OFF, SOON], [ON_UNLESS, RESTORE_POLICY, CANCEL],
     [IDLE, "the machine is on", *UP, POLICY]),
    ("schedule-shutdown", {}, DOCKER, [SOON], [ON_UNLESS, CANCEL], [IDLE, *UP]),
    ("schedule-shutdown", {}, WAKE, [SOON], [CANCEL], [IDLE, *UP]),
    ("reboot", {}, DOCKER, ["systemctl reboot"], [ON_UNLESS], UP),
    ("reboot", {}, PERSON, ["systemctl reboot"], [], UP),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "node", "send", "undo", "proof"), TABLE)
def test_inject_and_undo(
    name: str, given: dict[str, Any], node: Target, send: list[str], undo: list[str], proof: list[str]
) -> None:
    found: ActionDescription = describe(name, given, node)
    assert (found.inject, found.undo, found.proof) == (send, undo, proof)


REFUSED: list[tuple[str, dict[str, Any], Target, str]] = [
    ("power-button", {}, PERSON, "n1 has a power control that cannot ask it to shut down"),
    ("power-button", {}, BARE, "n1 has no power control that asks it to shut down"),
    ("power-cut", {}, WAKE, "has a power control that cannot power it off"),
    ("power-cut", {}, BARE, "has no power control"),
    ("schedule-shutdown", {"fires": True}, BARE, "could not be powered on again"),
    ("poweroff", {"wake": "80s"}, BARE, "may still be shutting down when its clock wakes it after 80 s"),
    ("poweroff", {}, replace(BARE, facts=FACTS | {"rtc": False}), "no real-time clock with an alarm"),
    ("poweroff", {}, replace(BARE, facts=FACTS | {"shared-kernel": True}), "no real-time clock with an alarm"),
    ("poweroff", {}, replace(BARE, facts={"rtc": True}), "no real-time clock with an alarm"),
    ("poweroff", {}, replace(BARE, facts={}, unknown={"rtc": "the connection was lost"}), "the connection was lost"),
]


@pytest.mark.parametrize(
    ("name", "given"),
    [("poweroff", {}), ("power-button", {}), ("power-cut", {}), ("schedule-shutdown", {"fires": True})],
)
def test_a_power_control_that_cannot_be_used_is_the_reason(name: str, given: dict[str, Any]) -> None:
    """A wrong password must not read as a machine without a clock, or without a power control."""
    why, hint = "the power control of n1: IPMI at bmc-1 rejected the login of ops", "correct the password"
    broken = replace(BARE, facts=FACTS | {"rtc": False}, power_error=why, power_hint=hint)
    with pytest.raises(Unsupported) as caught:
        describe(name, given, broken)
    assert (caught.value.message, caught.value.hint) == (why, hint)


@pytest.mark.parametrize("key", ['s "ignore"', 's "suspend"', 's "reboot"'])
def test_a_power_button_that_does_something_else(key: str) -> None:
    node = replace(STEADY, facts=FACTS | {"power-key": key})
    with pytest.raises(
        Unsupported, match=f"does not power off when its power button is pressed: HandlePowerKey is {key}"
    ):
        describe("power-button", {}, node)


def test_a_clock_that_wakes_the_machine_needs_no_power_control() -> None:
    assert "rtcwake -m no -s 240" in describe("poweroff", {}, replace(BARE, power_error="wrong password")).inject


@pytest.mark.parametrize(("name", "given", "node", "why"), REFUSED)
def test_refusals(name: str, given: dict[str, Any], node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as caught:
        describe(name, given, node)
    assert "power control" in caught.value.hint
