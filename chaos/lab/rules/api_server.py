"""Rules of the API server: deletion, admission of pods, and the eviction subresource."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiServerRules:
    """pkg/registry/core/pod/strategy.go, plugin/pkg/admission, pkg/apis/core/v1/defaults.go; facts 5.6, 5.7, 10, 12.

    ``memory_pressure_qos_classes``: classes whose new pods get a toleration for the taint memory-pressure.
    """

    default_termination_grace_period_seconds: int = 30
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    memory_pressure_qos_classes: frozenset[str] = frozenset()
    delete_removes_running_pods: bool = False
    terminating_pods_expire: bool = False
    event_ttl: float = 3600.0  # --event-ttl


@dataclass(frozen=True, kw_only=True, slots=True)
class EvictionApiRules:
    """pkg/registry/core/pod/storage/eviction.go; facts 8.1. ``attempts``: of a request that conflicts with others.

    ``conflict_window``: seconds between requests that read the same version of a budget.
    """

    checks_budgets: bool = True
    decrements_budgets: bool = True
    max_disrupted_pods: int = 2000  # MaxDisruptedPodSize
    retry_after_seconds: int = 10
    conflict_window: float = 0.02
    conflict_backoff: float = 0.5  # EvictionsRetry.Duration
    disruption_target_reason: str = "EvictionByEvictionAPI"
    disruption_target_message: str = "Eviction API: evicting"
    refusal_message: str = "Cannot evict pod as it would violate the pod's disruption budget."
    multiple_budgets_message: str = (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
