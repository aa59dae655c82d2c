"""Invariants of facts 16, checked while a simulated cluster runs. Read-only: the history does not change."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from tests.kit import invariants_nodes as nodes
from tests.kit import invariants_pods as pods
from tests.kit import invariants_shutdown as shutdown
from tests.kit.invariants_world import Violation, World

RULES: dict[int, tuple[Callable[[World, Change], None], ...]] = {
    1: (
        nodes.kubelet_writes_ready,
        nodes.kubelets_register_what_they_have,
        nodes.ready_false_has_a_cause,
        nodes.unknown_in_its_window,
        nodes.pods_follow_unknown_only,
        nodes.no_schedule_taints_follow_conditions,
        nodes.taint_eviction_sets_the_condition_first,
        nodes.pod_gc_keeps_quarantine,
    ),
    2: (pods.removal, pods.removal_is_prompt),
    3: (pods.terminal_phase, pods.kubelets_disruption_target),
    4: (pods.exit_codes,),
    5: (shutdown.shutdown_state_follows_a_signal,),
    6: (shutdown.event_loop,),
    7: (shutdown.buckets, shutdown.ends_with_the_last_pod),
    8: (nodes.limiter,),
    9: (nodes.countdown,),
    10: (pods.record_in_use, pods.detach),
    11: (
        pods.replicasets,
        pods.statefulsets,
        pods.daemonsets,
        pods.scheduler_respects_taints,
        pods.no_memory_pressure_tolerations,
    ),
    12: (pods.evictions_take, pods.budgets_are_recomputed, pods.stale_disruptions_are_reset),
}


class Checker:
    """Checker of all rules; to be created before :meth:`Cluster.start`."""

    def __init__(self, cluster: Cluster) -> None:
        self.world = World(cluster)
        self._version = 0
        cluster.store.subscribe(self._on_change)
        self.world.on_process(shutdown.gauges)
        self.world.on_signal(shutdown.cancellation_is_prompt)
        self.world.on_release(shutdown.lock_release)
        self.world.on_restart(nodes.restart_countdowns)
        self.world.on_restart(pods.forget_deleted_nodes)

    @property
    def violations(self) -> list[Violation]:
        return self.world.violations

    def broken_rules(self) -> set[int]:
        return {violation.rule for violation in self.violations}

    def _on_change(self, change: Change) -> None:
        assert change.version > self._version
        self._version = change.version
        for rules in RULES.values():
            for rule in rules:
                rule(self.world, change)
