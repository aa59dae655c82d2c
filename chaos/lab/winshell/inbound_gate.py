"""Packets of clients to one port of a Windows machine: blocked by its firewall, they wait, as TCP repeats them."""

from __future__ import annotations

import asyncio

from chaos.lab.sim.ports import PortReservation
from chaos.lab.windows.machine import WindowsMachine

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
