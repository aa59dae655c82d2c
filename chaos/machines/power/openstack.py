"""Power of a server of OpenStack Nova; needs the extra ``openstack``.

Calls and states: Compute API Reference (os-stop, os-start, status of servers). Nova has no power cut: os-stop shuts the
guest down first, so this control only powers on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from chaos.core.command import PowerCapability, PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import Refused
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.power.cloud import READ_TIMEOUT, Failures, ProviderControl, load_sdk, machine_parts, not_carried_out

# A server that is being started is SHUTOFF, one that is being stopped ACTIVE until the end.
_STATES = {
    "ACTIVE": PowerState.ON,
    "REBOOT": PowerState.ON,
    "HARD_REBOOT": PowerState.ON,
    "PAUSED": PowerState.ON,
    "PASSWORD": PowerState.ON,
    "SHUTOFF": PowerState.OFF,
}


class OpenstackPower(PowerSettings):
    """Uses the credentials of the SDK: clouds.yaml or its environment variables."""

    kind: Literal["openstack"] = Field(description="A server of OpenStack.")
    server: str | None = Field(None, description="The ID of the server. By default, the ID in the Node's provider ID.")
    cloud: str | None = Field(None, description="The cloud in clouds.yaml. By default, OS_CLOUD or the variables OS_*.")
    region: str | None = Field(None, description="The region. By default, the region of the cloud.")
    project: str | None = Field(None, description="The ID of the project that must own the server.")

    @property
    def names_machine(self) -> bool:
        return bool(self.server or self.identity)


def make_openstack_control(power: OpenstackPower, host: HostContext) -> OpenstackControl:
    """Power control of one server. Raises Refused without the SDK, its configuration or a server."""
    sdk = load_sdk("openstack", "openstack")
    failures = (
        load_sdk("openstack.exceptions", "openstack").SDKException,
        load_sdk("keystoneauth1.exceptions", "openstack").ClientException,
    )
    server = power.server or machine_parts(host, "openstack", "openstack")[-1]

    def connect() -> Any:
        return sdk.connect(cloud=power.cloud, region_name=power.region, api_timeout=READ_TIMEOUT)

    try:
        connection = host.shared.get(("openstack", power.cloud, power.region), connect)
    except failures as error:
        raise Refused(
            f"power control openstack of {host.node} cannot be used: {error}", hint="see clouds.yaml"
        ) from error
    return OpenstackControl(connection, failures, server, power)


class OpenstackControl(ProviderControl):
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports."""

    capabilities = ALL_CAPABILITIES - {PowerCapability.OFF}

    def __init__(
        self, connection: Any, failures: tuple[type[Exception], ...], server: str, power: OpenstackPower
    ) -> None:
        super().__init__(
            Failures(
                failures,
                _status,
                lambda _: "check server and cloud in power, and the rights of the user",
                "check the network, clouds.yaml and the credentials",
            )
        )
        self._connection, self._server, self._power = connection, server, power

    def state(self) -> PowerState:
        """``on`` or ``off``, by the status of the server."""
        return self._known_state(_STATES, self._read().status, "check the server")

    def is_stopping(self) -> bool:
        """Whether Nova has a task that stops the server."""
        return self._read().task_state in ("powering-off", "deleting")

    def identity(self) -> PowerIdentity:
        """The server's ID, which is also the UUID in its SMBIOS, its name and its addresses."""
        found = self._read()
        networks: Mapping[str, list[Mapping[str, Any]]] = found.addresses or {}
        addresses = tuple(str(each["addr"]) for network in networks.values() for each in network)
        return PowerIdentity(found.id, (found.name,), addresses, provider_id=f"openstack:///{found.id}")

    def on(self) -> None:
        """Send os-start; returns when Nova has accepted it. Raises Refused unless the server is off and has no task."""
        found = self._read()
        if found.status == "ACTIVE" or found.task_state == "powering-on":
            return
        if found.status != "SHUTOFF" or found.task_state:
            why = f"it is {found.status}, {found.task_state or 'without a task'}"
            raise not_carried_out(f"{self._label} cannot be started now", why, "wait until it is SHUTOFF")
        with self._calls("os-start", changes=True):
            self._connection.compute.start_server(self._server)

    def off(self) -> None:
        """Raises Refused: Nova has no power cut."""
        raise Refused(f"{self._label} cannot be cut off: Nova shuts it down first", hint="use how: sysrq, or poweroff")

    def soft_off(self) -> None:
        """Send os-stop: Nova shuts it down, and cuts it off after the cloud's shutdown_timeout (60 s by default)."""
        with self._calls("os-stop", changes=True):
            self._connection.compute.stop_server(self._server)

    def risks(self) -> tuple[PowerRisk, ...]:
        """A server that is locked, so that it may not be started again."""
        if not self._read().is_locked:
            return ()
        return (PowerRisk("it is locked, so that it could not be started again", "unlock it during the run"),)

    @property
    def _label(self) -> str:
        return f"server {self._server} of OpenStack"

    def _read(self) -> Any:
        """The server. Raises Refused if it does not exist or belongs to another project."""
        with self._calls("reading it"):
            found = self._connection.compute.get_server(self._server)
        if self._power.project and found.project_id != self._power.project:
            raise Refused(
                f"{self._label} belongs to project {found.project_id}, and the inventory expects {self._power.project}",
                hint="use the credentials of the right project, or correct project in power",
            )
        return found


def _status(error: Any) -> int | None:
    """The HTTP status of an answer that rejects a request; None for any other error."""
    status = getattr(error, "status_code", None) or getattr(error, "http_status", None) or 0
    return status if 400 <= status < 500 else None


DRIVER = PowerDriver("openstack", OpenstackPower, make_openstack_control)
