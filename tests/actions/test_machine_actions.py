"""Reboots without a shutdown, crashes, shutdowns cancelled too late, and restarts of what the locks depend on."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.model.action import Target
from chaos.model.errors import Unsupported
from tests.kit.actionkit import Told, told

FACTS: dict[str, Any] = {
    "shared-kernel": False,
    "panic-timeout": 10,
    "systemd-version": 257,
    "kubelet-unit": "kubelet.service",
    "kubelet-inhibitor": True,
    "bus-processes": {"bus": 1, "logind": 2, "bus-unit": "dbus-broker.service"},
    "lock-holders": ["Network Manager", "kubelet"],
    "lock-units": {"Network Manager": "NetworkManager.service", "kubelet": "kubelet.service"},
}


def target(power: str = "redfish", **facts: Any) -> Target:
    named = {name.replace("_", "-"): value for name, value in facts.items()}
    return Target("n1", power=power, facts=FACTS | named, tag="run-do")


UP = ["preparing-for-shutdown is b false", "node-ready is True"]
ON = "power on unless machine is on"
HELD = "lock-holders is ['Network Manager', 'kubelet']"
LOCKS = [f"systemctl restart {unit}.service unless {HELD}" for unit in ("NetworkManager", "kubelet")]
CRASH = "sh -c 'echo c > /proc/sysrq-trigger'"

REPORTS = [UP[0], "kubelet-state is active", "boot-posted is True", UP[1]]
TABLE = [
    ("hard-reboot", target(), Told(["systemctl reboot --force --force"], [], "", [ON], UP, "")),
    ("hard-reboot", target(""), Told(["systemctl reboot --force --force"], [], "", [], UP, "")),
    ("kernel-crash", target(), Told([CRASH], [], "", [f"power off unless {UP[0]}", ON], UP, "")),
    ("kernel-crash", target(""), Told([CRASH], [], "", [], UP, "")),
    (
        "hard-reboot",
        target("", kubelet_state="active", boot_posted=True),
        Told(["systemctl reboot --force --force"], [], "", [], REPORTS, ""),
    ),
    (
        "reboot",
        target("", kubelet_state="active", boot_posted=True),
        Told(["systemctl reboot"], [], "", [], REPORTS, ""),
    ),
    ("reboot", target("", kubelet_state="failed", boot_posted=False), Told(["systemctl reboot"], [], "", [], UP, "")),
    (
        "cancel-shutdown-in-flight",
        target(),
        Told(
            send=["shutdown -c"],
            before=["preparing-for-shutdown is b true"],
            heal="",
            undo=[
                "systemctl restart kubelet.service unless node-ready is True",
                "systemctl restart kubelet.service unless kubelet-inhibitor is True",
            ],
            proof=["node-ready is True", "kubelet-inhibitor is True"],
            disarm="",
        ),
    ),
    ("dbus-restart", target(), Told(["systemctl restart dbus-broker.service"], [], "", LOCKS, [HELD, UP[1]], "")),
    ("logind-restart", target(), Told(["systemctl restart systemd-logind.service"], [], "", LOCKS, [HELD, UP[1]], "")),
]


@pytest.mark.parametrize(("name", "node", "expected"), TABLE)
def test_what_is_done_and_taken_back(name: str, node: Target, expected: Told) -> None:
    assert told(name, {}, node) == expected


REFUSED = [
    ("hard-reboot", target("", shared_kernel=True), "is a container, which may stay off"),
    ("kernel-crash", target(shared_kernel=True), "its kernel is others' too"),
    ("kernel-crash", target("", panic_timeout=0), r"would not boot again after a panic \(kernel.panic is 0\)"),
    ("kernel-crash", target(panic_timeout=0), "would not boot again after a panic"),
    ("kernel-crash", target(panic_timeout=61), "would boot again only 61 s after a panic"),
    ("cancel-shutdown-in-flight", target(systemd_version=252), "answers 0 and goes down all the same"),
    ("dbus-restart", target(lock_units={"kubelet": "kubelet.service"}), "Network Manager holds a lock"),
    (
        "logind-restart",
        target(lock_units={"kubelet": "", "Network Manager": ""}),
        "Network Manager, kubelet holds a lock",
    ),
    ("kernel-crash", Target("n1"), "the fact shared-kernel is not known"),
    ("dbus-restart", Target("n1"), "the fact bus-processes is not known"),
]


@pytest.mark.parametrize(("name", "node", "why"), REFUSED)
def test_refusals(name: str, node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        told(name, {}, node)
