"""What this machine is, and the way to the hosts."""

from __future__ import annotations

import shutil
from base64 import b64encode
from pathlib import Path

import pytest

from chaos.core.inventory import Inventory
from chaos.engine.connection import local_machine_id
from chaos.engine.local_identity import jump_hosts, known_host_keys, local_identity, server_addresses
from chaos.machines.sessions.host_keys import fingerprint

BASTION = {"address": "192.0.2.7"}


def inventory(**more: object) -> Inventory:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "i"}}
    return Inventory.model_validate(head | {"cluster": {"kubeconfig": "k"}} | more)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("https://127.0.0.1:6443", set()),
        ("https://[::1]:6443", set()),
        ("https://localhost:6443", set()),
        ("https://192.0.2.1:6443", {"192.0.2.1"}),
        ("https://[2001:db8::1]", {"2001:db8::1"}),
        ("https://no-such-name.invalid", set()),
        ("", set()),
    ],
)
def test_addresses_of_the_api_server(text: str, addresses: set[str]) -> None:
    assert server_addresses(text) == addresses


def test_jump_hosts_by_node_and_address() -> None:
    named = inventory(
        defaults={"proxyJump": ["bastion", "ann@192.0.2.9:2222"]},
        hosts={"bastion": BASTION | {"node": "ip-7"}, "a": {"address": "192.0.2.1"}, "b": {"transport": "docker"}},
    )
    expected = {"ip-7": frozenset({"192.0.2.7"}), "ann@192.0.2.9:2222": frozenset({"192.0.2.9"})}
    assert jump_hosts(named, {"a": ""}) == expected
    assert jump_hosts(named, {"not-listed": "192.0.2.5"}) == expected
    assert jump_hosts(named, {"b": ""}) == {}
    assert jump_hosts(inventory(), {"a": ""}) == {}


def test_jump_hosts_of_an_ssh_config(tmp_path: Path) -> None:
    """By the address of the Node, as the connection asks for it, and through hops of hops."""
    if shutil.which("ssh") is None:
        pytest.skip("ssh is not installed")
    config = tmp_path / "config"
    config.write_text(
        "Host 192.0.2.1\n  ProxyJump ann@[2001:db8::9]:2222,inner\n"
        "Host inner\n  HostName 192.0.2.8\n  ProxyJump outer\nHost outer\n  HostName 192.0.2.7\n",
        encoding="utf-8",
    )
    config.chmod(0o600)
    openssh = inventory(defaults={"transport": "openssh", "options": {"configFile": str(config)}})
    assert jump_hosts(openssh, {"a": "192.0.2.1", "b": "192.0.2.2"}) == {
        "2001:db8::9": frozenset({"2001:db8::9"}),
        "outer": frozenset({"192.0.2.7"}),
        "inner": frozenset({"192.0.2.8"}),
    }
    config.write_text("NoSuchOption yes\n", encoding="utf-8")
    assert jump_hosts(openssh, {"a": "192.0.2.1"}) == {}  # reported where the host is used


def test_the_source_address_of_connections_to_ourselves() -> None:
    away = local_identity(["203.0.113.77"]).addresses  # none where there is no network
    assert local_identity(away).addresses == away
    assert "203.0.113.77" not in away
    assert local_identity(["not an address"]).addresses == frozenset()
    assert local_identity([]).machine_id == local_machine_id()


def test_the_host_keys_that_are_accepted(tmp_path: Path) -> None:
    key = f"ssh-ed25519 {b64encode(b'key').decode()}"
    (tmp_path / "known").write_text(f"192.0.2.1 {key}\n[192.0.2.2]:2222 {key}\n")
    accepted = frozenset({f"ssh-ed25519 {fingerprint(b'key')}"})
    hosts = {
        "a": {"address": "192.0.2.1", "node": "n1"},
        "b": {"address": "192.0.2.2", "port": 2222},
        "c": {"address": "192.0.2.2"},
        "d": {"transport": "docker"},
        "e": {"address": "192.0.2.1", "knownHosts": str(tmp_path)},  # a directory: reported where the host is used
    }
    found = known_host_keys(inventory(defaults={"knownHosts": str(tmp_path / "known")}, hosts=hosts))
    none: frozenset[str] = frozenset()
    assert found == {"n1": accepted, "b": accepted, "c": none, "d": none, "e": none}
