"""The power control that an inventory names."""

from __future__ import annotations

from collections.abc import Callable

from chaos.hosts.power.command import make_command_control
from chaos.hosts.power.docker import DockerControl
from chaos.hosts.power.ipmi import make_ipmi_control
from chaos.hosts.power.manual import make_manual_control
from chaos.hosts.power.redfish import make_redfish_control
from chaos.hosts.power.secrets import SecretContext
from chaos.hosts.power.wake_on_lan import make_wake_on_lan_control
from chaos.hosts.transports.containers import Container
from chaos.model.inventory import CommandPower, DockerPower, IpmiPower, ManualPower, Power, RedfishPower, WakeOnLanPower
from chaos.model.ports import PowerControl


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
