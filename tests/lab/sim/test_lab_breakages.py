"""Breakages: ids, texts, one for every rule of facts 16; and the rules whose values they replace.

Each breakage violates exactly the rule that it names, and a cluster without breakages violates none.
"""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path

import msgspec
import pytest

import chaos.lab
from chaos.lab.breakages import BREAKAGES, broken
from chaos.lab.rules import Rules
from chaos.lab.spec import ControllerSpec
from tests.kit.scenes import SCENES, play
from tests.kit.simkit import spec

_LAB = Path(chaos.lab.__file__).parent
_KNOW_BREAKAGES = {"breakages.py", "facade.py", "spec.py"}
_CODE = {path: path.read_text(encoding="utf-8") for path in _LAB.rglob("*.py") if path.parent.name != "rules"}


def test_components_know_no_breakage() -> None:
    known = {str(path.relative_to(_LAB)) for path, text in _CODE.items() if "breakage" in text.lower()}
    assert known == _KNOW_BREAKAGES


@pytest.mark.parametrize("component", [item.name for item in fields(Rules)])
def test_every_value_of_the_rules_is_read(component: str) -> None:
    code = "".join(text for path, text in _CODE.items() if path.name != "breakages.py")
    unread = [item.name for item in fields(getattr(Rules(), component)) if not re.search(rf"\.{item.name}\b", code)]
    assert not unread


def test_every_breakage_replaces_something() -> None:
    without_effect = [item for item in BREAKAGES if broken(Rules(), [item]) == Rules()]
    assert not without_effect


def test_late_and_early_add_up() -> None:
    early = [item for item in BREAKAGES if item.endswith("-early") and BREAKAGES[item].seconds]
    assert len(early) > 4
    for item in early:
        late = item.removesuffix("-early") + "-late"
        if BREAKAGES[late].seconds == -BREAKAGES[item].seconds:
            assert broken(Rules(), [item, late]) == Rules()
    both = broken(Rules(), ["no-schedule-ignored", "prefer-no-schedule-ignored"])
    assert both.scheduler.ignored_effects == {"NoSchedule", "PreferNoSchedule"}


def test_every_setting_of_the_controllers_is_a_rule() -> None:
    settings = ControllerSpec(
        node_monitor_period=1.0, node_monitor_grace_period=2.0, node_eviction_rate=3.0,
        secondary_node_eviction_rate=4.0, large_cluster_size_threshold=5, unhealthy_zone_threshold=0.6,
        default_not_ready_toleration_seconds=7,
        default_unreachable_toleration_seconds=8, terminated_pod_gc_threshold=9, disable_force_detach_on_timeout=True,
    )  # fmt: skip
    changed = asdict(spec(controllers=settings).rules())
    found = {key: value for record in changed.values() for key, value in record.items()}
    assert {key: found[key] for key in settings.__struct_fields__} == msgspec.structs.asdict(settings)


def test_rules_of_a_spec() -> None:
    lifecycle = spec(breakages=["unknown-late"]).rules().node_lifecycle
    assert (lifecycle.node_monitor_grace_period, lifecycle.node_startup_grace_period) == (80.0, 90.0)
    older = spec(kubernetes="v1.31")
    assert older.rules().node_lifecycle.node_monitor_grace_period == 40.0
    assert not older.rules().node_shutdown.waits_for_volumes
    assert older.rules().node_status.status_offset == 0.0


@pytest.mark.parametrize(
    ("text", "component", "field", "value"),
    [
        ("node_lifecycle.node_eviction_rate=1", "node_lifecycle", "node_eviction_rate", 1.0),
        ("node_lifecycle.marks_unknown=false", "node_lifecycle", "marks_unknown", False),
        ('node_lifecycle.status_unknown=["A", "b"]', "node_lifecycle", "status_unknown", ("A", "b")),
        ("taint_eviction.min_toleration_time=max", "taint_eviction", "min_toleration_time", max),
        ("taint_eviction.disruption_target_reason=Gone", "taint_eviction", "disruption_target_reason", "Gone"),
        ("eviction_api.exempt_phases=[]", "eviction_api", "exempt_phases", frozenset()),
    ],
)
def test_a_written_out_replacement(text: str, component: str, field: str, value: object) -> None:
    assert getattr(getattr(spec(breakages=[text]).rules(), component), field) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node_lifecycle.node_eviction=1", "did you mean: node_eviction_rate"),
        ("node_lifecicle.marks_unknown=1", "no component 'node_lifecicle'; did you mean: node_lifecycle"),
        ("node_lifecycle.node_eviction_rate=fast", "Expected `float`, got `str`"),
        ("taint_eviction.min_toleration_time=mean", "'mean' is none of min, max"),
        ("node_lifecycle=1", "no rule '' of node_lifecycle"),
        ("=", "no component ''"),
    ],
)
def test_a_replacement_that_does_not_fit(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        broken(Rules(), [text])


def test_every_rule_can_be_broken() -> None:
    assert {item.rule for item in BREAKAGES.values()} == set(range(1, 13))


def test_ids_and_texts() -> None:
    for key, item in BREAKAGES.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)+", key)
        assert not item.seconds or key.endswith("-late" if item.seconds > 0 else "-early")
        assert item.text[0].islower() or item.text[:3] in {"Rea", "NoE", "NoS", "DEL"}
        assert not item.text.endswith(".")


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
    differing = sorted({*caught, *_ON_WINDOWS} ^ set(BREAKAGES))
    assert sorted([*caught, *_ON_WINDOWS]) == sorted(BREAKAGES), f"_CAUGHT_IN and BREAKAGES differ in {differing}"


@pytest.mark.parametrize("scene", SCENES)
def test_a_correct_cluster_violates_nothing(scene: str) -> None:
    assert play(SCENES[scene], []).violations == []


@pytest.mark.parametrize(
    ("scene", "breakage"), [(scene, item) for scene, items in _CAUGHT_IN.items() for item in items]
)
def test_a_breakage_violates_its_rule(scene: str, breakage: str) -> None:
    found = play(SCENES[scene], [breakage])
    rule = BREAKAGES[breakage].rule
    why = f"no check of rule {rule} in tests/kit/invariants.py notices it, but these: {found.violations[:5]}"
    assert rule in found.broken_rules(), why
