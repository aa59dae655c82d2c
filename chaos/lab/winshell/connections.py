"""Packets of clients to one port of a Windows machine: blocked by its firewall, they wait, as TCP repeats them.

TCP connections of programs on a Windows node, in the simulated network: only the API server answers.
A node's other ports refuse a connection, and addresses outside the cluster do not answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass

from chaos.lab.node.network import Family
from chaos.lab.sim.time_source import PortReservation
from chaos.lab.windows.firewall import API_PORT
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.process import WinProcess

PEER = "127.0.0.1"  # every client of a lab


class InboundGate:
    """``port``: the one on loopback."""

    def __init__(self, machine: WindowsMachine, port: PortReservation) -> None:
        self._machine, self._port = machine, port
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    def update(self) -> None:
        """Follow the firewall, after a change of the machine."""
        if self._machine.accepts(PEER):
            self._open.set()
            self._port.unblock()
        else:
            self._open.clear()
            self._port.block()

    async def wait(self) -> None:
        """Wait until packets pass."""
        await self._open.wait()


_SYN = (0.0, 3.0, 9.0)  # seconds: Windows doubles the time-out of 3 s twice
_SYN_LIMIT = 21.0
_REFUSED_AFTER = 2.0  # Windows repeats a SYN that was refused; invented: the seconds


@dataclass(frozen=True, slots=True)
class Attempt:
    """A connection attempt to ``address``, begun at ``start`` in simulated seconds."""

    address: str
    port: int
    start: float


def resolve(machine: WindowsMachine, host: str) -> list[str]:
    """Addresses of a node or of a literal; empty for a name that does not resolve."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return list(machine.network.resolve(host).values())


async def connect(process: WinProcess, attempt: Attempt, limit: float) -> str:
    """Wait up to ``limit`` seconds from now: open, refused, silent after all SYNs, or empty if it is not decided."""
    sim = process.host.sim
    deadline = sim.now + limit
    if limit <= 0:
        return ""
    for wait in (*_SYN, _SYN_LIMIT):
        due = attempt.start + wait
        if due > deadline:
            await process.sleep(deadline - sim.now)
            return ""
        if due > sim.now:
            await process.sleep(due - sim.now)
        if wait == _SYN_LIMIT:
            break
        answer = _answer(process.machine, attempt.address, attempt.port)
        if answer == "open":
            return "open"
        if answer == "refused":
            left = min(_REFUSED_AFTER, deadline - sim.now)
            await process.sleep(left)
            return "refused" if left == _REFUSED_AFTER else ""
    return "silent"


def _answer(machine: WindowsMachine, address: str, port: int) -> str:
    """What answers a SYN: open, refused, or nothing."""
    family: Family = "ipv4" if ipaddress.ip_address(address).version == 4 else "ipv6"
    network = machine.network
    if not network.resolve(address) or machine.firewall.blocks("out", address):
        return ""
    if address != network.server_addresses.get(family):
        return "refused"
    if not network.can_connect(family):
        return ""
    return "open" if port == API_PORT else "refused"
