"""Packets that a kernel delays, drops, changes, doubles and slows, in each direction: what is asked and measured.

The peers are the gateway and the name server that QEMU emulates: they answer pings by themselves.
"""

from __future__ import annotations

import json
import re
import socketserver
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from chaos.core.ports import Clock
from tests.kit.drive import drive
from tests.kit.kind_standin import StandIn, zoned_node
from tests.kit.vms import VirtualMachine

pytestmark = [pytest.mark.root, pytest.mark.nightly, pytest.mark.vm, pytest.mark.timeout(900)]
PEER, NEAR = "10.0.2.2", "10.0.2.3"
PINGS, BURST = 200, 25
SECONDS = 300.0  # for a command: an emulated machine is slow where others are busy
STATE = "tc -j qdisc show; ip -j link show | tr ',' '\\n' | grep ifname; ls /run/systemd/transient 2> /dev/null || true"
# Figures of the pings that this test sends beside those of the proof: the least and the most that is right.
# Shares are by chance.
CASES: list[tuple[str, dict[str, Any], str, float, float]] = [
    ("latency", {"delay": "200ms", "jitter": "20ms"}, "shortest", 175, 210),
    ("latency", {"delay": "200ms", "direction": "both"}, "shortest", 398, 440),
    ("packet-loss", {"percent": 30}, "lost", 18, 42),
    ("packet-loss", {"percent": 30, "direction": "in"}, "lost", 18, 42),
    ("packet-loss", {"percent": 30, "from": "cidr", "cidrs": [f"{PEER}/31"]}, "lost", 18, 42),
    ("packet-corrupt", {"percent": 30}, "lost", 16, 40),
    ("packet-duplicate", {"percent": 30, "direction": "in"}, "twice", 18, 42),
    ("bandwidth", {"rate": "1mbit"}, "kbit", 600, 1250),
    ("bandwidth", {"rate": "128kbit", "direction": "in"}, "kbit", 75, 160),
]

BETWEEN_ZONES: list[tuple[str, dict[str, Any], str, float, float]] = [
    ("latency", {"delay": "200ms"}, "shortest", 195, 230),
    ("packet-loss", {"percent": 30}, "lost", 18, 42),
    ("partition", {}, "lost", 100, 100),
]


@pytest.fixture(scope="module")
def node(machine: VirtualMachine) -> Iterator[VirtualMachine]:
    """With the kubeconfig of a kubelet whose API server is the peer, where something accepts connections."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://{PEER}:{server.server_address[1]}"
        machine.run(f"mkdir -p /etc/kubernetes; echo '    server: {url}' > /etc/kubernetes/kubelet.conf")
        yield machine
        machine.run("rm -r /etc/kubernetes")
        server.shutdown()


def measure(node: VirtualMachine, what: str, peer: str = PEER) -> float:
    """Shortest round trip in ms, as an emulated machine is late now and then; lost pings and those answered twice in
    percent; kbit/s of those sent at once.
    """
    if what == "kbit":
        text = node.run(f"ping -n -q -l {BURST} -c {BURST} -s 1400 -S 200000 -W 20 {peer}", False, SECONDS)
        longest = float(re.findall(r"= [\d.]+/[\d.]+/([\d.]+)/", text)[0])
        return 8 * (BURST * 1442 - 6000) / longest
    text = node.run(f"ping -n -q -i 0.02 -W 3 -c {PINGS} {peer}", False, SECONDS)
    if what == "shortest":
        return float(re.findall(r"= ([\d.]+)/", text)[0])
    found = re.search(r"(\d+) received(?:, \+(\d+) duplicates)?", text)
    assert found
    return 100 * (PINGS - int(found[1]) if what == "lost" else int(found[2] or 0)) / PINGS


@pytest.mark.parametrize(("action", "given", "what", "least", "most"), CASES)
def test_the_effect_is_measured_and_undone(
    node: VirtualMachine, tmp_path: Path, action: str, given: dict[str, Any], what: str, least: float, most: float
) -> None:
    def standin(clock: Clock) -> StandIn:
        return StandIn(node, clock, {})

    seen: list[float] = []
    before = node.run(STATE)
    result = drive(
        *(node, action, given, tmp_path),
        then="15s",
        max_duration="10m",
        standin=standin,
        during=lambda _: seen.append(measure(node, what)),
    )
    (step,) = result.steps
    usual = measure(node, what)
    print(f"{action} {json.dumps(given)}: {what} {seen[0]:.1f}, {usual:.1f} after; {step.because}")  # noqa: T201
    assert step.proof_status == "proven", step.because
    assert result.undo
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert node.run(STATE) == before
    assert least <= seen[0] <= most
    assert not least <= usual <= most


@pytest.mark.parametrize(("action", "given", "what", "least", "most"), BETWEEN_ZONES)
def test_only_other_zones_are_hit(
    node: VirtualMachine, tmp_path: Path, action: str, given: dict[str, Any], what: str, least: float, most: float
) -> None:
    """One node in another zone, one in the node's own: that one is as fast and as reliable as ever."""
    others = [zoned_node("far", PEER, "west"), zoned_node("near", NEAR, "east")]

    def standin(clock: Clock) -> StandIn:
        return StandIn(node, clock, {}, others=others, zone="east")

    seen: list[tuple[float, float]] = []
    before = node.run(STATE)
    result = drive(
        *(node, action, {**given, "from": "other-zones"}, tmp_path),
        then="15s",
        max_duration="10m",
        standin=standin,
        during=lambda _: seen.append((measure(node, what), measure(node, what, NEAR))),
    )
    (step,) = result.steps
    (far, near), usual = seen[0], measure(node, what)
    print(f"{action} {json.dumps(given)}: {what} {far:.1f}, own zone {near:.1f}, {usual:.1f} after; {step.because}")  # noqa: T201
    assert step.proof_status == "proven", step.because
    assert action == "partition" or "own zone" in str(step.because)
    assert result.undo
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert node.run(STATE) == before
    assert least <= far <= most
    assert near < least
    assert usual < least


QDISC = "tc qdisc add dev eth0 clsact; tc filter add dev eth0 ingress pref 9 matchall action pass"


def test_filters_of_others_for_inbound_packets(node: VirtualMachine, tmp_path: Path) -> None:
    """As those of Cilium: refused where inbound packets are to be hit, else left alone."""
    node.run(QDISC)
    try:
        before = node.run("tc -s filter show dev eth0 ingress | grep -c matchall; tc -j qdisc show")

        def standin(clock: Clock) -> StandIn:
            return StandIn(node, clock, {})

        with pytest.raises(Exception, match="clsact ffff:"):
            drive(node, "packet-loss", {"percent": 30, "direction": "in"}, tmp_path, standin=standin)
        result = drive(node, "packet-loss", {"percent": 50}, tmp_path, then="15s", standin=standin)
        assert result.steps[0].proof_status == "proven", result.steps[0].because
        assert all(undo.proven for undo in result.undo), result.leftovers
        assert node.run("tc -s filter show dev eth0 ingress | grep -c matchall; tc -j qdisc show") == before
    finally:
        node.run("tc qdisc del dev eth0 clsact")
