"""Rules of a one-way partition in a kernel: which packets arrive, and that the other direction is lost alone.

Two network namespaces stand for a node and its peer; no daemon is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from chaos.faults.actions._packetfilter import TABLE, BlockRule, ruleset

pytestmark = [pytest.mark.root, pytest.mark.timeout(60)]
NODE, PEER = f"nf-node-{os.getpid()}", f"nf-peer-{os.getpid()}"
ECHOS = 10
SETUP = f"""set -e
ip netns add {NODE}; ip netns add {PEER}
ip link add v1 netns {NODE} type veth peer name v2 netns {PEER}
ip -n {NODE} addr add 10.9.0.1/24 dev v1; ip -n {PEER} addr add 10.9.0.2/24 dev v2
ip -n {NODE} link set v1 up; ip -n {PEER} link set v2 up; ip -n {NODE} link set lo up
"""


def run(script: str, stdin: str = "", check: bool = True) -> str:
    done = subprocess.run(["sh", "-c", script], input=stdin, capture_output=True, text=True, timeout=30, check=False)
    assert not check or not done.returncode, done.stderr
    return done.stdout


@pytest.fixture
def _namespaces() -> Iterator[None]:
    if absent := [name for name in ("ip", "nft", "ping") if not shutil.which(name)]:
        pytest.skip(f"there is no {' and no '.join(absent)}")
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    try:
        run(SETUP)
        yield
    finally:
        run(f"ip netns del {NODE}; ip netns del {PEER}", check=False)


def echos() -> tuple[int, int]:
    """Echo requests of the peer that arrived at the node, and replies that returned to the peer."""
    arrived = _icmp(NODE, "InEchos")
    ping = run(f"ip netns exec {PEER} ping -n -q -c {ECHOS} -i 0.02 -W 1 10.9.0.1", check=False)
    return _icmp(NODE, "InEchos") - arrived, int(ping.split(" received")[0].split()[-1])


def _icmp(namespace: str, name: str) -> int:
    lines = [line for line in run(f"ip netns exec {namespace} cat /proc/net/snmp").splitlines() if "Icmp:" in line]
    return int(dict(zip(lines[0].split(), lines[1].split(), strict=True))[name])


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize(("direction", "arriving"), [("in", 0), ("out", ECHOS)])
def test_each_direction_is_dropped_alone(direction: str, arriving: int) -> None:
    assert echos() == (ECHOS, ECHOS)
    rules = ruleset(BlockRule(peers=["10.9.0.2"], directions=(direction,), pods=False))
    run(f"ip netns exec {NODE} nft -f -", rules)
    assert echos() == (arriving, 0)
    run(f"ip netns exec {NODE} nft delete table {TABLE}")
    assert echos() == (ECHOS, ECHOS)
