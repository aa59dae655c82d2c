"""Wake-on-LAN: a magic packet (AMD's Magic Packet Technology, publication 20213) wakes a machine, and that is all."""

from __future__ import annotations

import socket

from chaos.model.errors import NodefallError, Refused, Unreachable
from chaos.model.inventory import WakeOnLanPower
from chaos.model.ports import ON

REPEATS = 3  # a datagram may be lost, and a second one does no harm


def make_wake_on_lan_control(power: WakeOnLanPower) -> WakeOnLanControl:
    """The power control of one machine."""
    return WakeOnLanControl(power)


def magic_packet(mac: str) -> bytes:
    """Six bytes of ones, then sixteen times the address."""
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "").replace("-", "")) * 16


class WakeOnLanControl:
    """Implements ``chaos.model.ports.PowerControl``; nobody answers, so it never knows the state."""

    capabilities = ON

    def __init__(self, power: WakeOnLanPower) -> None:
        self._power = power

    def state(self) -> str:
        raise NodefallError(
            "Wake-on-LAN cannot tell whether a machine is on", hint="give its host a power control that can"
        )

    def on(self) -> None:
        """Done when the packets are on the wire; whether it wakes, only the host itself can tell."""
        packet = magic_packet(self._power.mac)
        family = socket.AF_INET6 if ":" in self._power.broadcast else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                if family == socket.AF_INET:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                for _ in range(REPEATS):
                    sock.sendto(packet, (self._power.broadcast, self._power.port))
        except OSError as error:
            raise Unreachable(
                f"no magic packet could be sent to {self._power.broadcast}: {error.strerror or error}",
                hint="see broadcast of power in the inventory",
            ) from error

    def off(self) -> None:
        raise Refused("Wake-on-LAN can only wake a machine", hint="give its host a power control that can cut power")
