"""Lookups that fail and large packets that vanish, on real machines through the real engine, and none afterwards."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.kit import dns_server
from tests.kit.drive import drive
from tests.kit.machines import RealHost
from tests.kit.suite import others_nightly

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
NAME = dns_server.NAME
LOOKUP = f"env RES_OPTIONS='timeout:2 attempts:1' getent -s dns ahosts {NAME}."
POD_LOOKUP = f"ip netns exec pod {LOOKUP}"


@contextmanager
def serving(address: str) -> Iterator[None]:
    """A DNS server on port 53, which is free again afterwards: a thread that waits in recvfrom would keep it."""
    is_over = Event()

    def serve() -> None:
        while not is_over.is_set():
            with suppress(TimeoutError):
                dns_server.serve(listening)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((address, 53))
        listening.settimeout(0.2)
        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


@pytest.fixture
def node(three: list[RealHost]) -> Iterator[RealHost]:
    """With a DNS server that is this machine, an API server that is another one, and a pod.

    The API server is known by its address: that DNS server answers every name with one that no machine has.
    """
    host, plane = three[0], three[1]
    gateway = host.run("ip -4 route show default").split()[2]
    host.run(
        "cp /etc/resolv.conf /root/resolv.conf; mkdir -p /etc/kubernetes;"
        f"echo nameserver {gateway} > /etc/resolv.conf;"
        f"echo '    server: https://{plane.addresses[0]}:6443' > /etc/kubernetes/kubelet.conf;"
        "ip netns add pod; ip link add veth0 type veth peer name eth0 netns pod; ip link set veth0 up;"
        "ip addr add 10.244.9.1/24 dev veth0;"
        "ip netns exec pod sh -c 'ip link set eth0 up; ip addr add 10.244.9.2/24 dev eth0;"
        "ip route add default via 10.244.9.1'; nft add table ip other;"
        "nft 'add chain ip other c { type nat hook postrouting priority 100; }';"
        "nft add rule ip other c ip saddr 10.244.9.0/24 masquerade"
    )
    with serving(gateway):
        try:
            yield host
        finally:
            host.run("nft delete table ip other; cp /root/resolv.conf /etc/resolv.conf; rm -r /etc/kubernetes")
            host.run("ip netns del pod; nft delete table inet nodefall", check=False)


def is_found(host: RealHost, script: str) -> bool:
    return dns_server.ADDRESS in host.run(script, check=False)


@pytest.mark.parametrize("given", others_nightly([{}, {"how": "reject"}, {"traffic": "host"}], ({},)))
def test_names_are_not_found_and_afterwards_they_are(node: RealHost, tmp_path: Path, given: dict[str, Any]) -> None:
    scripts = (LOOKUP, POD_LOOKUP)
    assert [is_found(node, script) for script in scripts] == [True, True]
    during: list[bool] = []
    result = drive(
        *(node, "dns-failure", given | {"name": NAME}, tmp_path),
        then="8s",
        during=lambda _: during.extend(is_found(node, script) for script in scripts),
    )
    (step,) = result.steps
    assert (step.proof_status, step.because) == ("proven", f"{node.name} could no longer look up {NAME}")
    assert during == [False, given.get("traffic") == "host"]
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert [is_found(node, script) for script in scripts] == [True, True]


def test_large_packets_vanish_and_afterwards_they_pass(node: RealHost, three: list[RealHost], tmp_path: Path) -> None:
    address = three[1].addresses[0]

    def passing() -> list[bool]:
        """A packet of 1280 bytes, of 1281, and one of 1281 from the peer."""
        ping = "ping -n -M do -c 1 -W 1 -s"
        found = [node.run(f"{ping} {size} {address}", check=False) for size in (1252, 1253)]
        found.append(three[1].run(f"{ping} 1253 {node.addresses[0]}", check=False))
        return ["1 received" in text for text in found]

    assert passing() == [True, True, True]
    during: list[bool] = []
    result = drive(
        *(node, "mtu", {"size": 1280, "traffic": "host"}, tmp_path),
        then="8s",
        during=lambda _: during.extend(passing()),
    )
    (step,) = result.steps
    assert step.proof_status == "proven", step.because
    assert "of 1280 bytes" in step.because
    assert during == [True, False, False]
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert passing() == [True, True, True]
