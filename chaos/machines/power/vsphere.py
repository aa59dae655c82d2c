"""Power of a virtual machine of vSphere, by vCenter Server or one ESXi host; needs the extra ``vsphere``.

Calls and states: vSphere Web Services API (VirtualMachine, SearchIndex). A machine is bound by its BIOS UUID
(``config.uuid``), which cloud-provider-vsphere writes into provider IDs. Its guest may report that UUID with the first
three fields in the other byte order, from hardware version 13 on (kubernetes/kubernetes#59519).

Risks: vSphere Availability (VM and Application Monitoring, Fault Tolerance), vSphere Web Services API
(ClusterDasConfigInfo, ClusterVmToolsMonitoringSettings, ManagedByInfo). vSphere HA restarts the machines of a host that
has failed; one that was powered off, by its guest or by a user, it leaves off. DRS moves machines and starts none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, StrictInt

from chaos.core.command import PowerState
from chaos.core.driver import FilePath, PowerSettings
from chaos.core.errors import NodefallError, Refused
from chaos.core.field_types import HostAddress, Secret
from chaos.core.identity import is_uuid, swap_uuid
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import PowerIdentity, PowerRisk, provider_parts
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.local import client_context, read_secret
from chaos.machines.power.cloud import machine_parts
from chaos.machines.power.vsphere_session import Login, VsphereSession, load_vsphere

# The rights that the control needs, besides System.View.
PRIVILEGES = ("VirtualMachine.Interact.PowerOff", "VirtualMachine.Interact.PowerOn")
_DISABLED = "vmMonitoringDisabled"
# A suspended machine keeps its memory: it is on, as a paused one.
_STATES = {"poweredOn": PowerState.ON, "suspended": PowerState.ON, "poweredOff": PowerState.OFF}


def machine_risks(summary: Any, name: str, disabled: list[str]) -> Iterator[PowerRisk]:
    """Risks of the machine itself, from VirtualMachineSummary and VirtualMachine.disabledMethod."""
    if summary.config.template:
        yield PowerRisk("it is a template, which cannot be powered on", "correct vm in power")
    if manager := summary.config.managedBy:
        hint = f"choose another node, or let {manager.extensionKey} leave it off during the run"
        yield PowerRisk(f"{manager.extensionKey} manages it, and may start it again", hint)
    if summary.runtime.faultToleranceState not in (None, "notConfigured"):
        hint = f"turn Fault Tolerance of {name} off during the run"
        yield PowerRisk("Fault Tolerance lets a second machine go on in its place", hint)
    if summary.runtime.powerState == "poweredOn" and "PowerOffVM_Task" in disabled:
        yield PowerRisk("vCenter has disabled powering it off", "see its tasks and its solutions in vCenter")


def cluster_risks(cluster: Any, machine: Any, name: str) -> Iterator[PowerRisk]:
    """Risks from the configuration of its ClusterComputeResource. Raises the SDK's errors."""
    config = cluster.configurationEx.dasConfig
    if not (config and config.enabled):
        return
    monitoring = config.vmMonitoring
    for override in cluster.configurationEx.dasVmConfig or ():
        settings = override.dasSettings.vmToolsMonitoringSettings if override.dasSettings else None
        if override.key == machine and settings and not settings.clusterSettings:
            monitoring = settings.vmMonitoring or monitoring
    if monitoring not in (None, _DISABLED):
        yield PowerRisk(
            f"VM Monitoring of vSphere HA in cluster {cluster.name} resets it when its guest is silent",
            f"during the run disable VM Monitoring for {name}: VM Overrides of the cluster in vCenter",
        )


def missing_privileges(content: Any, machine: Any) -> list[str]:
    """The PRIVILEGES that the session lacks. Raises the SDK's errors."""
    session = content.sessionManager.currentSession.key
    answers = content.authorizationManager.HasPrivilegeOnEntities([machine], session, list(PRIVILEGES))
    return [each.privId for answer in answers for each in answer.privAvailability if not each.isGranted]


class VspherePower(PowerSettings):
    kind: Literal["vsphere"] = Field(description="A virtual machine of vSphere.")
    address: HostAddress = Field(description="The address of the vCenter Server or of an ESXi host.")
    port: StrictInt = Field(443, ge=1, le=65535, description="The port of vCenter.")
    user: str = Field(description="The user, such as ops@vsphere.local.")
    password: Secret = Field(description="The password of the user.")
    vm: str | None = Field(
        None, description="The inventory path (DC0/vm/worker-1) or the UUID. By default, the UUID in the provider ID."
    )
    ca_file: FilePath | None = Field(None, alias="caFile", description="A file with the CA certificates to trust.")

    @property
    def names_machine(self) -> bool:
        return bool(self.vm or self.identity)


