"""The power control that an inventory names."""

from __future__ import annotations

from collections.abc import Callable

from chaos.model.inventory import CommandPower, DockerPower, IpmiPower, ManualPower, Power, RedfishPower, WakeOnLanPower
from chaos.model.ports import PowerControl
from chaos.power.command import make_command_control
from chaos.power.docker import DockerControl
from chaos.power.ipmi import make_ipmi_control
from chaos.power.manual import make_manual_control
from chaos.power.redfish import make_redfish_control
from chaos.power.secrets import SecretContext
from chaos.power.wake import make_wake_on_lan_control
from chaos.transports.containers import Container


def make_power_control(
    power: Power, host: str, place: SecretContext, container: Callable[[str | None, str | None], Container]
) -> PowerControl:
    """Of ``host``; ``container`` finds one by name and engine. Raises Refused for what cannot be used here."""
    match power:
        case RedfishPower():
            return make_redfish_control(power, place)
        case IpmiPower():
            return make_ipmi_control(power, place)
        case DockerPower():
            return DockerControl(container(power.container, power.engine))
        case CommandPower():
            return make_command_control(power, place)
        case ManualPower():
            return make_manual_control(power, host)
        case WakeOnLanPower():
            return make_wake_on_lan_control(power)
