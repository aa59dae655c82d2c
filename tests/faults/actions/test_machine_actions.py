"""Reboots without a shutdown, crashes, shutdowns cancelled in flight, restarts of D-Bus and logind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from tests.kit.actionkit import ActionDescription, describe

FACTS: dict[str, Any] = {
    "shared-kernel": False,
    "panic-timeout": 10,
    "systemd-version": 257,
    "kubelet-unit": "kubelet.service",
    "inhibitor-kubelet": True,
    "bus-processes": {"bus": 1, "logind": 2, "bus-unit": "dbus-broker.service"},
    "inhibitor-holders": ["Network Manager", "kubelet"],
    "inhibitor-units": {"Network Manager": "NetworkManager.service", "kubelet": "kubelet.service"},
}


def target(power: str = "redfish", **facts: Any) -> Target:
    named = {name.replace("_", "-"): value for name, value in facts.items()}
    return Target("n1", power=power, facts=FACTS | named, tag="run-do")


UP = ["no shutdown is in progress", "the node is Ready"]
ON = "power on unless the machine is on"
HELD = "inhibitor-holders is ['Network Manager', 'kubelet']"
LOCKS = [f"systemctl restart {unit}.service unless {HELD}" for unit in ("NetworkManager", "kubelet")]
CRASH = "sh -c 'echo c > /proc/sysrq-trigger'"

REPORTS = [UP[0], "the kubelet is active", "the Node object has the current boot ID", UP[1]]
TABLE = [
    ("hard-reboot", target(), ActionDescription(["systemctl reboot --force --force"], [], "", [ON], UP, "")),
    ("hard-reboot", target(""), ActionDescription(["systemctl reboot --force --force"], [], "", [], UP, "")),
    ("kernel-crash", target(), ActionDescription([CRASH], [], "", [f"power off unless {UP[0]}", ON], UP, "")),
    ("kernel-crash", target(""), ActionDescription([CRASH], [], "", [], UP, "")),
    (
        "hard-reboot",
        target("", kubelet_state="active", boot_posted=True),
        ActionDescription(["systemctl reboot --force --force"], [], "", [], REPORTS, ""),
    ),
    (
        "reboot",
        target("", kubelet_state="active", boot_posted=True),
        ActionDescription(["systemctl reboot"], [], "", [], REPORTS, ""),
    ),
    (
        "reboot",
        target("", kubelet_state="failed", boot_posted=False),
        ActionDescription(["systemctl reboot"], [], "", [], UP, ""),
    ),
    (
        "cancel-shutdown-in-flight",
        target(),
        ActionDescription(
            inject=["shutdown -c"],
            preconditions=["preparing-for-shutdown is b true"],
            failsafe="",
            undo=[
                "systemctl restart kubelet.service unless the node is Ready",
                "systemctl restart kubelet.service unless inhibitor-kubelet is True",
            ],
            proof=["the node is Ready", "inhibitor-kubelet is True"],
            disarm="",
        ),
    ),
    (
        "dbus-restart",
        target(),
        ActionDescription(["systemctl restart dbus-broker.service"], [], "", LOCKS, [HELD, UP[1]], ""),
    ),
    (
        "logind-restart",
        target(),
        ActionDescription(["systemctl restart systemd-logind.service"], [], "", LOCKS, [HELD, UP[1]], ""),
    ),
]


@pytest.mark.parametrize("name", ["reboot", "hard-reboot"])
@pytest.mark.parametrize("policy", ["", "always", "unless-stopped", "on-failure:1"])
def test_a_container_is_rebooted_if_something_starts_it_again(name: str, policy: str) -> None:
    assert describe(name, {}, replace(target(shared_kernel=True), restart_policy=policy)).undo == [ON]


@pytest.mark.parametrize(("name", "node", "expected"), TABLE)
def test_inject_and_undo(name: str, node: Target, expected: ActionDescription) -> None:
    assert describe(name, {}, node) == expected


REBOOTS = ("reboot", "hard-reboot")
CONTAINER = target(shared_kernel=True)
REFUSED = [
    *((name, target("", shared_kernel=True), "is a container, which may stay off") for name in REBOOTS),
    *((name, replace(CONTAINER, restart_policy="no"), "its restart policy is no") for name in REBOOTS),
    *((name, replace(CONTAINER, power_capabilities=frozenset()), "cannot power it on") for name in REBOOTS),
    *((name, Target("n1"), "the fact shared-kernel is not known") for name in REBOOTS),
    ("kernel-crash", target(shared_kernel=True), "it shares its machine's kernel"),
    ("kernel-crash", target("", panic_timeout=0), r"would not boot again after a panic \(kernel.panic is 0\)"),
    ("kernel-crash", target(panic_timeout=0), "would not boot again after a panic"),
    ("kernel-crash", target(panic_timeout=61), "would boot again only 61 s after a panic"),
    ("cancel-shutdown-in-flight", target(systemd_version=252), "exits with 0 but still shuts down"),
    ("dbus-restart", target(inhibitor_units={"kubelet": "kubelet.service"}), "Network Manager holds a lock"),
    (
        "logind-restart",
        target(inhibitor_units={"kubelet": "", "Network Manager": ""}),
        "Network Manager, kubelet holds a lock",
    ),
    ("kernel-crash", Target("n1"), "the fact shared-kernel is not known"),
    ("dbus-restart", Target("n1"), "the fact bus-processes is not known"),
]


@pytest.mark.parametrize(("name", "node", "why"), REFUSED)
def test_refusals(name: str, node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        describe(name, {}, node)
