"""Each breakage violates exactly the rule that it names, and a cluster without breakages violates none."""

from __future__ import annotations

import pytest

from chaos.lab.breakages import BREAKAGES
from tests.kit.scenes import SCENES, play

_CAUGHT_IN = {
    "power-cut": [
        "unknown-missing", "unknown-late", "unknown-early", "heartbeats-ignored", "pods-stay-ready",
        "no-schedule-taint-missing", "no-schedule-taint-late", "no-execute-taint-late",
        "taint-eviction-without-condition", "taint-eviction-reordered", "eviction-missing", "eviction-late",
        "eviction-early", "terminating-pod-expires", "replicaset-waits-for-removal", "replicaset-replaces-unready",
        "replacement-late", "statefulset-replaced-before-removal", "pdb-counts-unready", "no-execute-taint-missing",
        "reboot-unready",
    ],
    "shutdown": [
        "pods-unready-on-not-ready", "pod-ended-while-running", "failed-pod-stays-ready", "disruption-target-missing",
        "disruption-target-early", "disruption-target-late", "exit-code-ignored", "reason-on-succeeded",
        "shutdown-flag-survives", "state-file-lost", "gauges-late", "gauges-early", "buckets-reordered",
        "buckets-parallel", "bucket-serial", "empty-bucket-waited", "lock-release-early", "lock-release-late",
    ],
    "shutdown-with-volumes": ["volumes-not-waited"],
    "busy-shutdown": ["bucket-timer-ignored"],
    "signals": ["cancellation-at-once", "cancellation-late", "signals-reordered"],
    "two-of-six": ["limiter-missing"],
    "partial": ["partial-disruption-ignored", "limiter-reordered"],
    "whole": ["full-disruption-ignored"],
    "swap": ["countdown-restarts-on-swap"],
    "untaint": ["countdown-survives-untaint"],
    "controller-restart": ["countdown-survives-restart"],
    "orphans": ["pod-gc-without-failed", "orphan-removal-late", "orphan-removal-early"],
    "deletions": ["delete-removes-running-pod", "pod-removal-late", "pod-removal-early"],
    "dead-volumes": [
        "volume-detached-while-mounted", "detach-clock-from-deletion", "forced-detach-late", "forced-detach-early",
    ],
    "out-of-service": ["out-of-service-ignored"],
    "daemons": ["daemonset-ignores-taints"],
    "registered-again": ["capacity-missing", "register-taints-missing"],
    "scheduled": ["schedule-announced"],
    "new-pods": ["no-schedule-ignored", "prefer-no-schedule-ignored", "memory-pressure-tolerated"],
    "stale": ["stale-disruption-late", "stale-disruption-early"],
    "evictions": ["pdb-ignored", "pdb-not-decremented", "pdb-counts-terminating", "pdb-recompute-late"],
    "no-logind": ["gauges-without-dbus"],
}  # fmt: skip
# Of Windows nodes, which no scene has: experiments notice them (tests/experiments).
_ON_WINDOWS = ["late-abort-accepted", "nssm-notified", "preshutdown-ignored", "preshutdown-timeout-ignored"]


def test_every_breakage_has_a_scene() -> None:
    caught = [item for items in _CAUGHT_IN.values() for item in items]
    assert sorted([*caught, *_ON_WINDOWS]) == sorted(BREAKAGES)


@pytest.mark.parametrize("scene", SCENES)
def test_a_correct_cluster_violates_nothing(scene: str) -> None:
    assert play(SCENES[scene], []).violations == []


@pytest.mark.parametrize(
    ("scene", "breakage"), [(scene, item) for scene, items in _CAUGHT_IN.items() for item in items]
)
def test_a_breakage_violates_its_rule(scene: str, breakage: str) -> None:
    found = play(SCENES[scene], [breakage])
    assert BREAKAGES[breakage].rule in found.broken_rules(), found.violations[:5]
