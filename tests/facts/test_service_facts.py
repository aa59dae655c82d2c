"""Services and processes of a node: what systemctl and ps say of them."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.facts
from chaos.model.catalogue import discover
from chaos.model.fact import HostFact

FACTS: dict[str, HostFact] = discover(chaos.facts, "FACT")
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
    ("kubelet-process", PS.format("Ssl"), {"pid": 812, "stopped": False}),
    ("kubelet-process", PS.format("Tsl"), {"pid": 812, "stopped": True}),
    ("kubelet-process", "1 Ss systemd\n30 Sl k3s-agent\n20 Ssl k3s-agent\n", {"pid": 20, "stopped": False}),
    ("kubelet-process", "1 Ss systemd\n", {}),
    ("kubelet-frozen", PS.format("T"), True),
    ("kubelet-frozen", PS.format("S"), False),
]
BAD = [
    ("kubelet-state", "", 0),
    ("kubelet-state", "ActiveState=active\n", 1),
    ("runtime-unit", "Id=crio.service\nLoadState=not-found\nActiveState=inactive\n", 0),
    ("kubelet-process", "", 127),
    ("kubelet-process", "PID\n", 0),
    ("kubelet-frozen", "1 Ss systemd\n", 0),
]


@pytest.mark.parametrize(("name", "stdout", "value"), GOOD)
def test_good(name: str, stdout: str, value: Any) -> None:
    assert FACTS[name].parse(stdout, 0) == value


@pytest.mark.parametrize(("name", "stdout", "code"), BAD)
def test_bad(name: str, stdout: str, code: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        FACTS[name].parse(stdout, code)
