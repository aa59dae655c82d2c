"""Contracts of the drivers of hosts: a transport opens sessions, a power driver makes power controls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from chaos.cluster.api import ExecApi
from chaos.core.command import PowerCommand, PowerVerb
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, Refused
from chaos.core.installed_drivers import DEFAULT_TRANSPORT, power_drivers, transport_drivers
from chaos.core.inventory import Host, Inventory, OperatingSystem
from chaos.core.ports import MachineAddresses, PowerControl, RestartPolicyControl, Session, SoftOffControl
from chaos.machines.local import SecretContext
from chaos.machines.pod.helpers import HelperPods
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.settings import HostSettings, LocalUser

_T = TypeVar("_T")


class SharedObjects:
    """Objects that drivers share between the hosts of one cluster connection, by key. Thread safe."""

    def __init__(self) -> None:
        self._objects: dict[Hashable, Any] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The object with this key, which is created when first needed."""
        with self._lock:
            if key not in self._objects:
                self._objects[key] = make()
            found: _T = self._objects[key]
            return found


@dataclass(frozen=True, slots=True)
class HostContext:
    """Everything that a driver knows about one host.

    ``key`` is the host's key in the inventory. ``find_address`` returns an address of the Node object, for a host
    without one in the inventory, ``find_provider_id`` its ``spec.providerID``, "" without one. A transport passes what
    the host presents at each connection to ``pin.verify``, before it sends anything. ``pods`` and ``exec`` make pods on
    the cluster and run programs in them; None without a cluster.
    """

    inventory: Inventory
    key: str
    node: str
    local: LocalUser
    secrets: SecretContext = field(default_factory=lambda: SecretContext({}, Path()))
    find_address: Callable[[], str] = lambda: ""
    find_provider_id: Callable[[], str] = lambda: ""
    shared: SharedObjects = field(default_factory=SharedObjects)
    pin: HostKeyPin = field(default_factory=HostKeyPin)
    pods: HelperPods | None = None
    exec: ExecApi | None = None

    @property
    def host(self) -> Host:
        """The host's entry in the inventory, with its defaults; an empty entry if the inventory has none."""
        return self.inventory.host(self.key)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the transport. Options of the host override ``defaults`` for the same transport."""
        defaults = self.inventory.defaults
        is_same = self.host.transport in (None, defaults.transport or DEFAULT_TRANSPORT)
        return {**(defaults.options if is_same else {}), **self.host.options}


class TransportDriver(ABC):
    """A way to run commands on hosts; ``name`` is the value of ``transport`` in an inventory.

    ``options`` is the pydantic model of the keys under ``options``; None where there are none. ``systems`` are the
    operating systems of its hosts. ``needs_kubelet``: it reaches a host only while the host's kubelet runs.
    """

    name: str
    options: type[BaseModel] | None = None
    systems: frozenset[OperatingSystem] = frozenset({"linux"})
    needs_kubelet: bool = False

    @abstractmethod
    def open_session(self, host: HostContext) -> Session:
        """A session to the host. Raises Unreachable, or Refused where the host or the settings cannot be trusted."""

    def options_of(self, host: HostContext) -> Any:
        """The host's options, an instance of ``options``. Raises Refused."""
        assert self.options is not None  # noqa: S101 - only for drivers with options
        try:
            return self.options.model_validate(host.options)
        except ValidationError as error:
            first = error.errors()[0]
            raise Refused(
                f"options of {host.node} for transport {self.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}",
                hint="fix options of the host, or of defaults, in the inventory",
            ) from error

    def jump_hosts(self, host: HostContext) -> Sequence[HostSettings]:  # noqa: ARG002 - for drivers that have some
        """The hosts that the connection passes through: none of them may become a target."""
        return ()

    def known_keys(self, host: HostContext) -> frozenset[str]:  # noqa: ARG002 - for drivers that have some
        """Keys, as ``HostContext.pin`` has them, that the host may present."""
        return frozenset()

    def local_problems(self, host: HostContext) -> Sequence[NodefallError] | None:  # noqa: ARG002 - as above
        """Local problems that keep this machine from the host, found without a connection; None if unchecked."""
        return None

    def sudo_user(self, host: HostContext) -> str:  # noqa: ARG002 - for drivers that need sudo
        """The login that needs a sudo rule on the host, "" where commands run as root anyway."""
        return ""


@dataclass(frozen=True, slots=True)
class PowerDriver:
    """A kind of power control; ``name`` is the value of ``power.kind`` in an inventory.

    ``make`` takes an instance of ``settings`` and returns the control of one host. It raises Refused for settings that
    cannot be used on this machine.
    """

    name: str
    settings: type[PowerSettings]
    make: Callable[[Any, HostContext], PowerControl]
    moves: bool = False  # its machines may have other addresses after a start; the control is a MachineAddresses


def transport_of(host: HostContext) -> TransportDriver:
    """The transport driver of the host."""
    name = host.host.transport or host.inventory.defaults.transport or DEFAULT_TRANSPORT
    driver: TransportDriver = transport_drivers()[name]
    return driver


def machine_addresses_of(host: HostContext) -> MachineAddresses | None:
    """The host's power control if its machine may have a new address after a start; None if not, or if it fails."""
    settings = host.host.power
    if settings is None or not power_drivers()[settings.kind].moves:
        return None
    with suppress(NodefallError):  # reported where the power control is used
        control = power_control_of(host)
        return control if isinstance(control, MachineAddresses) else None
    return None


def power_control_of(host: HostContext) -> PowerControl | None:
    """The host's power control, None if the inventory gives it none. Raises Refused."""
    settings = host.host.power
    if settings is None:
        return None
    driver: PowerDriver = power_drivers()[settings.kind]
    return driver.make(settings, host)


def run_power_command(power: PowerControl, command: PowerCommand) -> None:
    """Carry out one command. Raises Refused if the power control does not support it, NodefallError if it fails."""
    if command.verb is PowerVerb.ON:
        power.on()
    elif command.verb is PowerVerb.OFF:
        power.off()
    elif command.verb is PowerVerb.SOFT_OFF and isinstance(power, SoftOffControl):
        power.soft_off()
    elif command.verb is PowerVerb.RESTART_POLICY and isinstance(power, RestartPolicyControl):
        power.set_restart_policy(command.value)
    else:
        raise Refused(f"unsupported by the power control: {command}", hint="use the inventory of the plan")
