"""Virtual machines of Azure: the SDK over HTTPS, with answers as the REST API references of Azure publish them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.ports import ALL_CAPABILITIES, MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.driver import power_control_of
from chaos.machines.power.azure import AzureControl
from tests.kit.clouds import host_context
from tests.kit.local_http import Reply, Request, local_http
from tests.kit.tls_authority import Authority

UUID, SWAPPED = "11223344-5566-7788-99aa-bbccddeeff00", "44332211-6655-8877-99aa-bbccddeeff00"
COMPUTE = "/subscriptions/s1/resourceGroups/shop/providers/Microsoft.Compute"
SINGLE, SET = f"{COMPUTE}/virtualMachines/n1", f"{COMPUTE}/virtualMachineScaleSets/pool"
MEMBER = f"{SET}/virtualMachines/3"
PERMISSIONS = "/providers/Microsoft.Authorization/permissions"
ALL = {"actions": ["Microsoft.Compute/*"], "notActions": []}
CUT: tuple[str, list[str]] = ("powerOff", ["true"])
START: tuple[str, list[str]] = ("start", [])


@dataclass
class Azure:
    """Azure Resource Manager and the managed identity's endpoint on loopback, and the changes that were sent."""

    port: int = 0
    power: str = "running"
    properties: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    scale_set: dict[str, Any] = field(default_factory=dict)
    services: list[dict[str, str]] = field(default_factory=list)
    roles: list[dict[str, Any]] = field(default_factory=lambda: [ALL])
    change_status: int = 202
    denied: str = "nothing"
    changes: list[tuple[str, str, list[str]]] = field(default_factory=list)

    def answer(self, request: Request) -> Reply:
        url = urlsplit(request.path)
        if url.path == "/token":
            token = {"access_token": "token", "expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}
            return reply(200, token | {"resource": "https://management.azure.com"})
        assert request.headers["Authorization"] == "Bearer token"
        if url.path.endswith(self.denied):
            return failure(403, "AuthorizationFailed", "does not have authorization to perform action")
        if request.method == "POST":
            resource, _, verb = url.path.rpartition("/")
            self.changes.append((resource, verb, parse_qs(url.query).get("skipShutdown", [])))
            error = failure(self.change_status, "Conflict", "is not ready")
            return error if self.change_status != 202 else Reply(202, headers={"Location": "/operations/1"})
        found = {
            SINGLE: self.machine(SINGLE, "Microsoft.Compute/virtualMachines"),
            MEMBER: self.machine(MEMBER, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"),
            SET: {"id": SET, "location": "westeurope", "properties": self.scale_set},
            f"{SET}/instanceView": {"orchestrationServices": self.services},
            SINGLE + PERMISSIONS: {"value": self.roles},
            MEMBER + PERMISSIONS: {"value": self.roles},
        }
        return reply(200, found[url.path]) if url.path in found else failure(404, "ResourceNotFound", "was not found")

    def machine(self, resource: str, kind: str) -> dict[str, Any]:
        statuses = [{"code": "ProvisioningState/succeeded"}, {"code": f"PowerState/{self.power}"}]
        usual = {"vmId": UUID, "osProfile": {"computerName": "n1"}, "instanceView": {"statuses": statuses}}
        described = {"id": resource, "name": "n1", "type": kind, "location": "westeurope", "tags": self.tags}
        return described | {"properties": usual | self.properties}

    def control(self, resource: str = SINGLE, **settings: Any) -> AzureControl:
        power = {"kind": "azure", "endpoint": f"https://127.0.0.1:{self.port}"} | settings
        made = power_control_of(host_context(power, f"azure://{resource}"))
        assert isinstance(made, AzureControl)
        return made


def reply(status: int, body: Any) -> Reply:
    return Reply(status, json.dumps(body).encode())


def failure(status: int, code: str, message: str) -> Reply:
    return reply(status, {"error": {"code": code, "message": message}})


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    """The credentials are a managed identity, whose tokens the local server issues."""
    pytest.importorskip("azure.mgmt.compute", reason="azure-mgmt-compute is not installed")
    pytest.importorskip("azure.identity", reason="azure-identity is not installed")
    authority = Authority(tmp_path, "ca")
    found = Azure()
    with local_http(found.answer) as plain, local_http(found.answer, authority.server()) as found.port:
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{plain}/token")
        monkeypatch.setenv("IDENTITY_HEADER", "secret")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
        yield found


@pytest.mark.parametrize("resource", [SINGLE, MEMBER])
def test_it_is_bound_to_the_node_and_not_to_another(azure: Azure, resource: str) -> None:
    found = azure.control(resource)
    assert isinstance(found, MachineIdentity)
    assert isinstance(found, MachineRisks)
    assert found.capabilities == ALL_CAPABILITIES
    identity = found.identity()
    assert identity.key == UUID
    for uuid in (UUID, SWAPPED):  # some machines report their first three groups in the other byte order
        node = NodeIdentity("n1", "m", uuid, provider_id=f"azure://{resource.replace('shop', 'SHOP')}")
        assert bind_power(node, HostIdentity(), identity, {"n1": node}).is_bound
    for other in (
        NodeIdentity("n1", "m", UUID, provider_id=f"azure://{resource}2"),
        NodeIdentity("n1", "m", UUID, provider_id=f"azure://{resource.replace('s1', 's2')}"),
        NodeIdentity("n1", "m", UUID.replace("99aa", "99ab"), provider_id=f"azure://{resource}"),
    ):
        assert bind_power(other, HostIdentity(), identity, {"n1": other}).contradictions


@pytest.mark.parametrize("resource", [SINGLE, MEMBER])
@pytest.mark.parametrize(
    ("power", "state", "on", "off"),
    [
        ("running", "on", [], [CUT]),
        ("starting", "off", [], []),
        ("stopping", "on", "refused", [CUT]),
        ("stopped", "off", [START], []),
        ("deallocating", "on", "refused", [CUT]),
        ("deallocated", "off", [START], []),
    ],
)
def test_the_state_machine(azure: Azure, resource: str, power: str, state: str, on: Any, off: list[Any]) -> None:
    azure.power = power
    made = azure.control(resource)
    assert made.state() == state
    assert made.is_stopping() == (on == "refused")
    if on == "refused":
        with pytest.raises(Refused, match=f"cannot be started now: it is {power}"):
            made.on()
    else:
        made.on()
        assert azure.changes == [(resource, *each) for each in on]
    azure.changes.clear()
    made.off()
    assert azure.changes == [(resource, *each) for each in off]


@pytest.mark.parametrize("resource", [SINGLE, MEMBER])
def test_soft_off_does_not_skip_the_shutdown(azure: Azure, resource: str) -> None:
    azure.control(resource).soft_off()
    assert azure.changes == [(resource, "powerOff", ["false"])]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, None),
        ({"priority": "Regular", "storageProfile": {"osDisk": {"createOption": "FromImage"}}}, None),
        ({"priority": "Spot"}, "it is a Spot machine"),
        (
            {"storageProfile": {"osDisk": {"createOption": "FromImage", "diffDiskSettings": {"option": "Local"}}}},
            "its OS disk is ephemeral",
        ),
    ],
)
def test_machines_that_may_be_lost(azure: Azure, properties: dict[str, Any], message: str | None) -> None:
    azure.properties = properties
    found = [risk.message for risk in azure.control().risks()]
    assert (not found) if message is None else message in found[0]


