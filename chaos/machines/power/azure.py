"""Power of a virtual machine of Azure, single or of a scale set; needs the extra ``azure``.

Calls and states: Azure Compute REST API (Virtual Machines and Virtual Machine Scale Set VMs: Get, Power Off, Start;
States and billing status). Power Off shuts the system down first, unless ``skipShutdown`` is set, and does not
deallocate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from typing import Annotated, Any, Literal

from pydantic import Field

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, Refused
from chaos.core.field_types import full_match
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.power.cloud import (
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    Failures,
    ProviderControl,
    load_sdk,
    not_carried_out,
    required_provider_id,
)

VM_RESOURCE = (
    "/subscriptions/(?P<subscription>[^/ ]+)/resourceGroups/(?P<group>[^/ ]+)/providers/Microsoft[.]Compute/"
    "(?:virtualMachines/(?P<name>[^/ ]+)|"
    "virtualMachineScaleSets/(?P<scale_set>[^/ ]+)/virtualMachines/(?P<number>[0-9]+))"
)
_MEMBER, _SINGLE = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "Microsoft.Compute/virtualMachines"
_PERMISSIONS = "providers/Microsoft.Authorization/permissions?api-version=2022-04-01"
# In a transition the former state counts: a machine is off only when it is proven off.
_STATES = {
    "starting": PowerState.OFF,
    "running": PowerState.ON,
    "stopping": PowerState.ON,
    "stopped": PowerState.OFF,
    "deallocating": PowerState.ON,
    "deallocated": PowerState.OFF,
}
_PUBLIC = "https://management.azure.com"


def is_aks(tags: Mapping[str, str] | None) -> bool:
    """Whether AKS has created the machine: it tags everything that it creates."""
    return any(name.lower().startswith("aks-managed-") for name in tags or {})


def group_risks(client: Any, group: str, name: str) -> Iterator[PowerRisk]:
    """Why a member of this scale set would be replaced. Raises the SDK's errors."""
    found = client.virtual_machine_scale_sets.get(group, name)
    profile = found.virtual_machine_profile
    if profile and profile.priority in ("Spot", "Low"):
        hint = "choose a node of a regular scale set"
        yield PowerRisk(f"its scale set {name} has Spot machines, which may be evicted and not be started again", hint)
    if not (found.automatic_repairs_policy and found.automatic_repairs_policy.enabled):
        return
    services = client.virtual_machine_scale_sets.get_instance_view(group, name).orchestration_services or []
    states = [service.service_state for service in services if service.service_name == "AutomaticRepairs"]
    if states != ["Suspended"]:
        command = f"az vmss set-orchestration-service-state --resource-group {group} --name {name}"
        yield PowerRisk(
            f"automatic repairs of its scale set {name} replace it when it is not healthy",
            f"suspend them during the run: {command} --service-name AutomaticRepairs --action Suspend",
        )


def missing_rights(client: Any, resource: str, *, is_member: bool) -> list[str]:
    """The actions that the power control needs but Azure does not permit. Raises the SDK's errors.

    Source: Authorization REST API, Permissions - List For Resource; a role permits ``actions`` without ``notActions``.
    """
    requests = load_sdk("azure.core.rest", "azure")
    answer = client.send_request(requests.HttpRequest("GET", f"{resource}/{_PERMISSIONS}"))
    answer.raise_for_status()
    roles = answer.json()["value"]
    needed = [f"{_MEMBER if is_member else _SINGLE}/{verb}/action" for verb in ("powerOff", "start")]
    return [action for action in needed if not any(_permits(role, action) for role in roles)]


def _permits(role: Mapping[str, Any], action: str) -> bool:
    granted, withheld = role.get("actions") or [], role.get("notActions") or []
    return _matches(action, granted) and not _matches(action, withheld)


def _matches(action: str, patterns: list[str]) -> bool:
    return any(fnmatch(action.lower(), pattern.lower()) for pattern in patterns)


class AzurePower(PowerSettings):
    """Uses the credentials of azure-identity: its environment variables, a managed identity, or ``az login``."""

    kind: Literal["azure"] = Field(description="A virtual machine of Azure.")
    instance: Annotated[str, full_match(f"(?i:{VM_RESOURCE})", "is not a virtual machine's resource ID")] | None = (
        Field(
            None,
            description="The resource ID, such as /subscriptions/.... By default, it is taken from the provider ID.",
        )
    )
    endpoint: Annotated[str, full_match("https://[^/ ]+", "is not an https URL without a path")] = Field(
        _PUBLIC, description="The endpoint of Azure Resource Manager, for sovereign clouds."
    )

    @property
    def names_machine(self) -> bool:
        return bool(self.instance or self.identity)


def make_azure_control(power: AzurePower, host: HostContext) -> AzureControl:
    """Power control of one virtual machine. Raises Refused without the SDK or a machine; no request is sent yet."""
    compute = load_sdk("azure.mgmt.compute", "azure")
    identity = load_sdk("azure.identity", "azure")
    core = load_sdk("azure.core.exceptions", "azure")
    resource = power.instance or required_provider_id(host, "azure", "azure").partition("://")[2]
    found = re.fullmatch(VM_RESOURCE, resource, re.IGNORECASE)
    if not found:
        raise Refused(
            f"power control azure of {host.node} has no machine: {resource} is not a VM",
            hint="write instance in power",
        )
    credential = host.shared.get(("azure",), identity.DefaultAzureCredential)

    def connect() -> Any:
        return compute.ComputeManagementClient(
            credential,
            found["subscription"],
            base_url=power.endpoint,
            credential_scopes=[f"{power.endpoint}/.default"],
            connection_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retry_total=2,
        )

    client = host.shared.get(("azure", found["subscription"], power.endpoint), connect)
    return AzureControl(client, core, resource, found.groupdict())


