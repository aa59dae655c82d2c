"""Rows of tests of actions: what they send, refuse and undo; and what a lab must be for their contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.kit.actionkit import BARE, NODE, STATIC

Row = tuple[Any, ...]
# Settings of the labs on which actions are tried that need others than those of hosts/lab.yaml.
LABS: dict[str, dict[str, Any]] = {"swap-off": {"swap": "2Gi", "failSwapOn": False}}
# Actions that a lab refuses, and a part of the reason.
# The lab's hosts share one clock.
REFUSED_BY_LAB = {
    "cancel-shutdown-in-flight": "has systemd 252, which exits with 0 but still shuts down",
    "clock-skew": "the fact clock-skew is not known",
    "etcd-leader-kill": "there is no /etc/kubernetes/manifests/etcd.yaml",
}
WITH_ETCD = ("etcd-leader-kill",)  # for labs with three control planes, on the leader
# What must have happened before.
_CUT = {"name": "first", "action": "power-cut", "target": "victim"}
FIRST = {"out-of-service": _CUT, "power-on": _CUT}

UP = "no shutdown is in progress"
SWAPS = {
    "memory": {"total": 8 << 30, "available": 1 << 30},
    "shared-kernel": False,
    "swap-areas": [["/dev/sda2", 5, 800 << 20], ["/swap/file-1", -1, 0]],
}
SWAPPING = replace(BARE, facts=SWAPS)

# action, with, node -> commands
SENT: list[Row] = [
    ("swap-off", {}, SWAPPING, ["swapoff /dev/sda2 /swap/file-1"]),
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
    ("swap-off", {}, replace(BARE, facts=SWAPS | {"shared-kernel": True}), "it shares swap with its machine"),
    ("swap-off", {}, replace(BARE, facts=SWAPS | {"swap-areas": []}), "has no swap"),
    ("swap-off", {}, replace(BARE, facts=SWAPS | {"swap-areas": [["/a", -1, 900 << 20]]}), "room for 819 MiB"),
    ("swap-off", {}, replace(BARE, facts=SWAPS | {"swap-areas": [["/a\\040(deleted)", -1, 0]]}), "swapon would not"),
    ("poweroff", {}, BARE, "could not be powered on again"),
    ("power-cut", {}, BARE, "no power control"),
    ("power-on", {}, BARE, "no power control"),
    ("schedule-shutdown", {"fires": True}, BARE, "could not be powered on again"),
    ("prepare-for-shutdown", {"active": True}, STATIC, "static pods (etcd-n1)"),
]
INVALID: list[Row] = [
    ("swap-off", {"duration": "soon"}),
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
        "swap-off",
        {},
        SWAPPING,
        [
            "swapon --priority 5 /dev/sda2 unless swap-area?path=%2Fdev%2Fsda2 is 5",
            "swapon --priority -1 /swap/file-1 unless swap-area?path=%2Fswap%2Ffile-1 is -1",
        ],
        ["swap-area?path=%2Fdev%2Fsda2 is 5", "swap-area?path=%2Fswap%2Ffile-1 is -1", "the node is Ready"],
    ),
    (
        "poweroff",
        {},
        NODE,
        ["power on unless the machine is on"],
        ["the machine is on", UP, "the node is Ready"],
    ),
    ("reboot", {}, BARE, [], [UP, "the node is Ready"]),
    ("power-on", {}, NODE, [], []),
    (
        "prepare-for-shutdown",
        {"active": True},
        NODE,
        [
            (
                "busctl emit /org/freedesktop/login1 org.freedesktop.login1.Manager PrepareForShutdown b false "
                "unless the node is Ready"
            ),
            "systemctl restart k3s.service unless inhibitor-kubelet is True",
        ],
        ["the node is Ready", "inhibitor-kubelet is True"],
    ),
    (
        "schedule-shutdown",
        {},
        replace(BARE, facts={**BARE.facts, "nologin": False}),
        [
            'shutdown -c unless scheduled-shutdown is (st) "" 18446744073709551615',
            "rm --force /run/nologin unless nologin is False",
        ],
        [
            'scheduled-shutdown is (st) "" 18446744073709551615',
            "nologin is False",
            "no shutdown is in progress",
            "the node is Ready",
        ],
    ),
    (  # logins were refused before, or it is unknown
        "schedule-shutdown",
        {},
        BARE,
        ['shutdown -c unless scheduled-shutdown is (st) "" 18446744073709551615'],
        [
            'scheduled-shutdown is (st) "" 18446744073709551615',
            "no shutdown is in progress",
            "the node is Ready",
        ],
    ),
]
_SWAPS = "Filename\tType\tSize\tUsed\tPriority\n"
_TWO_AREAS = f"{_SWAPS}/swap/file-1 file\t\t1024\t0\t-2\n/dev/sda2  partition\t2048\t4\t5\n"
# reference of a fact that an action declares, output -> value, or ValueError
PARSED: list[Row] = [
    ("swap-areas", _SWAPS, []),
    ("swap-areas", _TWO_AREAS, [["/dev/sda2", 5, 4096], ["/swap/file-1", -1, 0]]),
    ("swap-areas", "", ValueError),
    ("swap-area?path=/dev/sda2", _TWO_AREAS, 5),
    ("swap-area?path=/swap/file-1", _TWO_AREAS, -1),
    ("swap-area?path=/dev/sdb", _TWO_AREAS, None),
    ("swap-area?path=/dev/sdb", "cat: /proc/swaps: No such file or directory", ValueError),
]
