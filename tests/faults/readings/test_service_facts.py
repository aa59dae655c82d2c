"""Services and processes of a node: output of systemctl and ps."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
PS = "      1 Ss   systemd\n    812 {}  kubelet\n    900 Sl   containerd-shim\n"
GOOD = [
    ("kubelet-state", "ActiveState=active\n", "active"),
    ("runtime-state", "ActiveState=failed\n", "failed"),
    ("runtime-unit", "Id=containerd.service\nLoadState=loaded\nActiveState=active\n", "containerd.service"),
    (
        "runtime-unit",
        "Id=containerd.service\nLoadState=loaded\nActiveState=inactive\n\nId=crio.service\nLoadState=loaded\nActiveState=active\n",
        "crio.service",
    ),
    (
        "kubelet-unit",
        (
            "Id=rke2-server.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\n\n"
            "Id=rke2-agent.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n"
        ),
        "rke2-server.service",
    ),
    (
        "kubelet-unit",
        (
            "Id=kubelet.service\nLoadState=loaded\nActiveState=activating\nUnitFileState=disabled\n\n"
            "Id=k3s.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\n"
        ),
        "kubelet.service",
    ),
    (
        "kubelet-unit",
        (
            "Id=k0scontroller.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n\n"
            "Id=k0sworker.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
        ),
        "k0sworker.service",
    ),
    ("kubelet-process", "1 Ss systemd\n700 Ssl k0s\n812 Tl kubelet\n", {"pid": 812, "stopped": True}),
    ("kubelet-process", PS.format("Ssl"), {"pid": 812, "stopped": False}),
    ("kubelet-process", PS.format("Tsl"), {"pid": 812, "stopped": True}),
    ("kubelet-process", "1 Ss systemd\n30 Sl k3s-agent\n20 Ssl k3s-agent\n", {"pid": 20, "stopped": False}),
    ("kubelet-process", "1 Ss systemd\n", {}),
    ("kubelet-stopped-state", PS.format("T"), True),
    ("kubelet-stopped-state", PS.format("S"), False),
    ("rtc", "alarm: off\n", True),
    ("rtc", "alarm: on  Sat Nov 21 09:00:00 2026\n", True),
    ("rtc", "", False),
]
BAD = [
    ("rtc", "", 255),
    ("kubelet-state", "", 0),
    ("kubelet-state", "ActiveState=active\n", 1),
    ("runtime-unit", "Id=crio.service\nLoadState=not-found\nActiveState=inactive\n", 0),
    ("kubelet-process", "", 127),
    ("kubelet-process", "PID\n", 0),
    ("kubelet-stopped-state", "1 Ss systemd\n", 0),
]


@pytest.mark.parametrize(("name", "stdout", "value"), GOOD)
def test_good(name: str, stdout: str, value: Any) -> None:
    assert FACTS[name].parse(stdout, 0) == value


@pytest.mark.parametrize(("name", "stdout", "code"), BAD)
def test_bad(name: str, stdout: str, code: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        FACTS[name].parse(stdout, code)


LOCKS = (
    '{"type":"a(ssssuu)","data":[[["shutdown","kubelet","why","delay",0,812],["sleep","upower","why","delay",0,5],'
    '["shutdown:sleep","Network Manager","why","delay",0,70]]]}'
)
UNITS = "      1 init.scope\n     70 NetworkManager.service\n    812 kubelet.service\n    900 -\n"
SHOWN = (
    "MainPID=300\nId=dbus.service\nLoadState=loaded\n\nMainPID=0\nId=dbus-broker.service\nLoadState=not-found\n\n"
    "MainPID=310\nId=systemd-logind.service\nLoadState=loaded\n"
)


@pytest.mark.parametrize(
    ("name", "stdout", "code", "value"),
    [
        ("inhibitor-holders", LOCKS, 0, ["Network Manager", "kubelet"]),
        (
            "inhibitor-units",
            f"{LOCKS}\n{UNITS}",
            0,
            {"Network Manager": "NetworkManager.service", "kubelet": "kubelet.service"},
        ),
        (
            "inhibitor-units",
            f"{LOCKS}\n      1 init.scope\n    812 user-0.slice\n",
            0,
            {"Network Manager": "", "kubelet": ""},
        ),
        ("bus-processes", SHOWN, 0, {"bus": 300, "bus-unit": "dbus.service", "logind": 310}),
        ("shared-kernel", "docker\n", 0, True),
        ("shared-kernel", "none\n", 1, False),
        ("panic-timeout", "-1\n", 0, -1),
    ],
)
def test_locks_and_kernels(name: str, stdout: str, code: int, value: Any) -> None:
    assert FACTS[name].parse(stdout, code) == value


@pytest.mark.parametrize(
    ("name", "stdout", "code"),
    [
        ("inhibitor-holders", "", 1),
        ("inhibitor-units", "no bus", 1),
        ("inhibitor-units", "[]\n", 0),
        ("bus-processes", SHOWN.partition("\n\n")[0], 0),
        ("shared-kernel", "", 127),
        ("panic-timeout", "", 1),
        ("panic-timeout", "x", 0),
    ],
)
def test_bad_locks_and_kernels(name: str, stdout: str, code: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        FACTS[name].parse(stdout, code)
