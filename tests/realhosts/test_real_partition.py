"""A partition on real machines: felt in both directions over both families, by the host and by pods; and gone again."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from chaos.machines.pool import Hosts
from tests.kit.drive import drive
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
POD4, POD6 = "10.244.9.2", "fd00:244:9::2"
OTHERS = """
nft add table inet other
nft 'add chain inet other c { type filter hook input priority 5; }'
nft add rule inet other c tcp dport 9 counter drop
iptables -N MINE; iptables -A MINE -p tcp --dport 9 -j DROP
"""
RULES = "nft list table inet other; iptables -S; ip6tables -S"


@pytest.fixture
def pair(three: list[RealHost]) -> Iterator[tuple[RealHost, RealHost]]:
    """A node with a pod in a separate network namespace, and its control plane; foreign rules."""
    node, plane = three[0], three[1]
    plane.run("systemd-run --unit=api --collect socat TCP6-LISTEN:6443,fork,reuseaddr,ipv6only=0 EXEC:/bin/true")
    node.run(f"mkdir -p /etc/kubernetes; echo '    server: https://{plane.name}:6443' > /etc/kubernetes/kubelet.conf")
    node.run(
        "ip netns add pod; ip link add veth0 type veth peer name eth0 netns pod; ip link set veth0 up;"
        "ip addr add 10.244.9.1/24 dev veth0; ip -6 addr add fd00:244:9::1/64 dev veth0 nodad;"
        f"ip netns exec pod sh -c 'ip link set eth0 up; ip addr add {POD4}/24 dev eth0;"
        f"ip -6 addr add {POD6}/64 dev eth0 nodad; ip route add default via 10.244.9.1;"
        "ip -6 route add default via fd00:244:9::1'"
    )
    v4, v6 = node.addresses
    plane.run(f"ip route add 10.244.9.0/24 via {v4}; ip -6 route add fd00:244:9::/64 via {v6}")
    node.run(OTHERS)
    before = node.run(RULES)
    yield node, plane
    assert node.run(RULES) == before, "rules of others have changed"
    node.run("nft delete table inet other; iptables -F MINE; iptables -X MINE; ip netns del pod")
    node.run("rm -r /etc/kubernetes; nft delete table inet nodefall", check=False)
    plane.run("systemctl stop api; ip route del 10.244.9.0/24; ip -6 route del fd00:244:9::/64")


def ping(host: RealHost, address: str, namespace: str = "") -> bool:
    inside = f"ip netns exec {namespace} " if namespace else ""
    return "1 received" in host.run(f"{inside}ping -c 1 -W 1 {address}", check=False)


def passing(node: RealHost, plane: RealHost) -> dict[str, bool]:
    """Which traffic passes, by who asks whom over which family."""
    found: dict[str, bool] = {}
    for family, (mine, theirs, pod) in {
        "ipv4": (node.addresses[0], plane.addresses[0], POD4),
        "ipv6": (node.addresses[1], plane.addresses[1], POD6),
    }.items():
        found |= {
            f"node to plane, {family}": ping(node, theirs),
            f"plane to node, {family}": ping(plane, mine),
            f"pod to plane, {family}": ping(node, theirs, "pod"),
            f"plane to pod, {family}": ping(plane, pod),
        }
    return found


def lost(traffic: dict[str, bool]) -> set[str]:
    return {name for name, passes in traffic.items() if not passes}


def test_nothing_passes_and_afterwards_everything(pair: tuple[RealHost, RealHost], tmp_path: Path) -> None:
    node, plane = pair
    assert lost(passing(node, plane)) == set()
    during: dict[str, bool] = {}

    def inspect(_: Hosts) -> None:
        during.update(passing(node, plane))
        during["pod to its node"] = not ping(node, "10.244.9.1", "pod")  # never cut

    result = drive(node, "partition", {"duration": "100s"}, tmp_path, during=inspect)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert "over no address family" in step.because
    assert lost(during) == during.keys()
    assert len(during) == 9
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert lost(passing(node, plane)) == set()
    assert "nodefall" not in node.run("systemctl list-units --all --no-legend 'nodefall-*'; nft list tables")


@pytest.mark.parametrize(
    ("given", "cut"),
    [
        ({"direction": "in", "traffic": "host"}, {"node", "plane to node"}),
        ({"traffic": "pods"}, {"pod", "plane to pod"}),
    ],
)
def test_only_the_selected_traffic(
    pair: tuple[RealHost, RealHost], tmp_path: Path, given: dict[str, str], cut: set[str]
) -> None:
    node, plane = pair
    during: dict[str, bool] = {}
    result = drive(node, "partition", given, tmp_path, during=lambda _: during.update(passing(node, plane)))
    assert lost(during) == {name for name in during if any(name.startswith(start) for start in cut)}
    (step,) = result.steps
    assert step.proof_status == "proven", step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers


@pytest.mark.nightly
def test_a_node_in_the_network_that_is_cut_still_reaches_itself(
    pair: tuple[RealHost, RealHost], tmp_path: Path
) -> None:
    """Its kubelet asks its own pods and its own static pods at the node's address."""
    node, plane = pair
    networks = [f"{node.addresses[0]}/16", f"{node.addresses[1]}/64"]
    during: dict[str, bool] = {}

    def inspect(_: Hosts) -> None:
        during.update({address: ping(node, address) for address in node.addresses})
        during["others"] = ping(node, plane.addresses[0]) or ping(node, plane.addresses[1])

    given = {"from": "cidr", "cidrs": networks}
    result = drive(node, "partition", given, tmp_path, during=inspect, then="12s")
    assert during == dict.fromkeys(node.addresses, True) | {"others": False}
    assert result.steps[0].proof_status == "proven", result.steps[0].because
    assert "0 of 10 pings" in result.steps[0].because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers


def _run_until_killed(node: RealHost, folder: Path) -> None:
    drive(node, "partition", {"duration": "8s"}, folder, during=lambda _: os.kill(os.getpid(), signal.SIGKILL))


def test_a_dead_controller_leaves_a_node_that_heals_itself(pair: tuple[RealHost, RealHost], tmp_path: Path) -> None:
    """Both families are back within a second of the deadline."""
    node, plane = pair
    v4, v6 = plane.addresses
    node.run(f"(ping -D -O -i 0.1 {v4} > /tmp/v4 & ping -D -O -i 0.1 {v6} > /tmp/v6 &) >/dev/null 2>&1")
    child = multiprocessing.get_context("spawn").Process(target=_run_until_killed, args=(node, tmp_path))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    timer = node.run("systemctl list-units --all --plain --no-legend --type=timer 'nodefall-*'").split()[0]
    planted = f"systemctl show -p ActiveEnterTimestamp --timestamp=us+utc --value {timer} | date -u -f - +%s.%N"
    due = float(node.run(planted)) + 8
    time.sleep(10)
    node.run("pkill ping", check=False)
    for family in ("v4", "v6"):
        replies = [float(t) for t in re.findall(r"\[(\d+\.\d+)\] 64 bytes", node.run(f"cat /tmp/{family}"))]
        gap, back = max((after - before, after) for before, after in pairwise(replies))
        assert gap > 3, "the cut was not felt"
        assert -0.5 < back - due < 1.0, (family, back - due)
    assert "nodefall" not in node.run("nft list tables")
