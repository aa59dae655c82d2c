"""Power of a virtual machine of libvirt, on this machine or another one; needs the extra ``libvirt``.

A domain is bound by its UUID, which is the one in its SMBIOS (libvirt's formatdomain, ``uuid``). A transient domain is
gone once it is off, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal
from xml.etree import ElementTree

from pydantic import Field

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.power.cloud import load_sdk, maybe_carried_out, not_carried_out

# virDomainState: 1 running, 2 blocked, 3 paused, 4 shutting down, 5 shut off, 6 crashed, 7 suspended to memory.
_PAUSED, _OFF_STATES, _ON_STATES = 3, (5, 6), (1, 2, 3, 4, 7)


DEFAULT_URI = "qemu:///system"


class LibvirtPower(PowerSettings):
    kind: Literal["libvirt"] = Field(description="A domain of libvirt.")
    uri: str = Field(DEFAULT_URI, description="The URI of the daemon, such as qemu+ssh://root@hypervisor/system.")
    domain: str | None = Field(None, description="The name or UUID of the domain. By default, the Node's name.")

    @property
    def names_machine(self) -> bool:
        return bool(self.domain or self.identity)  # else the Node's name is that of the domain


def make_libvirt_control(power: LibvirtPower, host: HostContext) -> LibvirtControl:
    """Power control of one domain. Raises Refused without the extra; no connection is opened yet."""
    libvirt = load_sdk("libvirt", "libvirt")
    libvirt.registerErrorHandler(lambda *_: None, None)  # its default writes to standard error what it raises as well
    return LibvirtControl(libvirt, power.uri, power.domain or host.node)


class LibvirtControl:
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks``. Every operation opens a new connection."""

    capabilities = ALL_CAPABILITIES

    def __init__(self, libvirt: Any, uri: str, name: str) -> None:
        self._libvirt, self._uri, self._name = libvirt, uri, name

    def state(self) -> PowerState:
        """``on`` or ``off``; ``on`` while it is paused or still shutting down."""
        with self._domain("reading its state") as domain:
            return self._state(domain)

    def identity(self) -> PowerIdentity:
        """The UUID in the SMBIOS of the domain."""
        with self._domain("reading its UUID") as domain:
            return PowerIdentity(system_uuid=str(domain.UUIDString()))

    def on(self) -> None:
        """Start the domain, or resume it if it is paused. Returns when libvirt is done."""
        with self._domain("starting it", changes=True) as domain:
            if self._state(domain) is PowerState.OFF:
                domain.create()
            elif domain.state()[0] == _PAUSED:
                domain.resume()

    def off(self) -> None:
        """Destroy the domain, as libvirt calls a power cut; returns when libvirt has done it."""
        with self._domain("destroying it", changes=True) as domain:
            if self._state(domain) is PowerState.ON:
                domain.destroy()

    def soft_off(self) -> None:
        """Press the domain's ACPI power button; returns when it is pressed, not when the domain is off."""
        with self._domain("pressing its power button", changes=True) as domain:
            domain.shutdownFlags(self._libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)

    def risks(self) -> tuple[PowerRisk, ...]:
        """Risks: a transient domain, or a domain whose ``on_poweroff`` is not ``destroy``."""
        with self._domain("reading its definition") as domain:
            found = []
            if not domain.isPersistent():
                hint = "define it with virsh define"
                found.append(PowerRisk("it is a transient domain, which is gone once it is off", hint))
            action = ElementTree.fromstring(domain.XMLDesc()).findtext("on_poweroff", "destroy")  # noqa: S314 - of libvirt
            if action != "destroy":
                hint = "set on_poweroff to destroy in its definition, and start it again"
                found.append(
                    PowerRisk(f"libvirt does not leave it off after a power-off: on_poweroff is {action}", hint)
                )
            return tuple(found)

    @property
    def _label(self) -> str:
        return f"domain {self._name} of libvirt at {self._uri}"

    def _state(self, domain: Any) -> PowerState:
        number = domain.state()[0]
        if number in _ON_STATES:
            return PowerState.ON
        if number in _OFF_STATES:
            return PowerState.OFF
        raise NodefallError(
            f"{self._label} has no power state: virDomainState {number}", hint="check it with virsh domstate"
        )

    @contextmanager
    def _domain(self, what: str, *, changes: bool = False) -> Iterator[Any]:
        """The domain by UUID or name. Raises Unreachable or Refused before anything is sent to it."""
        try:
            connection = self._libvirt.open(self._uri)
        except self._libvirt.libvirtError as error:
            raise Unreachable(
                f"libvirt at {self._uri} cannot be reached: {error}", hint="check uri of power"
            ) from error
        try:
            yield self._lookup(connection)
        except self._libvirt.libvirtError as error:
            what = f"{self._label}: {what} failed"
            raise (maybe_carried_out(what, error) if changes else NodefallError(f"{what}: {error}")) from error
        finally:
            connection.close()

    def _lookup(self, connection: Any) -> Any:
        find = connection.lookupByUUIDString if _is_uuid(self._name) else connection.lookupByName
        try:
            return find(self._name)
        except self._libvirt.libvirtError as error:
            raise not_carried_out(f"{self._label} is not found", error, "correct domain in power") from error


def list_domains(uri: str = DEFAULT_URI) -> dict[str, str]:
    """The names of all domains by UUID; empty if the extra is missing or no daemon answers."""
    try:
        libvirt = load_sdk("libvirt", "libvirt")
    except NodefallError:
        return {}
    libvirt.registerErrorHandler(lambda *_: None, None)
    try:
        connection = libvirt.openReadOnly(uri)
    except libvirt.libvirtError:
        return {}
    try:
        return {str(domain.UUIDString()).lower(): str(domain.name()) for domain in connection.listAllDomains()}
    except libvirt.libvirtError:
        return {}
    finally:
        connection.close()


def _is_uuid(text: str) -> bool:
    return len(text) == 36 and text.count("-") == 4


DRIVER = PowerDriver("libvirt", LibvirtPower, make_libvirt_control)
