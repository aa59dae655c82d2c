"""Facts about the control plane: commands made of other facts, and their output."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
SERVER = {"kubelet-server": "https://cp.example:6443"}
KNOWN = SERVER | {"server-addresses": ["10.0.0.1", "fd00::1"], "api-peers": [["10.0.0.1", 6443]]}
# The kubelet's own server is a load balancer on the host, on another port.
K3S = {"kubelet-server": "https://127.0.0.1:6444", "server-addresses": [], "api-peers": [["10.0.0.1", 6443]]}

COMMANDS = [
    ("server-addresses", SERVER, "getent ahosts cp.example"),
    ("api-peers", SERVER, "ss -Htnp state established '( dport = :443 or dport = :6443 )'"),
    ("api-peers", {"kubelet-server": "https://127.0.0.1:6444"}, "dport = :6444"),
    ("api-reachable", KNOWN, "-o /dev/null -m 3 https://10.0.0.1:6443/readyz; echo 10.0.0.1 $?"),
    ("api-reachable", K3S, "https://10.0.0.1:6443/readyz; echo 10.0.0.1 $?"),
    ("api-reachable", KNOWN, "https://[fd00::1]:6443/readyz; echo fd00::1 $?"),
]


@pytest.mark.parametrize(("name", "known", "part"), COMMANDS)
def test_commands(name: str, known: dict[str, Any], part: str) -> None:
    assert part in str(FACTS[name].command_for(known))


def test_no_probe_without_an_address() -> None:
    with pytest.raises(ValueError, match="no address of an API server"):
        FACTS["api-reachable"].command_for(SERVER | {"server-addresses": [], "api-peers": []})


SOCKETS = """0 0 10.0.0.9:40000 10.0.0.1:6443 users:(("kubelet",pid=7,fd=14))
0 0 [fd00::9]:40001 [fd00::1]:6443 users:(("k3s-agent",pid=7,fd=14))
0 0 [::ffff:10.0.0.9]:40002 [::ffff:10.0.0.2]:6443 users:(("kubelet",pid=7,fd=15))
0 0 10.0.0.9:40003 10.0.0.3:443 users:(("chronyd",pid=8,fd=1))
0 0 127.0.0.1:40003 127.0.0.1:6443 users:(("kubelet",pid=7,fd=16))
"""
RESOLVED = "10.0.0.1  STREAM cp\n10.0.0.1  DGRAM\nfd00::1   STREAM\n127.0.0.1 STREAM\n"
RULES = ("ip saddr { 10.0.0.1 } counter packets 3 bytes 180 drop", "counter packets 4 bytes 9 drop")
COUNTED = "table inet nodefall {\n\tchain cut {\n" + "".join(f"\t\t{rule}\n" for rule in RULES) + "\t}\n}\n"
# The same kubeconfig as files have it: YAML in block and in flow style, JSON in one line, and without a cluster.
KUBECONFIGS = [
    ("clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n  name: k\n", "https://10.0.0.1:6443"),
    (
        'clusters: [{name: k, cluster: {server: "https://10.0.0.1:6443", tls-server-name: cp}}]\n',
        "https://10.0.0.1:6443",
    ),
    ("clusters: [{cluster: {server: https://cp}, name: k}]\n", "https://cp"),
    (
        '{"clusters":[{"cluster":{"server":"https://[fd00::1]:6443"}}],"users":[{"user":{"token":"secret"}}]}\n',
        "https://[fd00::1]:6443",
    ),
    ("clusters: []\nusers: [{user: {token: secret}}]\n", None),
]
PEM = "-----BEGIN CERTIFICATE-----\nMIIB+/=\n-----END CERTIFICATE-----\n"
GOOD = [
    ("kubelet-server", "server: https://10.0.0.1:6443\n", 2, "https://10.0.0.1:6443"),
    ("kubelet-server", 'server: "https://cp:6443\n', 0, "https://cp:6443"),
    ("kubelet-server", 'server": "https://[fd00::1]:6443/\n', 0, "https://[fd00::1]:6443"),
    (
        "server-addresses",
        "10.0.0.1  STREAM cp\n10.0.0.1  DGRAM\nfd00::1   STREAM\n127.0.0.1 STREAM\n",
        0,
        ["10.0.0.1", "fd00::1"],
    ),
    ("server-addresses", "::ffff:10.0.0.1 STREAM\n", 0, ["10.0.0.1"]),
    ("host-addresses", "10.0.0.7 172.17.0.1 fd00::7 \n", 0, ["10.0.0.7", "172.17.0.1", "fd00::7"]),
    ("host-addresses", "\n", 0, []),
    (
        "api-peers",
        SOCKETS,
        0,
        [["10.0.0.1", 6443], ["10.0.0.2", 6443], ["fd00::1", 6443]],
    ),
    ("api-peers", "", 0, []),
    ("api-reachable", "10.0.0.1 0\nfd00::1 28\n", 0, {"ipv4": True, "ipv6": False}),
    ("api-reachable", "10.0.0.1 7\n10.0.0.2 35\n", 0, {"ipv4": True}),
    ("nft-rules", "listed\n", 1, False),
    ("nft-rules", "table ip nat\nlisted\n", 1, False),
    (
        "nft-rules",
        "table inet nodefall\nlisted\n" + COUNTED,
        0,
        {"packets": 7},
    ),
    ("ssh-peer", "192.0.2.1 40000 10.0.0.9 2222\n", 0, {"address": "192.0.2.1", "port": 2222}),
    ("ssh-peer", "fe80::1%eth0 40000 fe80::2%eth0 22\n", 0, {"address": "fe80::1", "port": 22}),
    ("ssh-peer", "", 1, {}),
    ("nft", "nftables v1.0.6 (Lester Gooch #5)\n", 0, "1.0.6"),
    ("kubelet-certificate", f"{PEM}{PEM}", 0, PEM + PEM),
    ("kubelet-certificate", f"{PEM}-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", 0, PEM),
]


@pytest.mark.parametrize(("text", "server"), KUBECONFIGS)
def test_only_the_server_of_a_kubeconfig_is_read(tmp_path: Path, text: str, server: str | None) -> None:
    """By the real grep."""
    file = tmp_path / "kubelet.conf"
    file.write_text(text)
    fact = FACTS["kubelet-server"]
    assert fact.command is not None
    argv = [word for word in fact.command.argv if not word.startswith("/")]
    done = subprocess.run([*argv, str(file)], capture_output=True, text=True, timeout=30, check=False)
    assert "secret" not in done.stdout
    if server is None:
        with pytest.raises(ValueError, match="names a server"):
            fact.parse(done.stdout, done.returncode)
    else:
        assert fact.parse(done.stdout, done.returncode) == server


BAD = [
    ("kubelet-server", "", 2),
    ("kubelet-server", "    server: http://10.0.0.1:6443\n", 0),
    ("server-addresses", "", 2),
    ("server-addresses", "nonsense\n", 0),
    ("api-peers", "", 127),
    ("api-reachable", "10.0.0.1 127\n", 0),
    ("api-reachable", "", 1),
    ("nft-rules", "", 1),  # sudo that is not allowed
    ("nft-rules", "sudo: nft: command not found", 127),
    ("ssh-peer", "192.0.2.1 22\n", 0),
    ("nft", "", 127),
    ("kubelet-certificate", "", 1),
    ("kubelet-certificate", "-----BEGIN CERTIFICATE-----\n", 0),
]


@pytest.mark.parametrize(("name", "stdout", "code", "value"), GOOD)
def test_good_output(name: str, stdout: str, code: int, value: Any) -> None:
    assert FACTS[name].parse(stdout, code) == value


@pytest.mark.parametrize(("name", "stdout", "code"), BAD)
def test_bad_output(name: str, stdout: str, code: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        FACTS[name].parse(stdout, code)