def _failures(errors: Any) -> Failures:
    """Classify the SDK's errors; ``errors`` is the module azure.core.exceptions."""
    denied = errors.ClientAuthenticationError  # no token, so that no request was sent, or one that was rejected
    login = "run az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and a secret of azure-identity"

    def status(error: Any) -> int | None:
        if isinstance(error, denied):
            return 401
        return (getattr(error, "status_code", None) or 500) if isinstance(error, errors.HttpResponseError) else None

    return Failures(
        (errors.AzureError,),
        status,
        lambda error: login if isinstance(error, denied) else "check instance in power, and the rights of the user",
        "check the network, endpoint and credentials",
    )


class AzureControl(ProviderControl):
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports."""

    def __init__(self, client: Any, errors: Any, resource: str, parts: Mapping[str, str | None]) -> None:
        super().__init__(_failures(errors))
        self._client, self._rejected, self._resource, self._parts = client, errors.HttpResponseError, resource, parts
        self._calls_of = client.virtual_machine_scale_set_vms if parts["scale_set"] else client.virtual_machines
        keys = ("group", "scale_set", "number") if parts["scale_set"] else ("group", "name")
        self._address = tuple(parts[key] for key in keys)

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` while it is starting, ``on`` while it is stopping."""
        return self._power(self._describe())[1]

    def is_stopping(self) -> bool:
        """Whether an accepted stop is still in progress."""
        return self._power(self._describe())[0] in ("stopping", "deallocating")

    def identity(self) -> PowerIdentity:
        """The machine's ``vmId``, which is the UUID in its SMBIOS, its computer name and its provider ID."""
        found = self._describe()
        name = found.os_profile.computer_name if found.os_profile else None
        return PowerIdentity(str(found.vm_id or ""), (name,) if name else (), provider_id=f"azure://{found.id}")

    def on(self) -> None:
        """Start; returns when it is accepted. Raises Refused while the machine is still stopping."""
        name, state = self._power(self._describe())
        if name in ("stopped", "deallocated"):
            with self._calls("start", changes=True):
                self._calls_of.begin_start(*self._address, polling=False)
        elif state is PowerState.ON and name != "running":
            raise not_carried_out(f"{self._label} cannot be started now", f"it is {name}", "wait until it is stopped")

    def off(self) -> None:
        """Power off without a shutdown of the system; returns when it is accepted. The machine stays allocated."""
        if self.state() is PowerState.ON:
            with self._calls("powerOff", changes=True):
                self._calls_of.begin_power_off(*self._address, skip_shutdown=True, polling=False)

    def soft_off(self) -> None:
        """Power off after a shutdown of the system, which Azure asks for; returns when it is accepted."""
        with self._calls("powerOff", changes=True):
            self._calls_of.begin_power_off(*self._address, skip_shutdown=False, polling=False)

    def risks(self) -> tuple[PowerRisk, ...]:
        """Risks: what Azure, a scale set or AKS would do with a machine that is down, and missing rights."""
        found = self._describe()
        return (*_own_risks(found), *self._rights(), *self._group_risks(found))

    def _rights(self) -> Iterator[PowerRisk]:
        with self._calls("reading the rights"):
            missing = missing_rights(self._client, self._resource, is_member=bool(self._parts["scale_set"]))
        for action in missing:
            yield PowerRisk(f"the credentials do not permit {action}", f"grant {action} for {self._resource}")

    def _group_risks(self, found: Any) -> Iterator[PowerRisk]:
        owner = getattr(found, "virtual_machine_scale_set", None)  # of a member with flexible orchestration
        name = self._parts["scale_set"] or (owner.id.rpartition("/")[2] if owner else None)
        if not name:
            return
        with self._calls("reading its scale set"):
            try:
                yield from group_risks(self._client, str(self._parts["group"]), name)
            except self._rejected as error:
                if getattr(error, "status_code", None) != 403:
                    raise
                what = f"whether its scale set {name} would replace it is unknown: {str(error)[:200]}"
                yield PowerRisk(what, "grant the credentials what docs/power.md lists")

    @property
    def _label(self) -> str:
        return f"virtual machine {'/'.join(map(str, self._address))} of Azure"

    def _power(self, found: Any) -> tuple[str, PowerState]:
        """The power state, and its name in Azure. Raises NodefallError if it is missing or unknown."""
        statuses = (found.instance_view.statuses if found.instance_view else None) or []
        names = [status.code.partition("/")[2] for status in statuses if status.code.startswith("PowerState/")]
        if len(names) != 1 or names[0] not in _STATES:
            raise NodefallError(
                f"{self._label} has no power state: Azure reports {', '.join(names) or 'none'}",
                hint="check the machine with az vm get-instance-view",
            )
        return names[0], _STATES[names[0]]

    def _describe(self) -> Any:
        with self._calls("reading it"):
            return self._calls_of.get(*self._address, expand="instanceView")


def _own_risks(found: Any) -> Iterator[PowerRisk]:
    if getattr(found, "priority", None) in ("Spot", "Low"):
        yield PowerRisk("it is a Spot machine, which may be evicted and not be started again", "choose a regular one")
    disk = found.storage_profile.os_disk if found.storage_profile else None
    if disk and disk.diff_disk_settings:
        hint = "choose a node whose OS disk is a managed one"
        yield PowerRisk("its OS disk is ephemeral: it is lost if Azure moves the machine while it is off", hint)
    if is_aks(found.tags):
        yield PowerRisk(
            "AKS reboots, reimages and redeploys it when its Node is not Ready for 5 to 10 minutes, which no setting"
            " turns off",
            "choose a node that AKS does not manage",
            when_not_ready=True,
        )


DRIVER = PowerDriver("azure", AzurePower, make_azure_control)
