"""What Azure's scale sets and AKS would do with a virtual machine, and which rights on it the credentials have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from chaos.core.power_risk import PowerRisk
from chaos.machines.power.cloud import load_sdk

VM_RESOURCE = (
    "/subscriptions/(?P<subscription>[^/ ]+)/resourceGroups/(?P<group>[^/ ]+)/providers/Microsoft[.]Compute/"
    "(?:virtualMachines/(?P<name>[^/ ]+)|"
    "virtualMachineScaleSets/(?P<scale_set>[^/ ]+)/virtualMachines/(?P<number>[0-9]+))"
)
_MEMBER, _SINGLE = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "Microsoft.Compute/virtualMachines"
_PERMISSIONS = "providers/Microsoft.Authorization/permissions?api-version=2022-04-01"


def is_aks(tags: Mapping[str, str] | None) -> bool:
    """Whether AKS has made the machine: it tags all that it makes."""
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
    """Those of the actions that the power control needs which Azure does not permit. Raises the SDK's errors.

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
