"""Rules of dns-failure and mtu in a kernel: lookups of host and pod that fail, large packets that vanish.

Three network namespaces stand for a node, its pod and a peer with a DNS server; no daemon is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.core.action import Target
from chaos.faults.actions._packetfilter import TABLE
from tests.kit import dns_server
from tests.kit.actionkit import prepare
from tests.kit.processes import until

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
NODE, POD, PEER = (f"nf-{name}-{os.getpid()}" for name in ("node", "pod", "peer"))
SETUP = f"""set -e
for name in {NODE} {POD} {PEER}; do ip netns add $name; ip -n $name link set lo up; done
ip link add v1 netns {NODE} type veth peer name v2 netns {PEER}
ip link add p1 netns {NODE} type veth peer name eth0 netns {POD}
ip -n {NODE} addr add 10.9.0.1/24 dev v1; ip -n {PEER} addr add 10.9.0.2/24 dev v2
ip -n {NODE} addr add 10.8.0.1/24 dev p1; ip -n {POD} addr add 10.8.0.2/24 dev eth0
ip -n {NODE} link set v1 up; ip -n {PEER} link set v2 up; ip -n {NODE} link set p1 up; ip -n {POD} link set eth0 up
ip -n {POD} route add default via 10.8.0.1; ip -n {PEER} route add 10.8.0.0/24 via 10.9.0.1
ip netns exec {NODE} sysctl -qw net.ipv4.ip_forward=1
for name in {NODE} {POD}; do mkdir -p /etc/netns/$name; echo nameserver 10.9.0.2 > /etc/netns/$name/resolv.conf; done
"""
LOOKUP = f"env RES_OPTIONS='timeout:1 attempts:1' getent -s dns ahosts {dns_server.NAME}."
_ASK = """import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(20), ("10.9.0.1", 53))"""
NODES: dict[str, dict[str, Any]] = {
    "with": {"metadata": {"name": "n1"}, "spec": {"podCIDRs": ["10.8.0.0/24"]}, "status": {}},
    "without": {"metadata": {"name": "n1"}, "spec": {}, "status": {}},
}
FACTS: dict[str, Any] = {
    "nft": "1.0.6",
    "nft-rules": False,
    "dns-lookup?name=kubernetes.io": True,
    "ssh-peer": {"address": "10.9.0.2", "port": 22},
    "black-hole-routes": [],
    "nft-early-reject": True,
    "peer-routes": {"10.9.0.2": "v1"},
}


def run(script: str, stdin: str = "", check: bool = True) -> str:
    done = subprocess.run(["sh", "-c", script], input=stdin, capture_output=True, text=True, timeout=30, check=False)
    assert not check or not done.returncode, done.stderr
    return done.stdout


@pytest.fixture
def _namespaces() -> Iterator[None]:
    if absent := [name for name in ("ip", "nft", "ping", "getent") if not shutil.which(name)]:
        pytest.skip(f"there is no {' and no '.join(absent)}")
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    server: list[subprocess.Popen[bytes]] = []
    try:
        run(SETUP)
        argv = ["ip", "netns", "exec", PEER, sys.executable, str(Path(dns_server.__file__)), "10.9.0.2"]
        server.append(subprocess.Popen(argv))
        until(lambda: found(NODE))
        yield
    finally:
        for process in server:
            process.kill()
            process.wait(10)
        run(f"for name in {NODE} {POD} {PEER}; do ip netns del $name; rm -rf /etc/netns/$name; done", check=False)


def found(namespace: str) -> bool:
    return dns_server.ADDRESS in run(f"ip netns exec {namespace} {LOOKUP}", check=False)


def load(action: str, given: dict[str, Any], node: dict[str, Any]) -> None:
    target = Target("n1", facts=FACTS, objects={"/api/v1/nodes": {"items": [node]}}, tag="run-do")
    run(f"ip netns exec {NODE} nft -f -", prepare(action, given, target).rules)


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize("networks", sorted(NODES))
@pytest.mark.parametrize("how", ["drop", "reject"])
@pytest.mark.parametrize(("traffic", "after"), [("host", [False, True]), ("pods", [True, False]), ("all", [False] * 2)])
def test_lookups_fail_of_those_that_are_meant(networks: str, how: str, traffic: str, after: list[bool]) -> None:
    assert [found(NODE), found(POD)] == [True, True]
    load("dns-failure", {"traffic": traffic, "how": how}, NODES[networks])
    assert [found(NODE), found(POD)] == after
    run(f"ip netns exec {NODE} nft delete table {TABLE}")
    assert [found(NODE), found(POD)] == [True, True]


def sizes(source: str, address: str) -> list[bool]:
    """Whether packets of 1280 and 1281 bytes are answered."""
    ping = f"ip netns exec {source} ping -n -M do -c 1 -W 1 -s"
    return ["1 received" in run(f"{ping} {size} {address}", check=False) for size in (1252, 1253)]


@pytest.mark.usefixtures("_namespaces")
def test_large_packets_vanish_both_ways() -> None:
    ways = [(NODE, "10.9.0.2"), (PEER, "10.9.0.1"), (POD, "10.9.0.2"), (PEER, "10.8.0.2")]
    assert [sizes(*way) for way in ways] == [[True, True]] * 4
    load("mtu", {"from": "cidr", "cidrs": ["10.9.0.2/32"]}, NODES["with"])
    assert [sizes(*way) for way in ways] == [[True, False]] * 4
    assert sizes(POD, "10.8.0.1") == [True, True]
    run(f"ip netns exec {NODE} nft delete table {TABLE}")
    assert [sizes(*way) for way in ways] == [[True, True]] * 4


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize("networks", sorted(NODES))
def test_other_nodes_may_ask_a_server_of_this_node(networks: str) -> None:
    """The interface to them is of the kind of those of pods, as in kind."""
    load("dns-failure", {"traffic": "pods"}, NODES[networks])
    for namespace, caught in ((PEER, False), (POD, True)):
        run(f"ip netns exec {namespace} {sys.executable} -c '{_ASK}'")
        listed = run(f"ip netns exec {NODE} nft list table {TABLE}")
        assert ("packets 1 " in listed) is caught