@pytest.mark.parametrize("is_member", [True, False])
@pytest.mark.parametrize(
    ("enabled", "states", "refused"),
    [(False, [], False), (True, ["Running"], True), (True, [], True), (True, ["Suspended"], False)],
)
def test_automatic_repairs_of_a_scale_set(
    azure: Azure, is_member: bool, enabled: bool, states: list[str], refused: bool
) -> None:
    azure.properties = {} if is_member else {"virtualMachineScaleSet": {"id": SET}}
    azure.scale_set = {"automaticRepairsPolicy": {"enabled": enabled}}
    azure.services = [{"serviceName": "AutomaticRepairs", "serviceState": state} for state in states]
    found = azure.control(MEMBER if is_member else SINGLE).risks()
    assert len(found) == refused
    for risk in found:
        assert "automatic repairs of its scale set pool replace it" in risk.message
        assert "--resource-group shop --name pool --service-name AutomaticRepairs --action Suspend" in risk.hint


def test_a_spot_scale_set_and_node_auto_repair_of_aks(azure: Azure) -> None:
    azure.scale_set = {"virtualMachineProfile": {"priority": "Spot"}}
    azure.tags = {"aks-managed-poolName": "p"}
    aks, spot = azure.control(MEMBER).risks()
    assert "its scale set pool has Spot machines" in spot.message
    assert "AKS reboots, reimages and redeploys it" in aks.message
    assert aks.when_not_ready
    assert not spot.when_not_ready


def test_missing_rights(azure: Azure) -> None:
    azure.roles = [{"actions": ["*/read"], "notActions": []}, {"actions": ["*"], "notActions": ["*/START/action"]}]
    for resource, prefix in ((SINGLE, "virtualMachines"), (MEMBER, "virtualMachineScaleSets/virtualMachines")):
        (risk,) = azure.control(resource).risks()
        assert risk.message == f"the credentials do not permit Microsoft.Compute/{prefix}/start/action"
    azure.roles, azure.denied = [ALL], "/pool"
    (risk,) = azure.control(MEMBER).risks()
    assert "whether its scale set pool would replace it is unknown" in risk.message


def test_errors_of_azure(azure: Azure) -> None:
    with pytest.raises(Refused, match=r"n2 of Azure: reading it failed: .*was not found"):
        azure.control(instance=SINGLE.replace("n1", "n2")).state()
    azure.power = "unknown"
    with pytest.raises(NodefallError, match="has no power state: Azure reports unknown"):
        azure.control().state()
    azure.properties = {"instanceView": {"statuses": []}}
    with pytest.raises(NodefallError, match="has no power state: Azure reports none"):
        azure.control().state()
    azure.properties, azure.power = {}, "stopped"
    for status in (409, 502):
        azure.change_status = status
        with pytest.raises(NodefallError, match=r"start failed: .*is not ready") as caught:
            azure.control().on()
        assert isinstance(caught.value, Refused) is (status == 409)
        assert not isinstance(caught.value, Unreachable)


def test_a_cloud_that_does_not_answer(azure: Azure) -> None:
    with pytest.raises(Unreachable, match="reading it failed"):
        azure.control(endpoint="https://127.0.0.1:1").on()


def test_without_credentials_or_a_machine_it_is_refused(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="has no machine: its Node has the provider ID aws:///a/i-1"):
        power_control_of(host_context({"kind": "azure"}, "aws:///a/i-1"))
    with pytest.raises(Refused, match="has no machine: /subscriptions/s1/n1 is not a VM"):
        azure.control("/subscriptions/s1/n1")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    with pytest.raises(Refused, match="reading it failed") as caught:
        azure.control().state()
    assert "az login" in str(caught.value.hint)


def test_without_the_extra_it_is_one_sentence(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.mgmt.compute", None)
    with pytest.raises(
        Refused, match=r"^power control azure cannot be used: azure\.mgmt\.compute is not installed$"
    ) as caught:
        azure.control()
    assert caught.value.hint == "run pip install 'nodefall[azure]'"