def make_vsphere_control(power: VspherePower, host: HostContext) -> VsphereControl:
    """Power control of one machine. Raises Refused without the SDK or a machine, or for an unusable secret or file."""
    sdk = load_vsphere()
    provided = provider_parts(host.find_provider_id(), "vsphere")
    name = power.vm or machine_parts(host, "vsphere", "vsphere")[-1]
    tls, password = client_context(power.ca_file, host.secrets), read_secret(power.password, host.secrets)
    login = Login(power.address, power.port, power.user, password, tls)
    key = ("vsphere", power.address, power.port, power.user, password, power.ca_file)
    session = host.shared.get(key, lambda: VsphereSession(sdk, login))
    return VsphereControl(session, name, is_by_provider=bool(provided))


class VsphereControl:
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports.

    ``is_by_provider``: its Node has a provider ID of vSphere, which must be that of the machine.
    """

    capabilities = ALL_CAPABILITIES

    def __init__(self, session: VsphereSession, name: str, *, is_by_provider: bool) -> None:
        self._session, self._name, self._is_by_provider = session, name, is_by_provider

    def state(self) -> PowerState:
        """``on`` or ``off``; ``on`` while it is suspended."""
        return self._state(self._summary(self._machine()))

    def identity(self) -> PowerIdentity:
        """The BIOS UUID, and the provider ID that follows from it."""
        uuid = str(self._summary(self._machine()).config.uuid or "").lower()
        return PowerIdentity(system_uuid=uuid, provider_id=f"vsphere://{uuid}" if uuid and self._is_by_provider else "")

    def on(self) -> None:
        """Power the machine on, or resume it if it is suspended. Returns when vCenter is done."""
        machine = self._machine()
        summary = self._summary(machine)
        self._state(summary)
        if summary.runtime.powerState != "poweredOn":
            self._change("powering it on", machine.PowerOnVM_Task)

    def off(self) -> None:
        """Power off, as vSphere calls a power cut; returns when vCenter has done it."""
        machine = self._machine()
        if self._state(self._summary(machine)) is PowerState.ON:
            self._change("powering it off", machine.PowerOffVM_Task)

    def soft_off(self) -> None:
        """Let VMware Tools shut the guest down; returns when the request is issued. Refused where none runs."""
        machine = self._machine()
        with self._session.calls(f"{self._label}: shutting its guest down failed", changes=True):
            machine.ShutdownGuest()

    def risks(self) -> tuple[PowerRisk, ...]:
        """Risks: what vSphere HA, Fault Tolerance or an extension would do with the machine, and missing privileges."""
        machine = self._machine()
        with self._session.calls(f"{self._label}: reading what may start it again failed"):
            summary, owner = machine.summary, machine.resourcePool.owner if machine.resourcePool else None
            found = list(machine_risks(summary, summary.config.name, machine.disabledMethod))
            if hasattr(getattr(owner, "configurationEx", None), "dasConfig"):  # a cluster, not a single host
                found += cluster_risks(owner, machine, summary.config.name)
            missing = missing_privileges(self._session.content(), machine)
        found += [PowerRisk(f"the user lacks the privilege {each}", f"grant {each} on it") for each in missing]
        return tuple(found)

    @property
    def _label(self) -> str:
        return f"machine {self._name} of {self._session.label}"

    def _state(self, summary: Any) -> PowerState:
        """Read the power state. Raises NodefallError if the server has lost the VM's host: the state is old."""
        runtime = summary.runtime
        if runtime.connectionState != "connected":
            why = f"its connection state is {runtime.connectionState}"
            raise NodefallError(f"{self._label} has no power state: {why}", hint="check it in vCenter")
        return _STATES[runtime.powerState]

    def _summary(self, machine: Any) -> Any:
        with self._session.calls(f"{self._label}: reading it failed"):
            return machine.summary

    def _change(self, what: str, start: Any) -> None:
        what = f"{self._label}: {what} failed"
        with self._session.calls(what, changes=True):
            task = start()
        with self._session.calls(what, changes=True, has_begun=True):
            fault = self._session.wait(task)
        with self._session.calls(what, changes=True):
            if fault:
                raise fault

    def _machine(self) -> Any:
        """The machine with this UUID, in either byte order, or at this path. Raises Refused."""
        index = self._session.content().searchIndex
        with self._session.calls(f"{self._label}: looking it up failed"):
            if is_uuid(self._name):
                uuids = dict.fromkeys((self._name.lower(), swap_uuid(self._name)))
                found = [each for uuid in uuids for each in index.FindAllByUuid(None, uuid, True, False)]
            else:
                found = [each for each in [index.FindByInventoryPath(self._name)] if hasattr(each, "PowerOffVM_Task")]
        if len(found) == 1:
            return found[0]
        why = f"cannot be identified: {len(found)} machines have this UUID" if found else "is not found"
        raise Refused(f"{self._label} {why}", hint="correct vm in power; its user needs System.View on the machine")


DRIVER = PowerDriver("vsphere", VspherePower, make_vsphere_control)
