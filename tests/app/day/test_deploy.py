"""What a pod needs of a game day: files at their places, secrets by reference, ports, and nodes to avoid."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from chaos.app.day.deploy import DeployOptions, deployment_of, kubeconfig_text
from chaos.app.day.deploy_needs import programs_of
from chaos.app.day.document import load_game_day
from chaos.cluster.access import load_access
from chaos.core.errors import UsageError
from chaos.documents.inventory import load_inventory
from chaos.gameday.deploy.deployment import Port
from chaos.gameday.deploy.manifests import manifests
from tests.kit.deployments import make, write_inventory
from tests.kit.gamedays import write_day

OPTIONS = DeployOptions("nodefall", "nodefall:1")


def test_files_are_beside_each_other_as_they_are_here(tmp_path: Path) -> None:
    """So the documents stay as they are, and the plan has the same hash."""
    days, inventories = tmp_path / "days", tmp_path / "hosts"
    days.mkdir()
    inventories.mkdir()
    inventory = write_inventory(inventories / "staging.yaml")
    other = write_inventory(inventories / "prod.yaml")
    clusters = [{"name": path.stem, "inventory": f"../hosts/{path.name}"} for path in (inventory, other)]
    day = load_game_day(write_day(days, ["one", "two"], clusters=clusters))
    found, _ = deployment_of(day, inventory, OPTIONS)
    texts = {file.path: file.text for file in found.files}
    assert set(texts) == {
        *(f"/etc/nodefall/days/{name}" for name in ("day.yaml", "one.yaml", "two.yaml")),
        *(f"/etc/nodefall/hosts/{name}" for name in ("staging.yaml", "prod.yaml")),
        "/home/nodefall/.kube/config",
    }
    root = tmp_path / "pod"
    for path, text in texts.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert load_game_day(root / found.gameday.lstrip("/")).hash == day.hash


def test_secrets_are_references_only(tmp_path: Path) -> None:
    notify = [
        {"kind": "slack", "url": {"env": "SLACK"}},
        {"kind": "webhook", "url": "https://hooks.example:8443/x", "key": {"file": "~/hooks/key"}},
    ]
    keys = tmp_path / "bmc" / "chaos"
    keys.parent.mkdir()
    keys.write_text("top secret")
    found, sources = make(tmp_path, notify=notify)
    assert found.secret_env == ("BMC_1", "SLACK", "WIN_1")
    assert {file.path: file.key for file in found.secret_files} == {
        "/etc/nodefall/pki/ca.pem": "ca.pem",
        "/home/nodefall/.ssh/chaos": "chaos",
        "/etc/ssh/nodefall/known_hosts": "known_hosts",
        "/etc/nodefall/bmc/chaos": "chaos.2",
        "/home/nodefall/hooks/key": "key",
    }
    assert {(each.key, each.file) for each in sources} >= {
        ("SLACK", ""),
        ("chaos", "~/.ssh/chaos"),
        ("chaos.2", str(tmp_path / "bmc/chaos")),
    }
    assert "top secret" not in json.dumps(manifests(found))


def test_ports(tmp_path: Path) -> None:
    gates = [{"kind": "http", "url": "http://status.example:8080/ready"}]
    found, _ = make(tmp_path, gates=gates)
    expected = [22, 443, 2222, 5985, 5986, 6443, 8080, 8443, 9090, 10250]
    assert found.ports == tuple(sorted([*map(Port, expected), Port(623, "UDP")]))


def test_programs_that_the_image_lacks(tmp_path: Path) -> None:
    make(tmp_path)
    day = load_game_day(tmp_path / "day.yaml")
    assert programs_of(day.document.spec, load_inventory(tmp_path / "staging.yaml")) == ("ipmitool",)
    write_inventory(tmp_path / "staging.yaml", defaults={"transport": "openssh"})
    assert programs_of(day.document.spec, load_inventory(tmp_path / "staging.yaml")) == ("ipmitool", "ssh")


def test_nodes_to_avoid(tmp_path: Path) -> None:
    entries = [
        {"experiment": "one.yaml", "name": "a", "targets": {"victim": {"nodes": ["w-2", "w-1"], "role": None}}},
        {"experiment": "one.yaml", "name": "b", "targets": {"victim": {"zone": "z", "matchLabels": {"pool": "chaos"}}}},
    ]
    found, _ = make(tmp_path, entries=entries)
    assert found.preferences.never == ("w-1", "w-2")
    assert found.preferences.rather_not == (("pool", "chaos"), ("topology.kubernetes.io/zone", "z"))
    assert found.preferences.control_planes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": {"kubeconfig": "k"}}, "expectUID is missing"),
        ({"cluster": None, "hosts": {}, "lab": {}}, "nothing can be deployed to it"),
    ],
)
def test_an_inventory_that_cannot_be_used(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    inventory = write_inventory(tmp_path / "staging.yaml", **changes)
    day = load_game_day(write_day(tmp_path, ["one"]))
    with pytest.raises(UsageError, match=message):
        deployment_of(day, inventory, OPTIONS)


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    path = write_day(tmp_path, ["one"])
    path.write_text(path.read_text().replace('"name": "days"', f'"name": "{"d" * 44}"'))
    day = load_game_day(path)
    with pytest.raises(UsageError, match="at most 43 characters"):
        deployment_of(day, write_inventory(tmp_path / "staging.yaml"), OPTIONS)


def test_an_absolute_path_is_refused(tmp_path: Path) -> None:
    entries = [{"experiment": str(tmp_path / "one.yaml")}]
    with pytest.raises(UsageError, match="an absolute path refers to a different file inside the pod"):
        make(tmp_path, entries=entries)


def test_the_kubeconfig_is_that_of_a_service_account(tmp_path: Path) -> None:
    text = kubeconfig_text("staging")
    assert yaml.safe_load(text)["current-context"] == "staging"
    token, ca = tmp_path / "token", Path(os.path.realpath(__file__))
    token.write_text("abc")
    mount = "/var/run/secrets/kubernetes.io/serviceaccount"
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(text.replace(f"{mount}/token", str(token)).replace(f"{mount}/ca.crt", str(ca)))
    kubeconfig.chmod(0o640)
    found = load_access(str(kubeconfig), "staging")
    assert found.server == "https://kubernetes.default.svc"
    assert (found.user.token_file, found.ca.path) == (str(token), str(ca))
