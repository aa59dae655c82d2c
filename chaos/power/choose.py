"""The power control that an inventory names."""

from __future__ import annotations

from collections.abc import Callable

from chaos.model.inventory import CommandPower, DockerPower, IpmiPower, ManualPower, Power, RedfishPower, WakePower
from chaos.model.ports import PowerControl
from chaos.power.command import command
from chaos.power.docker import DockerControl
from chaos.power.ipmi import ipmi
from chaos.power.manual import manual
from chaos.power.redfish import redfish
from chaos.power.secrets import Place
from chaos.power.wake import wake
from chaos.transports.containers import Container


def power_control(
    power: Power, host: str, place: Place, container: Callable[[str | None, str | None], Container]
) -> PowerControl:
    """Of ``host``; ``container`` finds one by name and engine. Raises Refused for what cannot be used here."""
    match power:
        case RedfishPower():
            return redfish(power, place)
        case IpmiPower():
            return ipmi(power, place)
        case DockerPower():
            return DockerControl(container(power.container, power.engine))
        case CommandPower():
            return command(power, place)
        case ManualPower():
            return manual(power, host)
        case WakePower():
            return wake(power)
