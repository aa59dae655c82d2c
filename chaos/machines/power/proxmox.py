"""Power of a virtual machine of Proxmox VE; needs the extra ``proxmox``.

Calls and states: Proxmox VE API viewer (``/nodes/{node}/qemu/{vmid}/status``, ``/config``, ``/cluster/resources``). A
machine is bound by the UUID in its SMBIOS, which its configuration has (``smbios1``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, StrictInt

from chaos.core.command import PowerState
from chaos.core.driver import FilePath, PowerSettings
from chaos.core.errors import Refused
from chaos.core.field_types import HostAddress, Secret
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.local import client_context, read_secret
from chaos.machines.power.cloud import READ_TIMEOUT, Failures, ProviderControl, load_sdk

_STATES = {"running": PowerState.ON, "stopped": PowerState.OFF}  # a paused one is running, with another qmpstatus


class ProxmoxPower(PowerSettings):
    kind: Literal["proxmox"] = Field(description="A guest of Proxmox VE.")
    address: HostAddress = Field(description="The address of a node of Proxmox VE.")
    port: StrictInt = Field(8006, ge=1, le=65535, description="The port of the API.")
    vmid: StrictInt = Field(ge=100, description="The ID of the guest.")
    user: str = Field(description="The user with its realm, such as ops@pve.")
    token: str = Field(description="The name of the user's API token.")
    secret: Secret = Field(description="The secret of the API token.")
    ca_file: FilePath | None = Field(None, alias="caFile", description="A file with the CA certificates to trust.")


def make_proxmox_control(power: ProxmoxPower, host: HostContext) -> ProxmoxControl:
    """Power control of one machine. Raises Refused without the SDK, or for a secret that cannot be read."""
    sdk = load_sdk("proxmoxer", "proxmox")
    ca_file = host.secrets.path(power.ca_file) if power.ca_file else None
    if ca_file:
        client_context(power.ca_file, host.secrets)
    api = sdk.ProxmoxAPI(
        power.address,
        port=power.port,
        user=power.user,
        token_name=power.token,
        token_value=read_secret(power.secret, host.secrets),
        verify_ssl=str(ca_file) if ca_file else True,
        timeout=READ_TIMEOUT,
    )
    return ProxmoxControl(api, sdk.core.ResourceException, power)


class ProxmoxControl(ProviderControl):
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports."""

    def __init__(self, api: Any, rejected: type[Exception], power: ProxmoxPower) -> None:
        import requests  # noqa: PLC0415 - drivers are loaded to check an inventory, too

        super().__init__(
            Failures(
                (rejected, requests.RequestException),
                lambda error: getattr(error, "status_code", 0) if isinstance(error, rejected) else None,
                lambda _: "check user, token and the rights of the token in power",
                "check address and caFile of power",
            )
        )
        self._api, self._power = api, power

    def state(self) -> PowerState:
        """``on`` or ``off``; ``on`` while it is paused."""
        return self._state(self._status())

    def identity(self) -> PowerIdentity:
        """The UUID in the machine's SMBIOS; unknown if its configuration has none."""
        with self._calls("reading its configuration"):
            fields = str(self._machine().config.get().get("smbios1", "")).split(",")
        values = dict(each.split("=", 1) for each in fields if "=" in each)
        return PowerIdentity(system_uuid=values.get("uuid", ""))

    def on(self) -> None:
        """Start the machine, or resume it if it is paused. Returns when the task has been created."""
        status = self._status()
        if self._state(status) is PowerState.OFF:
            with self._calls("start", changes=True):
                self._machine().status.start.post()
        elif status.get("qmpstatus") == "paused":
            with self._calls("resume", changes=True):
                self._machine().status.resume.post()

    def off(self) -> None:
        """Stop, as Proxmox VE calls a power cut; returns when the task has been created."""
        if self.state() is PowerState.ON:
            with self._calls("stop", changes=True):
                self._machine().status.stop.post()

    def soft_off(self) -> None:
        """Shut down, never by force: through the guest agent if one is configured, otherwise by ACPI."""
        with self._calls("shutdown", changes=True):
            self._machine().status.shutdown.post(forceStop=0)

    def risks(self) -> tuple[PowerRisk, ...]:
        """A machine that is locked, or that the HA manager starts again."""
        status = self._status()
        found = []
        if lock := status.get("lock"):
            found.append(
                PowerRisk(f"it is locked ({lock}), and can be neither stopped nor started", "wait for its end")
            )
        if (status.get("ha") or {}).get("managed"):
            hint = f"during the run set it to ignored: ha-manager set vm:{self._power.vmid} --state ignored"
            found.append(PowerRisk("the HA manager starts it again, or on another node", hint))
        return tuple(found)

    @property
    def _label(self) -> str:
        return f"machine {self._power.vmid} of Proxmox VE at {self._power.address}"

    def _status(self) -> Mapping[str, Any]:
        with self._calls("reading its status"):
            found: Mapping[str, Any] = self._machine().status.current.get()
            return found

    def _state(self, status: Mapping[str, Any]) -> PowerState:
        return self._known_state(_STATES, str(status.get("status")), "check it in Proxmox VE")

    def _machine(self) -> Any:
        """The machine, on its current node. Raises Refused."""
        vmid = self._power.vmid
        machines = self._api.cluster.resources.get(type="vm")
        nodes = [each["node"] for each in machines if each.get("vmid") == vmid and each.get("type") == "qemu"]
        if len(nodes) != 1:
            raise Refused(f"{self._label} is not found", hint="correct vmid in power; its token needs VM.Audit")
        return self._api.nodes(nodes[0]).qemu(vmid)


DRIVER = PowerDriver("proxmox", ProxmoxPower, make_proxmox_control)
