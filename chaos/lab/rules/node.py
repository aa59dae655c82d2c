"""Rules of the kubelet, of systemd-logind, and of the shutdown of Windows. Times in seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

_SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeStatusRules:
    """pkg/kubelet/kubelet_node_status.go, nodestatus/setters.go, component-helpers/apimachinery/lease; facts 1.5, 5.1.

    ``renews_lease_with_status``: only then. ``reports_changes``: immediately, not only with the next regular report.
    ``ignored_starts``: without a Node before the kubelet registers again, then after ``registration_delay``.
    ``heeds_register_node``: the flag.
    ``reports_existing_nodes``: also those that others have created. ``registers_last_taints``: of the Node before.
    ``restores_registration``: a kubelet that starts gives its Node the taints and labels that a new one would have.
    ``resets_spec``: "unschedulable" or "taints", at each report. ``address_types``, ``hostname``: of status.addresses.
    ``fail_swap_on``: None for the setting of the kubelet. ``tolerated_swap``: bytes.
    ``status_offset``: share of the report frequency by which the first report after a change is earlier or later.
    """

    node_status_update_frequency: float = 10.0
    node_status_report_frequency: float = 300.0
    node_lease_duration_seconds: int = 40
    node_lease_renew_interval_fraction: float = 0.25
    lease_namespace: str = "kube-node-lease"
    renews_lease_with_status: bool = False
    reports_changes: bool = True
    status_offset: float = 0.5
    connection_timeout: float = 45.0  # of a connection without a frame: ReadIdleTimeout and PingTimeout
    status_update_timeout: float = 50.0  # nodeStatusUpdateRetry: five attempts, each with the update frequency
    runtime_check_period: float = 5.0
    runtime_timeout: float = 30.0  # maxWaitForContainerRuntime
    relist_threshold: float = 180.0  # PLEG
    ready: tuple[str, str] = ("KubeletReady", "kubelet is posting ready status")
    not_ready_reason: str = "KubeletNotReady"
    unready_in_shutdown: bool = True
    shutdown_report_delay: float = 0.0  # of the report that a shutdown begins
    shutting_down_message: str = "node is shutting down"
    ignored_starts: int = 0
    registration_delay: float = 0.0
    heeds_register_node: bool = True
    reports_existing_nodes: bool = True
    registers_last_taints: bool = False
    restores_registration: bool = False
    resets_spec: frozenset[str] = frozenset()
    registers_capacity: bool = True
    registers_addresses: bool = True
    registers_with_taints: bool = True
    registered_taint_effect: str = ""  # instead of the configured one
    registers_with_labels: bool = True
    registers_label_values: bool = True
    address_types: tuple[str, ...] = ("InternalIP", "Hostname")
    internal_ip_type: str = "InternalIP"
    hostname: str = ""  # instead of the machine's name
    omitted_info: frozenset[str] = frozenset()
    omitted_capacity: frozenset[str] = frozenset()
    allocatable_pods: int = 0  # instead of the capacity
    usage_subtracted_from: frozenset[str] = frozenset()  # "capacity", "allocatable": CPU that others use
    fail_swap_on: bool | None = None
    tolerated_swap: int = 0
    turns_swap_off: bool = False
    reports_swap: bool = True
    unready_after_reboot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PodRules:
    """pkg/kubelet/pod_workers.go, kubelet_pods.go, status/; facts 1.6, 5.7 and 10.

    ``removal_delay``: from the terminal status to the kubelet's DELETE; ``removes_while_running``: a deleted pod.
    ``stops_without_api_server_after``: seconds without a connection after which the kubelet stops its pods.
    ``disruption_target_delay``: from the terminal status of a pod that the kubelet ended; ``..._before_end``: when its
    stop starts. ``ends_before_stop``: the terminal status is written when the stop starts.
    """

    sync_period: float = 10.0  # of the status manager
    stops_without_api_server_after: float = math.inf
    file_check_frequency: float = 20.0  # of manifests
    crash_loop_backoff: tuple[float, float] = (10.0, 300.0)  # initialBackOff, MaxContainerBackOff
    minimum_grace_period_seconds: float = 2.0  # minimumGracePeriodInSeconds
    removal_delay: tuple[float, float] = (0.3, 0.8)
    removes_deleted: bool = True
    removes_while_running: bool = False
    default_termination_grace_period_seconds: int = 30
    removed_grace_period_seconds: int = 1  # of a pod whose object is gone
    rejects_in_shutdown: bool = True
    shutdown_rejection: tuple[str, str] = ("NodeShutdown", "Pod was rejected as the node is shutting down.")
    rejects_untolerated: bool = True  # NoExecute taints
    rejects_mismatch: bool = True  # of the node selector
    shutdown_reason: str = "Terminated"
    shutdown_message: str = _SHUTDOWN
    disruption_target_reason: str = "TerminationByKubelet"
    adds_disruption_target: bool = True
    disruption_target_delay: float = 0.0
    disruption_target_before_end: bool = False
    ends_before_stop: bool = False
    exit_codes_count: bool = True
    reason_on_succeeded: bool = False
    failed_pods_stay_ready: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeShutdownRules:
    """pkg/kubelet/nodeshutdown; facts 1, 2 and 4.

    ``highest_priority_first``, ``all_groups_at_once``: order of the groups of pods. ``seconds_between_pods``: of one
    group. ``waits_for_volumes``: since v1.32. ``gauges_delay``: from the manager's start to the reload of the gauges.
    ``survives_restart``: a kubelet starts in the shutting-down state if there was ever a shutdown.
    ``feature_gates``: those that are off unless the kubelet's configuration sets them; ``windows_...``: since v1.34.
    ``default_grace_periods``: shutdownGracePeriod and the part of critical pods where both are zero;
    ``default_by_pod_priority``: priority and seconds, where no list is configured. ``group_seconds``: by priority,
    instead of those of the configuration. ``range_includes_start``: a range of priorities begins with its number;
    ``gap_belongs_below``: a priority between two ranges has the lower one's seconds.
    """

    feature_gates_off: frozenset[str] = frozenset()
    windows_graceful_node_shutdown: bool = True
    heeds_feature_gates: bool = True
    default_grace_periods: tuple[int, int] = (0, 0)
    default_by_pod_priority: tuple[tuple[int, int], ...] = ()
    heeds_pod_priority: bool = True  # shutdownGracePeriodByPodPriority
    group_seconds: Mapping[str, int] = field(default_factory=dict)
    range_includes_start: bool = True
    gap_belongs_below: bool = True
    stop_delay: float = 0.0  # from the announcement to the stop of the first pod
    heeds_signals: bool = True  # PrepareForShutdown
    heeds_cancellation: bool = True
    restores_pods: bool = False  # after a cancellation
    gauge_names: tuple[str, str] = ("graceful_shutdown_start_time_seconds", "graceful_shutdown_end_time_seconds")
    gauge_factor: float = 1.0  # of seconds
    gauge_offset: tuple[float, float] = (0.0, 0.0)  # seconds that the start and the end are off
    highest_priority_first: bool = False
    all_groups_at_once: bool = False
    seconds_between_pods: float = 0.0
    waits_for_empty_groups: bool = False
    limits_groups: bool = True
    waits_for_volumes: bool = True
    unmount_poll_period: float = 0.3  # WaitForAllPodsUnmount
    shorter_grace_period: Callable[[int, int], int] = min  # of the group's time and the pod's grace period
    minimum_grace_period_seconds: int = 1
    takes_lock: bool = True
    raises_inhibit_delay_max: bool = True
    releases_lock_first: bool = False
    lock_release_delay: float = 0.0
    cancellation_at_once: bool = False
    cancellation_delay: float = 0.0
    last_signal_first: bool = False
    dbus_reconnect_period: float = 1.0
    gauges_delay: tuple[float, float] = (0.6, 1.0)
    gauges_without_logind: bool = False
    keeps_state_file: bool = True
    survives_restart: bool = False
    heeds_preshutdown: bool = True


@dataclass(frozen=True, slots=True)
class Signal:
    """Eviction signal of one resource: condition in both states (reason, message, event), and threshold."""

    condition: str
    resource: str
    threshold: str
    under_pressure: tuple[str, str, str]
    no_pressure: tuple[str, str, str]


def _signals() -> Mapping[str, Signal]:
    return {
        "memory": Signal(
            "MemoryPressure", "memory", "100Mi",
            ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"),
            ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
        ),
        "disk": Signal(
            "DiskPressure", "ephemeral-storage", "10%",
            ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
            ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
        ),
        "pid": Signal(
            "PIDPressure", "pids", "0",
            ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
            ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
        ),
    }  # fmt: skip


def _eviction_hard() -> Mapping[str, str]:
    """Defaults on Linux, and a threshold for process IDs, which has no default."""
    return {
        "memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%",
        "imagefs.inodesFree": "5%", "pid.available": "10%",
    }  # fmt: skip


def _qos_order() -> Mapping[str, int]:
    return {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePressureRules:
    """pkg/kubelet/eviction; facts 9. ``qos_order``: pods of a lower number are evicted first.

    ``limits_are_disruptions``: a pod that is evicted because it exceeds its limits has DisruptionTarget.
    ``reports_conditions``, ``no_pressure_status``: of the conditions of the signals.
    ``evicts_critical``: critical and static pods are evicted as well. ``memory_rejects_best_effort_only``: under
    memory pressure alone.
    """

    eviction_monitoring_period: float = 10.0
    eviction_pressure_transition_period: float = 300.0
    eviction_grace_period: float = 1.0  # of hard thresholds
    signals: Mapping[str, Signal] = field(default_factory=_signals)
    eviction_hard: Mapping[str, str] = field(default_factory=_eviction_hard)
    evicted_reason: str = "Evicted"
    reports_conditions: bool = True
    no_pressure_status: str = "False"
    evicts: bool = True
    evicts_critical: bool = False
    heeds_budgets: bool = False
    limits_are_disruptions: bool = False
    memory_rejects_best_effort_only: bool = True
    qos_order: Mapping[str, int] = field(default_factory=_qos_order)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogindRules:
    """logind.conf(5), src/login; facts 1.1, 1.7 and 18.

    ``cancels_in_flight_since``: first systemd whose ``shutdown -c`` cancels a shutdown that is being delayed.
    ``announces_schedules``: PrepareForShutdown is sent when a shutdown is scheduled.
    """

    inhibit_delay_max: float = 5.0  # InhibitDelayMaxSec
    handle_power_key: str = "poweroff"  # HandlePowerKey
    cancels_in_flight_since: int = 257
    announces_schedules: bool = False
    announces_forced: bool = False  # systemctl poweroff --force --force
    heeds_inhibitors: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowsRules:
    """The service control manager and InitiateShutdown; facts 3.

    ``wrapped_services_notified``: a program under nssm gets the pre-shutdown notice.
    ``countdown_announced``: the notice comes when a countdown starts. ``late_abort_accepted``: ``shutdown /a`` succeeds
    without effect once services are notified; ``..._effective``: it cancels the shutdown, and the kubelet continues.
    """

    default_preshutdown_timeout: float = 10.0  # since build 15063; 180 before
    limits_preshutdown: bool = True
    wrapped_services_notified: bool = False
    countdown_announced: bool = False
    late_abort_accepted: bool = False
    late_abort_effective: bool = False
    raises_preshutdown_timeout: bool = True
    logs_missing_service: bool = True
    unserved_kubelet_lasts: float = inf  # seconds that a kubelet runs that is no service
