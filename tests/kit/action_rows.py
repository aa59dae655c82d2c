"""Rows of tests of actions: what they send, refuse and undo; and what a lab must be for their contract."""

from __future__ import annotations

from typing import Any

from tests.kit.actionkit import BARE, NODE, STATIC

Row = tuple[Any, ...]
# Settings of the labs on which actions are tried that need others than those of hosts/lab.yaml.
LABS: dict[str, dict[str, Any]] = {}
# Actions that a lab refuses, and a part of the reason.
# The lab's hosts share one clock.
REFUSED_BY_LAB = {
    "cancel-shutdown-in-flight": "has systemd 252, which answers 0 and still goes down",
    "clock-skew": "the fact clock-skew is not known",
    "etcd-leader-kill": "there is no /etc/kubernetes/manifests/etcd.yaml",
}
WITH_ETCD = ("etcd-leader-kill",)  # for labs with three control planes, on the leader
# What must have happened before.
_CUT = {"name": "first", "action": "power-cut", "target": "victim"}
FIRST = {"out-of-service": _CUT, "power-on": _CUT}

UP = "preparing-for-shutdown is b false"

# action, with, node -> commands
SENT: list[Row] = [
    ("poweroff", {}, NODE, ["systemctl poweroff"]),
    ("poweroff", {"force": True}, NODE, ["systemctl poweroff --force --force"]),
    ("reboot", {}, BARE, ["systemctl reboot"]),
    ("power-cut", {}, NODE, ["power off"]),
    ("power-on", {}, NODE, ["power on"]),
    ("cancel-shutdown", {}, BARE, ["shutdown -c"]),
    (
        "schedule-shutdown",
        {"in": "2m"},
        BARE,
        ["shutdown -P +2"],
    ),
    ("schedule-shutdown", {"fires": True}, NODE, ["shutdown -P +1"]),
    (
        "prepare-for-shutdown",
        {"active": True},
        NODE,
        ["busctl emit /org/freedesktop/login1 org.freedesktop.login1.Manager PrepareForShutdown b true"],
    ),
    (
        "prepare-for-shutdown",
        {"active": False},
        BARE,
        ["busctl emit /org/freedesktop/login1 org.freedesktop.login1.Manager PrepareForShutdown b false"],
    ),
]
# action, with, node -> part of the refusal
REFUSED: list[Row] = [
    ("poweroff", {}, BARE, "could not be powered on again"),
    ("power-cut", {}, BARE, "no power control"),
    ("power-on", {}, BARE, "no power control"),
    ("schedule-shutdown", {"fires": True}, BARE, "could not be powered on again"),
    ("prepare-for-shutdown", {"active": True}, STATIC, "static pods (etcd-n1)"),
]
INVALID: list[Row] = [
    ("poweroff", {"now": True}),
    ("schedule-shutdown", {"in": "90s"}),
    ("schedule-shutdown", {"in": "0s"}),
    ("schedule-shutdown", {"in": "soon"}),
    ("prepare-for-shutdown", {}),
    ("prepare-for-shutdown", {"active": "perhaps"}),
    ("partition", {"from": "the-moon"}),
]
# action, with, node -> undo steps as "command unless check", proofs
UNDONE: list[Row] = [
    (
        "poweroff",
        {},
        NODE,
        ["power on unless machine is on"],
        ["machine is on", UP, "node-ready is True"],
    ),
    ("reboot", {}, BARE, [], [UP, "node-ready is True"]),
    ("power-on", {}, NODE, [], []),
    (
        "prepare-for-shutdown",
        {"active": True},
        NODE,
        [
            (
                "busctl emit /org/freedesktop/login1 org.freedesktop.login1.Manager PrepareForShutdown b false "
                "unless node-ready is True"
            ),
            "systemctl restart k3s.service unless inhibitor-kubelet is True",
        ],
        ["node-ready is True", "inhibitor-kubelet is True"],
    ),
    (
        "schedule-shutdown",
        {},
        BARE,
        ['shutdown -c unless scheduled-shutdown is (st) "" 18446744073709551615'],
        [
            'scheduled-shutdown is (st) "" 18446744073709551615',
            "preparing-for-shutdown is b false",
            "node-ready is True",
        ],
    ),
]
# reference of a fact that an action declares, output -> value, or ValueError
PARSED: list[Row] = []
