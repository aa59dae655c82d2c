"""Invariants of facts 16 during random sequences of operations, and recovery; parsers under random input."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.metrics import go_float, read_state_file, state_file
from chaos.lab.node.kubelet.pod_worker import Bucket, group_by_priority
from chaos.lab.node.logind import LogindError
from chaos.lab.node.machine import Machine
from chaos.lab.objects import parse_quantity
from chaos.lab.rules import NodeShutdownRules
from chaos.lab.sim import SimClock
from chaos.lab.spec import SpecError, parse_duration
from tests.kit.invariants import Checker
from tests.kit.simkit import History, events, ready, run, spec, started, taints

RULES = NodeShutdownRules()

_READY = {"deployments": "readyReplicas", "statefulsets": "readyReplicas", "daemonsets": "numberReady"}


def _schedule(machine: Machine, sim: SimClock) -> None:
    machine.logind.schedule("reboot", sim.now + 20.0)


_OPERATIONS: list[Callable[[Machine, SimClock], object]] = [
    lambda machine, _: machine.logind.power_off(),
    lambda machine, _: machine.logind.reboot(),
    lambda machine, _: machine.power_off(),
    lambda machine, _: machine.power_on(),
    lambda machine, _: machine.logind.emit_prepare_for_shutdown(True),
    lambda machine, _: machine.logind.emit_prepare_for_shutdown(False),
    lambda machine, _: machine.logind.cancel_scheduled(),
    lambda machine, _: machine.logind.restart(),
    lambda machine, _: machine.kubelet.restart() if machine.state == "on" else None,
    lambda machine, _: machine.kubelet.stop(),
    lambda machine, _: machine.kubelet.kill() if machine.kubelet.is_running else None,
    lambda machine, _: machine.kubelet.freeze() if machine.kubelet.is_running else None,
    lambda machine, _: machine.kubelet.thaw() if machine.kubelet.is_running else None,
    lambda machine, _: machine.partition(),
    lambda machine, _: machine.partition(["ipv4"], ["in"]),
    lambda machine, _: machine.heal(),
    lambda machine, _: machine.runtime.stop_service(),
    lambda machine, _: machine.runtime.start_service(),
    lambda machine, _: machine.logind.restart_bus(),
    lambda machine, _: machine.pressure.add("memory"),
    lambda machine, _: machine.reset(),
    lambda machine, _: machine.crash(),
    _schedule,
]


def _play(seed: int) -> tuple[Cluster, History, Checker]:
    """Run thirty operations on random machines, up to a minute apart; then power on and restart everything."""
    dice = random.Random(seed)  # noqa: S311
    checkers: list[Checker] = []
    lab = spec(seed=seed, systemd=dice.choice([252, 257]))
    cluster, history = started(lab, watch=lambda new: checkers.append(Checker(new)))
    for _ in range(30):
        machine = cluster.machines[dice.choice(list(cluster.machines))]
        if machine.is_reachable or machine.state == "off":
            try:
                dice.choice(_OPERATIONS)(machine, cluster.sim)
            except LogindError:
                assert machine.logind.preparing_for_shutdown or not machine.logind.is_running
        run(cluster, dice.choice([0.01, 0.5, 3.0, 12.0, 60.0]))
    run(cluster, 60.0)
    for machine in cluster.machines.values():
        machine.logind.cancel_scheduled()
        machine.heal()
        machine.runtime.start_service()
        machine.pressure.clear()
        if not machine.is_reachable:  # off, crashed, or booting
            machine.reset()
        machine.power_on()
    run(cluster, 60.0)
    for machine in cluster.machines.values():
        machine.power_on()
        machine.kubelet.restart()
    run(cluster, 400.0)
    return cluster, history, checkers[0]


@pytest.mark.parametrize("seed", range(1, 13))
def test_invariants_hold_and_the_cluster_recovers(seed: int) -> None:
    cluster, history, checker = _play(seed)
    assert checker.violations == []
    versions = [change.version for _, change in history.changes]
    assert versions == sorted(set(versions))
    for obj in cluster.store.list("nodes"):
        assert ready(obj)["status"] == "True"
        assert taints(obj) <= {("node-role.kubernetes.io/control-plane", "NoSchedule")}
    for machine in cluster.machines.values():
        assert [item["who"] for item in machine.logind.inhibitors()] == ["kubelet"]
    for plural, key in (
        ("deployments", "readyReplicas"),
        ("statefulsets", "readyReplicas"),
        ("daemonsets", "numberReady"),
    ):
        for obj in cluster.store.list(plural):
            wanted = obj["spec"].get("replicas", 4)
            assert obj["status"].get(key) == wanted, obj["metadata"]["name"]
    assert events(cluster, "Starting")


@given(st.floats(min_value=-1e18, max_value=1e18, allow_nan=False))
def test_numbers_round_trip(value: float) -> None:
    assert float(go_float(value)) == value


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999), st.booleans())
def test_state_file_round_trip(start: int, micros: int, finished: bool) -> None:
    end = start + 30 if finished else None
    assert read_state_file(state_file(start + micros / 1e6, end)) == (start, end or 0)


@given(st.text(max_size=12))
def test_parsers_raise_their_documented_error(text: str) -> None:
    for parse, error in ((parse_duration, SpecError), (parse_quantity, ValueError)):
        try:
            parse(text)
        except error:
            continue


@given(
    st.lists(st.integers(-10, 2_000_001_000), min_size=1, unique=True),
    st.lists(st.integers(-(2**31), 2**31 - 1)),
)
def test_every_pod_is_in_one_bucket_and_order_is_stable(starts: list[int], priorities: list[int]) -> None:
    buckets = [Bucket(priority, 1) for priority in sorted(starts)]
    groups = group_by_priority(
        buckets, [(priority, index) for index, priority in enumerate(priorities)], NodeShutdownRules()
    )
    assert sorted(index for members in groups for index in members) == list(range(len(priorities)))
    for lower, upper in pairwise(groups):
        assert not lower or not upper or max(priorities[i] for i in lower) < min(priorities[i] for i in upper)
