"""Every kind of power control that reports an identity, of another machine: refused, whatever is overridden."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from chaos.core.errors import NodefallError
from chaos.core.kube import Node
from chaos.core.power_identity import PowerIdentity
from chaos.engine.preflight.findings import refuse, run_checks
from tests.kit.preflightkit import CHECKS, USE, host, inventory, messages, observed

U1, U2, U9 = (f"{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "129")
ADDRESS, ELSEWHERE = "10.0.0.1", "192.0.2.9"
VM = "azure:///subscriptions/{}/resourceGroups/shop/providers/Microsoft.Compute/virtualMachines/{}"
POOL = "azure:///subscriptions/{}/resourceGroups/shop/providers/Microsoft.Compute/virtualMachineScaleSets/p/virtualMachines/{}"
PROXMOX = {"kind": "proxmox", "address": "pve", "vmid": 101, "user": "ops@pve", "token": "t", "secret": {"env": "PVE"}}
VSPHERE = {"kind": "vsphere", "address": "vcenter", "user": "ops@vsphere.local", "password": {"env": "VSPHERE"}}
REDFISH = {"kind": "redfish", "url": "https://bmc-1/redfish/v1/Systems/1"}


@dataclass(frozen=True, slots=True)
class Kind:
    """Settings, the provider ID of n1 and n2, and what the control of n1 reports."""

    settings: dict[str, Any]
    own: PowerIdentity
    provider_ids: tuple[str, str] = ("", "")


def of_cloud(kind: str, form: str, here: str, own: PowerIdentity, ids: tuple[str, str] = ("n1", "n2")) -> Kind:
    one, two = (form.format(here, each) for each in ids)
    return Kind({"kind": kind}, replace_in(own, provider_id=one), (one, two))


def replace_in(identity: PowerIdentity, **fields: Any) -> PowerIdentity:
    return msgspec.structs.replace(identity, **fields)


NAMED = PowerIdentity(names=("n1",), addresses=(ADDRESS,))
KINDS = {
    "aws": of_cloud("aws", "aws:///{}/{}", "eu-west-1a", NAMED, ("i-01234567", "i-89abcdef")),
    "gcp": of_cloud("gcp", "gce://{}/europe-west1-b/{}", "shop", replace_in(NAMED, container_id="4242")),
    "azure": of_cloud("azure", VM, "s1", PowerIdentity(U1, ("n1",))),
    "azure, scale set": of_cloud("azure", POOL, "s1", PowerIdentity(U1, ("n1",)), ("1", "2")),
    "openstack": of_cloud("openstack", "openstack://{}/{}", "", replace_in(NAMED, system_uuid=U1), (U1, U2)),
    "libvirt": Kind({"kind": "libvirt"}, PowerIdentity(U1)),
    "proxmox": Kind(PROXMOX, PowerIdentity(U1)),
    "redfish": Kind(REDFISH, PowerIdentity(U1)),
    "vsphere": Kind(VSPHERE, PowerIdentity(U1, provider_id=f"vsphere://{U1}"), (f"vsphere://{U1}", f"vsphere://{U2}")),
    "vsphere, by path": Kind({**VSPHERE, "vm": "DC0/vm/n1"}, PowerIdentity(U1)),
}
BY_PROVIDER = [name for name, kind in KINDS.items() if kind.own.provider_id]
BY_UUID = [name for name, kind in KINDS.items() if kind.own.system_uuid]


def node(name: str, uuid: str, provider_id: str, address: str) -> Node:
    status = {"addresses": [{"type": "InternalIP", "address": address}], "nodeInfo": {"systemUUID": uuid}}
    spec = {"providerID": provider_id} if provider_id else {}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": status}, Node)


def level(kind: Kind, found: PowerIdentity) -> str:
    """Severity of the check for n1, whose power control reports ``found``; "refusal" only where no override helps."""
    one, two = kind.provider_ids
    nodes = (node("n1", U1, one, ADDRESS), node("n2", U2, two, "10.0.0.2"))
    observations = observed(
        replace(host("n1", system_uuid=U1), power_identity=found),
        nodes=nodes,
        inventory=inventory(hosts={"n1": {"power": kind.settings}}),
        experiments=(replace(USE, nodes=("n1", "n2")),),
    )
    ((severity, _, _),) = messages("power-identity", observations)
    if severity == "refusal":
        findings = run_checks({"power-identity": CHECKS["power-identity"]}, observations)
        with pytest.raises(NodefallError, match="the power control of host n1 is not that of n1"):
            refuse(findings, anyway=True)
    return severity


@pytest.mark.parametrize("name", KINDS)
def test_its_own_machine_is_in_order(name: str) -> None:
    assert level(KINDS[name], KINDS[name].own) == "ok"


@pytest.mark.parametrize("name", BY_PROVIDER)
def test_another_provider_id_is_refused(name: str) -> None:
    """Also where name, address and UUID are those of the Node."""
    kind = KINDS[name]
    assert level(kind, replace_in(kind.own, provider_id=kind.provider_ids[1])) == "refusal"
    assert level(kind, replace_in(kind.own, provider_id=kind.own.provider_id + "9")) == "refusal"


@pytest.mark.parametrize("name", BY_UUID)
@pytest.mark.parametrize("uuid", [U2, U9])
def test_another_system_uuid_is_refused(name: str, uuid: str) -> None:
    """That of another Node, and one that no Node has; also where the provider ID is that of the Node."""
    assert level(KINDS[name], replace_in(KINDS[name].own, system_uuid=uuid)) == "refusal"


ELSEWHERES: dict[
    str, dict[str, Any]
] = {  # a machine of the same name in another cluster's account, zone, project, subscription or network
    "aws": {"provider_id": "aws:///eu-west-1a/i-0fedcba9"},
    "aws, copied ID": {"names": ("ip-9",), "addresses": (ELSEWHERE,)},
    "gcp": {"provider_id": "gce://other/europe-west1-b/n1"},
    "gcp, copied ID": {"names": ("other",), "addresses": (ELSEWHERE,)},
    "azure": {"provider_id": VM.format("s2", "n1"), "system_uuid": U9},
    "azure, scale set": {"provider_id": POOL.format("s2", "1"), "system_uuid": U9},
    "azure, copied ID": {"system_uuid": U9},
    "openstack": {"provider_id": f"openstack:///{U9}", "system_uuid": U9, "addresses": (ELSEWHERE,)},
    "libvirt": {"system_uuid": U9},
    "proxmox": {"system_uuid": U9},
    "redfish": {"system_uuid": U9},
    "vsphere": {"provider_id": f"vsphere://{U9}", "system_uuid": U9},
    "vsphere, copied ID": {"system_uuid": U9},
    "vsphere, by path": {"system_uuid": U9},
}


@pytest.mark.parametrize("case", ELSEWHERES)
def test_a_machine_of_another_cluster_is_refused(case: str) -> None:
    kind = KINDS[case.removesuffix(", copied ID")]
    assert level(kind, replace_in(kind.own, **ELSEWHERES[case])) == "refusal"
