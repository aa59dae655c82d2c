"""``init`` where there is an inventory already, and on machines of libvirt."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.app.discovery.machines import Access
from chaos.app.discovery.nodes import ListedMetadata, ListedNode
from chaos.app.discovery.powers import powers
from chaos.app.init import refuse_lab
from chaos.cli.app import main
from chaos.core.errors import UsageError
from chaos.core.installed_drivers import power_drivers
from chaos.core.kube.node import NodeInfo, NodeSpec, NodeStatus
from chaos.machines.power import libvirt as driver

KINDS = {name: each.settings for name, each in power_drivers().items()}
UUID = "11111111-2222-4333-8444-55555555AAAA"


def lab_files(folder: Path, simulated: bool) -> Path:
    """The kubeconfig of a lab, not beside its inventory."""
    lab = folder / "lab"
    lab.mkdir()
    (lab / "ca.crt").write_text("")
    inventory = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "lab"},
        "cluster": {"kubeconfig": "kubeconfig.yaml", "simulated": simulated},
    }
    (lab / "inventory.json").write_text(json.dumps(inventory))
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(lab / "ca.crt")}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "lab",
    }
    (folder / "copy.conf").write_text(json.dumps(config))
    for path in (folder / "copy.conf", lab / "inventory.json"):
        path.chmod(0o600)
    return folder / "copy.conf"


def test_the_kubeconfig_of_a_lab_leads_to_its_inventory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = lab_files(tmp_path, simulated=True)
    assert main(["init", "--yes", "--kubeconfig", str(kubeconfig), "--out", str(tmp_path / "out.yaml")]) == 64
    assert f"use its inventory.json: --inventory {tmp_path}/lab/inventory.json" in capsys.readouterr().err
    assert not (tmp_path / "out.yaml").exists()
    with pytest.raises(UsageError, match="belongs to a lab"):
        refuse_lab(str(kubeconfig), "lab")
    refuse_lab(str(kubeconfig), "another")


def test_an_inventory_beside_the_ca_of_a_real_cluster_is_no_lab(tmp_path: Path) -> None:
    refuse_lab(str(lab_files(tmp_path, simulated=False)), "lab")


def machine(name: str, uuid: str = "", provider: str = "") -> ListedNode:
    return ListedNode(
        ListedMetadata(name), NodeSpec(provider_id=provider), NodeStatus(node_info=NodeInfo(system_uuid=uuid))
    )


@pytest.mark.parametrize(
    ("nodes", "domains", "shared", "own"),
    [
        ([machine("n1", UUID)], {UUID.lower(): "n1"}, {"kind": "libvirt"}, {}),
        ([machine("n1", UUID)], {UUID.lower(): "vm-7"}, {}, {"n1": {"kind": "libvirt", "domain": "vm-7"}}),
        ([machine("n1")], {"other": "n1"}, {"kind": "libvirt"}, {}),
        (
            [machine("n1"), machine("n2")],
            {"x": "n1"},
            {"kind": "libvirt"},
            {"n2": {"kind": "manual", "deadline": "10m"}},
        ),
        ([machine("n1")], {"x": "vm-7"}, {"kind": "manual", "deadline": "10m"}, {}),
        ([machine("n1", UUID)], {}, {"kind": "manual", "deadline": "10m"}, {}),
    ],
)
def test_domains_of_libvirt_are_proposed(
    nodes: list[ListedNode], domains: dict[str, str], shared: Any, own: dict[str, Any]
) -> None:
    access = {node.name: Access("ssh") for node in nodes}
    found_shared, found_own, reason = powers(tuple(nodes), access, None, KINDS, domains)
    assert (found_shared, found_own) == (shared, own)
    assert ("libvirt" in reason) is ("libvirt" in str((shared, own)))


def test_the_domains_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of libvirt's API; none without the extra, and none where no daemon answers."""

    class LibvirtError(Exception):
        """Stands for libvirt.libvirtError."""

    def refuse(_uri: str) -> Any:
        raise LibvirtError

    domain = SimpleNamespace(UUIDString=lambda: UUID, name=lambda: "n1")
    opened = SimpleNamespace(listAllDomains=lambda: [domain], close=lambda: None)
    module = SimpleNamespace(
        openReadOnly=lambda _uri: opened, libvirtError=LibvirtError, registerErrorHandler=lambda *_: None
    )
    monkeypatch.setattr(driver, "load_sdk", lambda *_: module)
    assert driver.list_domains() == {UUID.lower(): "n1"}
    module.openReadOnly = refuse
    assert driver.list_domains() == {}
