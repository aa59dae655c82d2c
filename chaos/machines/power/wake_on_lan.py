"""Wake-on-LAN: a magic packet (AMD's Magic Packet Technology, publication 20213) only powers a machine on."""

from __future__ import annotations

import socket
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.field_types import full_match
from chaos.core.ports import ON
from chaos.machines.driver import PowerDriver

REPEATS = 3  # a datagram may be lost, and a second one does no harm
MacAddress = Annotated[
    str, full_match(r"[0-9A-Fa-f]{2}([:-]?[0-9A-Fa-f]{2}){5}", "is not a MAC address; write 52:54:00:12:34:56")
]


class WakeOnLanPower(PowerSettings):
    kind: Literal["wake-on-lan"] = Field(description="A magic packet, which can only power the machine on.")
    mac: MacAddress = Field(description="The MAC address of the network card.")
    broadcast: str = Field("255.255.255.255", description="The address to which the packet is sent.")
    port: StrictInt = Field(9, ge=1, le=65535, description="The port to which the packet is sent.")


def make_wake_on_lan_control(power: WakeOnLanPower) -> WakeOnLanControl:
    """Power control of one machine."""
    return WakeOnLanControl(power)


def magic_packet(mac: str) -> bytes:
    """The magic packet: six bytes of ones, then the address sixteen times."""
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "").replace("-", "")) * 16


class WakeOnLanControl:
    """Implements ``chaos.core.ports.PowerControl``. The packet has no reply, so the state is never known."""

    capabilities = ON

    def __init__(self, power: WakeOnLanPower) -> None:
        self._power = power

    def state(self) -> PowerState:
        """Raises NodefallError."""
        raise NodefallError(
            "power state is unknown: Wake-on-LAN cannot read it", hint="give the host a power control that can"
        )

    def on(self) -> None:
        """Send the packets; returns when they are on the wire. Only the host itself can show whether it woke up."""
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
                f"magic packet could not be sent to {self._power.broadcast}: {error.strerror or error}",
                hint="check broadcast of power in the inventory",
            ) from error

    def off(self) -> None:
        """Raises Refused."""
        raise Refused("Wake-on-LAN cannot cut power", hint="give the host a power control that can")


DRIVER = PowerDriver("wake-on-lan", WakeOnLanPower, lambda power, _: make_wake_on_lan_control(power))
