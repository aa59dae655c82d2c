"""Rules of the API server, kube-controller-manager and kube-scheduler. Times in seconds, rates in nodes per second.

Fields that are also flags get their values from a LabSpec's ``controllers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Literal

from chaos.lab.objects import NETWORK_UNAVAILABLE, NOT_READY, OUT_OF_SERVICE, UNREACHABLE, UNSCHEDULABLE

EvictionStep = Literal["add-disruption-target", "delete"]


def _no_execute_taints() -> Mapping[str, str]:
    return {"False": NOT_READY, "Unknown": UNREACHABLE}


def _pressure_taints() -> Mapping[str, str]:
    return {
        "MemoryPressure": "node.kubernetes.io/memory-pressure",
        "DiskPressure": "node.kubernetes.io/disk-pressure",
        "PIDPressure": "node.kubernetes.io/pid-pressure",
        "NetworkUnavailable": NETWORK_UNAVAILABLE,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLifecycleRules:
    """pkg/controller/nodelifecycle/node_lifecycle_controller.go and scheduler/; facts 5.2 to 5.5.

    ``node_conditions``: set to Unknown together. ``ready_taints``: taint by status of Ready.
    ``pods_unready_on_not_ready``: pods turn unready also when the kubelet itself reports its node as not Ready.
    ``zone_states_first``: zone states are evaluated at the start of a pass instead of at its end.
    ``full_zone_is_partial``: a zone without a healthy node is tainted at the rate of a partial disruption.
    ``deletes_unknown_nodes``: as a cloud controller does with the Node of a machine that is gone.
    ``taints_within_pass``: nodes that a pass queues may be tainted before it evaluates zone states, by the loop that
    runs every 100 ms beside it: a race, which long passes lose. The taint stays, as the cache does not have it yet.
    """

    node_monitor_period: float = 5.0
    node_monitor_grace_period: float = 50.0
    node_startup_grace_period: float = 60.0
    node_eviction_rate: float = 0.1  # evictionLimiterQPS
    secondary_node_eviction_rate: float = 0.01  # secondaryEvictionLimiterQPS
    large_cluster_size_threshold: int = 50  # largeClusterThreshold
    unhealthy_zone_threshold: float = 0.55
    partial_disruption_above: int = 2  # unready nodes; ComputeZoneState
    node_conditions: tuple[str, ...] = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    status_unknown: tuple[str, str] = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    status_never_updated: tuple[str, str] = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    unreachable_status: str = "Unknown"
    deletes_unknown_nodes: bool = False
    ready_taints: Mapping[str, str] = field(default_factory=_no_execute_taints)
    pressure_taints: Mapping[str, str] = field(default_factory=_pressure_taints)
    unschedulable_taint: str = UNSCHEDULABLE
    condition_taint_effect: str = "NoSchedule"  # of all but those of Ready
    counts_heartbeats: bool = True
    marks_unknown: bool = True
    marks_pods_not_ready: bool = True
    pods_unready_on_not_ready: bool = False
    adds_no_schedule_taints: bool = True
    no_schedule_taint_delay: float = 0.0
    removes_no_schedule_taints: bool = True
    lasting_taints: frozenset[str] = frozenset()  # with effect NoSchedule
    adds_no_execute_taints: bool = True
    no_execute_statuses: frozenset[str] = frozenset({"False", "Unknown"})  # of Ready
    no_execute_taint_delay: float = 0.0
    removes_no_execute_taints: bool = True
    limits_evictions: bool = True
    slows_in_partial_disruption: bool = True
    stops_in_full_disruption: bool = True
    resumes_after_full_disruption: bool = True
    full_zone_is_partial: bool = False
    per_zone: bool = True  # else all nodes are one zone
    removes_out_of_service: bool = False  # from a node that is Ready
    zone_states_first: bool = False
    taints_within_pass: bool = False
    allocate_node_cidrs: bool = False
    cidr_allocation_delay: float = 0.0
    shares_node_cidrs: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TaintEvictionRules:
    """pkg/controller/tainteviction/taint_eviction.go; facts 5.6.

    ``min_toleration_time``: of the tolerationSeconds for several taints; ``max_toleration_seconds``: longer ones are
    cut. ``restart_forgets_countdowns``: a new process handles every taint again. ``swap_restarts_countdown``: a pod's
    countdown starts again with the other taint.
    ``unlimited_toleration_seconds``: of a toleration without tolerationSeconds; None: for ever. ``effects``: of taints
    that evict. ``grace_period_seconds``: of the deletion; None: the pod's own.
    """

    evicts: bool = True
    heeds_tolerations: bool = True
    eviction_delay: float = 0.0
    min_toleration_time: Callable[[Iterable[float]], float] = min
    max_toleration_seconds: float = inf
    grace_period_seconds: int | None = None  # of the DELETE; None for that of the pod
    steps: tuple[EvictionStep, EvictionStep] = ("add-disruption-target", "delete")
    adds_disruption_target: bool = True
    disruption_target_reason: str = "DeletionByTaintManager"
    disruption_target_message: str = "Taint manager: deleting due to NoExecute taint"
    untaint_cancels: bool = True
    swap_restarts_countdown: bool = False
    restart_forgets_countdowns: bool = True
    effects: frozenset[str] = frozenset({"NoExecute"})
    unlimited_toleration_seconds: float | None = None
    heeds_budgets: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PodGcRules:
    """pkg/controller/podgc/gc_controller.go; facts 6 and 11.

    ``collects_unready``: terminating pods of a node that is not Ready. ``pod_ttl``: running pods that are older are
    removed; None: none is.
    """

    gc_check_period: float = 20.0
    quarantine_time: float = 40.0
    terminated_pod_gc_threshold: int = 12500
    collects_orphans: bool = True
    collects_out_of_service: bool = True
    out_of_service_taint: str = OUT_OF_SERVICE
    out_of_service_needs_unready: bool = True
    out_of_service_needs_deletion: bool = True  # of the pods; otherwise all of the node are deleted
    removes_out_of_service_taint: bool = False  # with the pods
    out_of_service_effects: frozenset[str] = frozenset({"NoExecute", "NoSchedule"})
    sets_failed: bool = True
    terminal_phase: str = "Failed"
    disruption_target_reason: str = "DeletionByPodGC"
    disruption_target_message: str = "PodGC: node no longer exists"
    adds_disruption_target: bool = True
    collects_unready: bool = False
    pod_ttl: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DisruptionRules:
    """pkg/controller/disruption/disruption.go; facts 8.2 and 9.

    ``expects_scale``: the expected pods are those of spec.replicas of the pods' controllers, not those that exist;
    ``finds_deployments``: those of the Deployment, not of its ReplicaSets. ``extra_disruptions``: allowed beyond the
    budget. ``reads_percentages``: as numbers otherwise.
    """

    recompute_delay: float = 0.0
    counts_unready: bool = False
    counts_terminating: bool = False
    round_percentage: Callable[[float], int] = ceil
    disruption_allowed_reasons: tuple[str, str] = ("SufficientPods", "InsufficientPods")
    deletion_timeout: float = 120.0  # DeletionTimeout
    resets_stale_targets: bool = True
    stale_pod_disruption_timeout: float = 120.0
    expects_scale: bool = True
    finds_deployments: bool = True
    extra_disruptions: int = 0
    reads_percentages: bool = True
    heeds_selectors: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachDetachRules:
    """pkg/controller/volume/attachdetach; facts 6 and 7. ``clock_starts_at_deletion``: of the forced detach."""

    max_wait_for_unmount_duration: float = 360.0
    disable_force_detach_on_timeout: bool = False
    out_of_service_taint: str = OUT_OF_SERVICE
    heeds_out_of_service: bool = True
    forced_detach_needs_unready: bool = True
    waits_for_unmount: bool = True
    waits_for_pods: bool = True  # that use the volume, also on a node out of service
    out_of_service_delay: float = 0.0
    attaches_to_many: bool = False  # volumes of any access mode
    clock_starts_at_deletion: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadRules:
    """Controllers of ReplicaSets, StatefulSets, DaemonSets and Jobs; facts 5.7.

    ``terminating_replicas_count``, ``unready_replicas_count``: pods that stand for a replica of a ReplicaSet.
    ``stateful_set_force_deletes``: terminating pods, so that their names are free.
    ``daemon_tolerations``: key and effect, of every daemon pod; ``host_network_daemon_tolerations``: of those that use
    the network of the host. ``daemon_toleration_seconds``: of the ones for NoExecute. ``keeps_own_tolerations``: those
    of the DaemonSet's template. ``daemons_ignore_taints``: of the nodes.
    ``daemon_backoff``, ``job_backoff``: the first and the longest delay after a failed pod.
    ``ordinals_start``: the first one of a StatefulSet without spec.ordinals. ``missing_ordinal``: is not created.
    ``rollouts_heed_budgets``: kinds whose rollouts replace no pod that a budget protects. ``collection_heeds_budgets``:
    with a deleted workload no such pod is deleted.
    ``replaces_stateful_pods``: that are gone.
    """

    replacement_delay: float = 0.0
    terminating_replicas_count: bool = False
    unready_replicas_count: bool = True
    stateful_set_force_deletes: bool = False
    daemons_ignore_taints: bool = False
    daemon_tolerations: tuple[tuple[str, str], ...] = (
        (NOT_READY, "NoExecute"),
        (UNREACHABLE, "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        (UNSCHEDULABLE, "NoSchedule"),
    )
    host_network_daemon_tolerations: tuple[tuple[str, str], ...] = ((NETWORK_UNAVAILABLE, "NoSchedule"),)
    daemon_toleration_seconds: int | None = None
    keeps_own_tolerations: bool = True
    daemon_backoff: tuple[float, float] = (1.0, 900.0)
    job_backoff: tuple[float, float] = (10.0, 600.0)  # DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff
    ordinals_start: int = 0
    missing_ordinal: int | None = None
    rollouts_heed_budgets: frozenset[str] = frozenset()
    collection_heeds_budgets: bool = False
    replaces_stateful_pods: bool = True
    jobs_heed_failure_policy: bool = True


def _priority_classes() -> Mapping[str, int]:
    return {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiServerRules:
    """pkg/registry/core/pod/strategy.go, plugin/pkg/admission, pkg/apis/core/v1/defaults.go; facts 5.6, 5.7, 10, 12.

    ``memory_pressure_qos_classes``: classes whose new pods get a toleration for the taint memory-pressure.
    ``force_deletion_delay``: until grace period 0 removes a pod without its kubelet. ``minimum_grace_period_seconds``:
    of a pod's own. ``freeing_delay``: until a pod whose last finalizer has been removed is removed.
    ``deletion_heeds_budgets``: of pods and of workloads. ``deletion_adds_disruption_target``: to pods.
    """

    default_termination_grace_period_seconds: int = 30
    adds_default_tolerations: bool = True
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    replaces_own_tolerations: bool = False  # by the default ones
    taints_new_nodes: bool = True  # TaintNodesByCondition
    node_name_pattern: str = ""  # names that are valid besides DNS subdomains
    second_node: Literal["refused", "replaces", "deletes"] = "refused"  # one whose name is taken
    kubelets_may_change: Literal["own", "workers", "all"] = "own"  # Nodes, by NodeRestriction
    default_node_capacity: Mapping[str, str] = field(default_factory=dict)
    memory_pressure_qos_classes: frozenset[str] = frozenset()
    delete_removes_running_pods: bool = False
    terminating_pods_expire: bool = False
    force_deletion_delay: float = 0.0
    freeing_delay: float = 0.0
    minimum_grace_period_seconds: int = 0
    deletion_heeds_budgets: bool = False
    deletion_adds_disruption_target: bool = False
    finalizers_hold_pods: bool = True
    priority_classes: Mapping[str, int] = field(default_factory=_priority_classes)
    event_ttl: float = 3600.0  # --event-ttl


@dataclass(frozen=True, kw_only=True, slots=True)
class EvictionApiRules:
    """pkg/registry/core/pod/storage/eviction.go; facts 8.1. ``attempts``: of a request that conflicts with others.

    ``conflict_window``: seconds between requests that read the same version of a budget. ``grace_period_seconds``: of
    the deletion; None: the pod's own. ``refusals_are_final``: a pod that was refused once is refused for ever.
    """

    exempt_phases: frozenset[str] = frozenset({"Pending", "Succeeded", "Failed"})
    refuses_several_budgets: bool = True
    heeds_unhealthy_policy: bool = True  # unhealthyPodEvictionPolicy
    checks_budgets: bool = True
    decrements_budgets: bool = True
    max_disrupted_pods: int = 2000  # MaxDisruptedPodSize
    retry_after_seconds: int = 10
    conflict_window: float = 0.02
    conflict_backoff: float = 0.5  # EvictionsRetry.Duration
    disruption_target_reason: str = "EvictionByEvictionAPI"
    disruption_target_message: str = "Eviction API: evicting"
    refusal_code: int = 429
    refusals_are_final: bool = False
    default_unhealthy_policy: str = "IfHealthyBudget"
    heeds_selectors: bool = True
    adds_disruption_target: bool = True
    deletes: bool = True
    grace_period_seconds: int | None = None
    refusal_message: str = "Cannot evict pod as it would violate the pod's disruption budget."
    multiple_budgets_message: str = (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
