"""Drive C of a Windows machine."""

from __future__ import annotations

from typing import NamedTuple

from chaos.lab.node.kubelet.node_status import CAPACITY
from chaos.lab.objects.quantity import parse_quantity
from chaos.lab.windows.machine import WindowsMachine

_FREE, _FREE_UNDER_PRESSURE = 0.75, 0.05  # of the size; invented


class Disk(NamedTuple):
    """Bytes."""

    size: int
    free: int


def disk_of(machine: WindowsMachine) -> Disk:
    """Size by the node's ephemeral-storage; little is free under disk pressure."""
    size = int(parse_quantity((CAPACITY | machine.spec.capacity)["ephemeral-storage"]))
    return Disk(size, int(size * (_FREE_UNDER_PRESSURE if "disk" in machine.pressure else _FREE)))


def memory_of(machine: WindowsMachine) -> int:
    """Bytes of memory."""
    return int(parse_quantity((CAPACITY | machine.spec.capacity)["memory"]))
