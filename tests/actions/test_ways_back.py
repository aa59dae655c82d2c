"""How a machine comes back, by what its power control can and what would bring it back by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.facts.login1 import NO_SHUTDOWN_SCHEDULED
from chaos.model.action import Target
from chaos.model.errors import Unsupported
from chaos.model.ports import ON, ON_OFF
from tests.kit.actionkit import Told, told

FACTS = {"shared-kernel": False, "rtc": True, "configz": {"shutdownGracePeriod": "30s"}}
BARE = Target("n1", facts=FACTS, tag="run-do")
DOCKER = replace(BARE, power="power", restart_policy="on-failure:1")
STEADY = replace(BARE, power="power", restart_policy="no")
# A stock node of kind: no logind. What cannot be said before the fault is not asked for after it.
MUTE = replace(DOCKER, facts=FACTS | {"kubelet-state": "active"}, unknown={"preparing-for-shutdown": "no D-Bus"})
WAKE = replace(BARE, power="power", power_capabilities=ON)
PERSON = replace(BARE, power="power", power_capabilities=ON_OFF)
UP = ["preparing-for-shutdown is b false", "node-ready is True"]
HOLD, PUT_BACK = "power restart-policy no", "power restart-policy on-failure:1 unless restart-policy is on-failure:1"
POLICY = "restart-policy is on-failure:1"
ON_UNLESS, BLIND = "power on unless machine is on", f"power on unless {UP[0]}"
IDLE = f"scheduled-shutdown is {NO_SHUTDOWN_SCHEDULED}"
CANCEL = f"shutdown -c unless {IDLE}"
OFF, SOON = "systemctl poweroff", "shutdown -P +1"

TABLE: list[tuple[str, dict[str, Any], Target, list[str], list[str], list[str]]] = [
    ("poweroff", {}, STEADY, [OFF], [ON_UNLESS], ["machine is on", *UP]),
    ("poweroff", {}, DOCKER, [HOLD, OFF], [ON_UNLESS, PUT_BACK], ["machine is on", *UP, POLICY]),
    ("poweroff", {}, WAKE, [OFF], [BLIND], UP),
    ("poweroff", {}, PERSON, [OFF], [BLIND], UP),
    ("poweroff", {}, BARE, ["rtcwake -m no -s 240", OFF], [], UP),
    ("poweroff", {"wake": "90s"}, BARE, ["rtcwake -m no -s 90", OFF], [], UP),
    ("power-cut", {}, DOCKER, [HOLD, "power off"], [ON_UNLESS, PUT_BACK], ["machine is on", *UP, POLICY]),
    ("power-cut", {}, MUTE, [HOLD, "power off"], [ON_UNLESS, PUT_BACK],
     ["machine is on", "kubelet-state is active", "node-ready is True", POLICY]),
    ("power-cut", {}, PERSON, ["power off"], [BLIND], UP),
    ("schedule-shutdown", {"fires": True}, DOCKER, [HOLD, SOON], [ON_UNLESS, PUT_BACK, CANCEL],
     [IDLE, "machine is on", *UP, POLICY]),
    ("schedule-shutdown", {}, DOCKER, [SOON], [ON_UNLESS, CANCEL], [IDLE, *UP]),
    ("schedule-shutdown", {}, WAKE, [SOON], [CANCEL], [IDLE, *UP]),
    ("reboot", {}, DOCKER, ["systemctl reboot"], [ON_UNLESS], UP),
    ("reboot", {}, PERSON, ["systemctl reboot"], [], UP),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "node", "send", "undo", "proof"), TABLE)
def test_what_is_sent_and_taken_back(
    name: str, given: dict[str, Any], node: Target, send: list[str], undo: list[str], proof: list[str]
) -> None:
    found: Told = told(name, given, node)
    assert (found.send, found.undo, found.proof) == (send, undo, proof)


REFUSED: list[tuple[str, dict[str, Any], Target, str]] = [
    ("power-cut", {}, WAKE, "has a power control that cannot power it off"),
    ("power-cut", {}, BARE, "has no power control"),
    ("schedule-shutdown", {"fires": True}, BARE, "could not be powered on again"),
    ("poweroff", {"wake": "80s"}, BARE, "may still be shutting down when its clock wakes it after 80s"),
    ("poweroff", {}, replace(BARE, facts=FACTS | {"rtc": False}), "no clock with an alarm of its own"),
    ("poweroff", {}, replace(BARE, facts=FACTS | {"shared-kernel": True}), "no clock with an alarm of its own"),
    ("poweroff", {}, replace(BARE, facts={"rtc": True}), "no clock with an alarm of its own"),
    ("poweroff", {}, replace(BARE, facts={}, unknown={"rtc": "the line was lost"}), "the line was lost"),
]


@pytest.mark.parametrize(("name", "given", "node", "why"), REFUSED)
def test_refusals_name_what_is_missing(name: str, given: dict[str, Any], node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as caught:
        told(name, given, node)
    assert "power control" in caught.value.hint
