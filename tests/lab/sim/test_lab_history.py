"""Repeatability: the seed and the calls decide everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from tests.kit.simkit import VICTIM, run, spec, started

_SCRIPT = """
import hashlib
from tests.kit.simkit import VICTIM, run, spec, started
cluster, history = started(spec(seed=3))
cluster.machines[VICTIM].logind.power_off()
run(cluster, 60.0)
cluster.machines[VICTIM].power_on()
run(cluster, 60.0)
print(hashlib.sha256(history.lines()).hexdigest())
"""


def _history(seed: int) -> bytes:
    cluster, history = started(spec(seed=seed))
    cluster.machines[VICTIM].power_off()
    run(cluster, 400.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 60.0)
    return history.lines()


def test_same_seed_same_history_byte_for_byte() -> None:
    assert _history(5) == _history(5)


_Steps = list[tuple[float, Callable[[Machine], object]]]
DISTURBED: dict[str, _Steps] = {
    "the runtime stops": [(41.37, lambda it: it.runtime.stop_service()), (200, lambda it: it.runtime.start_service())],
    "at a whole second": [(60, lambda it: it.runtime.stop_service())],
    "frozen, then the runtime stops": [
        (33.3, lambda it: it.kubelet.freeze()), (60, lambda it: it.runtime.stop_service()),
        (80.4, lambda it: it.kubelet.thaw()),
    ],
    "a quota": [
        (33.3, lambda it: it.kubelet.cpu.limit(0.05)), (90, lambda it: it.runtime.stop_service()),
        (150, lambda it: it.kubelet.cpu.limit(None)),
    ],
    "restarted": [(33.3, lambda it: it.kubelet.restart()), (61, lambda it: it.runtime.stop_service())],
    "powered off": [
        (20, lambda it: it.power_off()), (90, lambda it: it.power_on()), (120, lambda it: it.runtime.stop_service()),
    ],
}  # fmt: skip


def _disturbed(steps: _Steps) -> bytes:
    cluster, history = started(spec(seed=5))
    begin = cluster.sim.now
    for at, act in [*steps, (300.0, lambda _: None)]:
        cluster.sim.run_until(begin + at)
        act(cluster.machines[VICTIM])
    return history.lines()


@pytest.mark.parametrize("steps", DISTURBED.values(), ids=DISTURBED)
def test_checks_of_the_runtime_that_are_left_out_change_no_history(
    steps: _Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = _disturbed(steps)
    checks = []

    def check_always(self: NodeStatusReporter) -> None:
        checks.append(self._process.node)
        if self._process.machine.runtime.is_available:
            self._runtime_seen_at = self._process.sim.now
        self._process.after(5.0, self._check_runtime)

    monkeypatch.setattr(NodeStatusReporter, "_check_runtime", check_always)
    assert _disturbed(steps) == left_out
    assert len(checks) > 150


def test_another_seed_another_history() -> None:
    assert _history(5) != _history(6)


def test_history_does_not_depend_on_the_process() -> None:
    """The history does not depend on the hash seed or other state of the process."""
    digests = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_step_sizes_do_not_matter() -> None:
    whole, first = started(spec(seed=4))
    cut, second = started(spec(seed=4))
    run(whole, 300.0)
    for _ in range(300):
        run(cut, 1.0)
    assert first.lines() == second.lines()


def test_a_quiet_cluster_writes_heartbeats_only() -> None:
    cluster, history = started(settle=60.0)
    begin = cluster.sim.now
    run(cluster, 600.0)
    plurals = {change.plural for when, change in history.changes if when >= begin}
    assert plurals == {"leases", "nodes"}
    renewals = [when for when, change in history.changes if change.plural == "leases" and when >= begin]
    assert 4 * 600 / 10.4 - 4 <= len(renewals) <= 4 * 600 / 10.0 + 4


def test_callbacks_due_together_run_in_order_and_cancelled_ones_never() -> None:
    sim = SimClock(0.0, 1)
    ran: list[str] = []
    sim.at(1.0, ran.append, "first")
    cancelled = sim.at(1.0, ran.append, "cancelled")
    sim.at(1.0, ran.append, "second")
    sim.at(2.0, ran.append, "late")
    cancelled.cancel()
    sim.run_until(1.5)
    assert (ran, sim.now, sim.next_due()) == (["first", "second"], 1.5, 2.0)
