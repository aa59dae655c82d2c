"""Breakages: deliberate misbehaviours, each against one rule of facts 16, which prove that experiments can fail.

A breakage replaces fields of the rules (:mod:`chaos.lab.rules`); no component knows of it. Any other replacement of
one field is written out, as ``node_lifecycle.node_eviction_rate=1``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from chaos.lab.rules import Rules
from chaos.lab.rules.replacements import did_you_mean, replaced

Change = Callable[[Rules, float], Rules]  # the second argument: seconds of the breakage


@dataclass(frozen=True, slots=True)
class Breakage:
    """``rule``: number in facts 16. ``seconds``: delay that the breakage adds, negative for earlier.

    ``unobservable_reason``: why no experiment can detect the breakage.
    """

    id: str
    rule: int
    text: str
    seconds: float = 0.0
    unobservable_reason: str = ""


def put(component: str, **fields: Any) -> Change:
    """Replace fields of a component's rules."""

    def change(rules: Rules, _: float) -> Rules:
        return replace(rules, **{component: replace(getattr(rules, component), **fields)})

    return change


def delay(component: str, *fields: str) -> Change:
    """Add the breakage's seconds to times, or to both ends of a range of times."""

    def change(rules: Rules, seconds: float) -> Rules:
        record = getattr(rules, component)
        return put(component, **{field: _later(getattr(record, field), seconds) for field in fields})(rules, seconds)

    return change


def include(component: str, field: str, item: str) -> Change:
    """Add an item to a set of a component's rules."""

    def change(rules: Rules, seconds: float) -> Rules:
        return put(component, **{field: getattr(getattr(rules, component), field) | {item}})(rules, seconds)

    return change


def both(first: Change, second: Change) -> Change:
    """Make two changes."""
    return lambda rules, seconds: second(first(rules, seconds), seconds)


def _later(time: Any, seconds: float) -> Any:
    return tuple(each + seconds for each in time) if isinstance(time, tuple) else time + seconds


def _row(
    id_: str, rule: int, change: Change, text: str, seconds: float = 0.0, unobservable_reason: str = ""
) -> tuple[Breakage, Change]:
    return Breakage(id_, rule, text, seconds, unobservable_reason), change


_ALL = (
    _row("unknown-missing", 1, put("node_lifecycle", marks_unknown=False),
         "a silent node keeps its Ready condition"),
    _row("unknown-late", 1, delay("node_lifecycle", "node_monitor_grace_period", "node_startup_grace_period"),
         "Ready=Unknown comes 30 s after its window", 30.0),
    _row("unknown-early", 1, delay("node_lifecycle", "node_monitor_grace_period", "node_startup_grace_period"),
         "Ready=Unknown comes 30 s too early", -30.0),
    _row("heartbeats-ignored", 1, put("node_lifecycle", counts_heartbeats=False),
         "Ready=Unknown is written for nodes whose kubelets report"),
    _row("reboot-unready", 1, put("node_status", unready_after_reboot=True),
         "after a reboot a kubelet first reports that its node is not ready"),
    _row("capacity-missing", 1, put("node_status", registers_capacity=False),
         "a node registers without its capacity"),
    _row("register-taints-missing", 1, put("node_status", registers_with_taints=False),
         "a node registers without the taints that its kubelet is configured with"),
    _row("pods-stay-ready", 1, put("node_lifecycle", marks_pods_not_ready=False),
         "pods of a silent node keep Ready=True"),
    _row("pods-unready-on-not-ready", 1, put("node_lifecycle", pods_unready_on_not_ready=True),
         "pods turn Ready=False also when the kubelet reports its node as not Ready"),
    _row("no-schedule-taint-missing", 1, put("node_lifecycle", adds_no_schedule_taints=False),
         "conditions and cordons add no NoSchedule taints"),
    _row("no-schedule-taint-late", 1, delay("node_lifecycle", "no_schedule_taint_delay"),
         "NoSchedule taints come and go a minute late", 60.0),
    _row("taint-eviction-without-condition", 1, put("taint_eviction", adds_disruption_target=False),
         "taint eviction deletes pods without DisruptionTarget"),
    _row("taint-eviction-reordered", 1, put("taint_eviction", steps=("delete", "add-disruption-target")),
         "taint eviction deletes a pod before it sets DisruptionTarget"),
    _row("pod-gc-without-failed", 1, put("pod_gc", sets_failed=False),
         "pod GC removes pods without setting their phase to Failed"),
    _row("orphan-removal-late", 1, delay("pod_gc", "quarantine_time"),
         "pods of a deleted node stay 2 minutes longer", 120.0),
    _row("orphan-removal-early", 1, delay("pod_gc", "quarantine_time"),
         "pods of a deleted node are removed without quarantine", -40.0),
    _row("delete-removes-running-pod", 2, put("api_server", delete_removes_running_pods=True),
         "DELETE removes a running pod's object at once"),
    _row("terminating-pod-expires", 2, put("api_server", terminating_pods_expire=True),
         "a terminating pod is removed after its grace period, even on a dead node"),
    _row("pod-removal-late", 2, delay("pods", "removal_delay"),
         "the kubelet removes a pod a minute after its containers have ended", 60.0),
    _row("pod-removal-early", 2, put("pods", removes_while_running=True),
         "the kubelet removes a deleted pod while its containers run"),
    _row("pod-ended-while-running", 3, put("pods", ends_before_stop=True),
         "a node's shutdown sets pods' terminal phase while their containers run"),
    _row("failed-pod-stays-ready", 3, put("pods", failed_pods_stay_ready=True),
         "a pod with phase Failed has Ready=True"),
    _row("disruption-target-missing", 3, put("pods", adds_disruption_target=False),
         "the kubelet sets no DisruptionTarget"),
    _row("disruption-target-early", 3, put("pods", disruption_target_before_end=True),
         "the kubelet's DisruptionTarget comes before the terminal phase"),
    _row("disruption-target-late", 3, put("pods", disruption_target_delay=5.0),
         "the kubelet's DisruptionTarget comes 5 s after the terminal phase"),
    _row("exit-code-ignored", 4, put("pods", exit_codes_count=False),
         "a pod that was ended by a shutdown is Succeeded whatever its exit code"),
    _row("reason-on-succeeded", 4, put("pods", reason_on_succeeded=True),
         "a pod that the kubelet ended has reason and message though it Succeeded"),
    _row("shutdown-flag-survives", 5, put("node_shutdown", survives_restart=True),
         "after any shutdown a kubelet starts in the shutting-down state"),
    _row("state-file-lost", 5, put("node_shutdown", keeps_state_file=False),
         "the shutdown's state file does not survive a boot, so the gauges stay 0"),
    _row("gauges-late", 5, delay("node_shutdown", "gauges_delay"),
         "the gauges of the last shutdown are back a minute late", 60.0),
    _row("gauges-early", 5, delay("node_shutdown", "gauges_delay"),
         "the gauges of the last shutdown are back as soon as the manager starts", -1.0,
         unobservable_reason="no rule requires a delay: the usual delay of less than 1 s is chance"),
    _row("gauges-without-dbus", 5, put("node_shutdown", gauges_without_logind=True),
         "the gauges are reloaded without logind",
         unobservable_reason="it needs a host with logind at one boot and without at the next; no action does that"),
    _row("cancellation-at-once", 6, put("node_shutdown", cancellation_at_once=True),
         "a cancelled shutdown is handled while the shutdown is still processed"),
    _row("cancellation-late", 6, delay("node_shutdown", "cancellation_delay"),
         "a cancelled shutdown is handled 30 s late", 30.0),
    _row("signals-reordered", 6, put("node_shutdown", last_signal_first=True),
         "the last of the queued shutdown signals is handled first"),
    _row("schedule-announced", 6,
         both(put("logind", announces_schedules=True), put("windows", countdown_announced=True)),
         "a shutdown is announced to the kubelet as soon as it is scheduled"),
    _row("buckets-reordered", 7, put("node_shutdown", highest_priority_first=True),
         "pods of the highest priority are stopped first"),
    _row("buckets-parallel", 7, put("node_shutdown", all_groups_at_once=True),
         "pods of all priorities are stopped at once"),
    _row("bucket-serial", 7, put("node_shutdown", seconds_between_pods=3.0),
         "pods of a bucket are stopped one after the other"),
    _row("empty-bucket-waited", 7, put("node_shutdown", waits_for_empty_groups=True),
         "the kubelet waits out the time of a bucket without pods"),
    _row("bucket-timer-ignored", 7, put("node_shutdown", limits_groups=False),
         "the kubelet waits for a bucket's pods without end"),
    _row("volumes-not-waited", 7, put("node_shutdown", waits_for_volumes=False),
         "the kubelet does not wait for volumes to be unmounted",
         unobservable_reason=
         "the lab unmounts in 0.5 s, so the next bucket or the power-off is only that much earlier"),
    _row("lock-release-early", 7, put("node_shutdown", releases_lock_first=True),
         "the inhibitor is released at the start of the shutdown"),
    _row("lock-release-late", 7, delay("node_shutdown", "lock_release_delay"),
         "the inhibitor is released 20 s after the last bucket", 20.0),
    _row("preshutdown-ignored", 7, put("node_shutdown", heeds_preshutdown=False),
         "on Windows the kubelet ends no pods at the pre-shutdown notice"),
    _row("preshutdown-timeout-ignored", 7, put("windows", limits_preshutdown=False),
         "a service gets more than its pre-shutdown time-out"),
    _row("nssm-notified", 7, put("windows", wrapped_services_notified=True),
         "a kubelet under nssm gets the pre-shutdown notice"),
    _row("late-abort-accepted", 7, put("windows", late_abort_accepted=True),
         "shutdown /a succeeds without effect once services are notified of a shutdown"),
    _row("limiter-missing", 8, put("node_lifecycle", limits_evictions=False),
         "NoExecute taints are not rate limited"),
    _row("limiter-reordered", 8, put("node_lifecycle", zone_states_first=True),
         "zone states are evaluated at the start of a pass"),
    _row("partial-disruption-ignored", 8, put("node_lifecycle", slows_in_partial_disruption=False),
         "a zone in partial disruption is tainted like any other"),
    _row("full-disruption-ignored", 8, put("node_lifecycle", stops_in_full_disruption=False),
         "NoExecute taints are added though every zone is fully disrupted"),
    _row("no-execute-taint-missing", 8, put("node_lifecycle", adds_no_execute_taints=False),
         "a node that is not Ready gets no NoExecute taint"),
    _row("no-execute-taint-late", 8, delay("node_lifecycle", "no_execute_taint_delay"),
         "the NoExecute taint comes a minute after its token", 60.0),
    _row("eviction-missing", 9, put("taint_eviction", evicts=False),
         "NoExecute taints evict nothing"),
    _row("eviction-late", 9, delay("taint_eviction", "eviction_delay"),
         "taint eviction comes a minute after tolerationSeconds", 60.0),
    _row("eviction-early", 9, delay("taint_eviction", "eviction_delay"),
         "taint eviction comes 10 s before tolerationSeconds", -10.0),
    _row("countdown-restarts-on-swap", 9, put("taint_eviction", swap_restarts_countdown=True),
         "tolerationSeconds restart when the taint is swapped"),
    _row("countdown-survives-untaint", 9, put("taint_eviction", untaint_cancels=False),
         "pods are evicted though the taint has been removed"),
    _row("countdown-survives-restart", 9, put("taint_eviction", restart_forgets_countdowns=False),
         "tolerationSeconds continue when the controller restarts",
         unobservable_reason="no action restarts kube-controller-manager"),
    _row("volume-detached-while-mounted", 10, put("attach_detach", waits_for_unmount=False),
         "volumes are detached at once from nodes that have them mounted"),
    _row("detach-clock-from-deletion", 10, put("attach_detach", clock_starts_at_deletion=True),
         "the 6 minutes before a forced detach start when the pod is deleted"),
    _row("forced-detach-late", 10, delay("attach_detach", "max_wait_for_unmount_duration"),
         "a forced detach comes 5 minutes late", 300.0),
    _row("forced-detach-early", 10, delay("attach_detach", "max_wait_for_unmount_duration"),
         "a forced detach comes 5 minutes early", -300.0),
    _row("out-of-service-ignored", 10, put("attach_detach", heeds_out_of_service=False),
         "the out-of-service taint does not speed up a detach"),
    _row("replicaset-waits-for-removal", 11, put("workloads", terminating_replicas_count=True),
         "a ReplicaSet replaces a pod only when it is gone"),
    _row("replicaset-replaces-unready", 11, put("workloads", unready_replicas_count=False),
         "a ReplicaSet replaces a pod that is not Ready"),
    _row("replacement-late", 11, delay("workloads", "replacement_delay"),
         "workload controllers replace pods a minute late", 60.0),
    _row("statefulset-replaced-before-removal", 11, put("workloads", stateful_set_force_deletes=True),
         "a StatefulSet force deletes its terminating pods"),
    _row("daemonset-ignores-taints", 11, put("workloads", daemons_ignore_taints=True),
         "a DaemonSet creates pods for nodes with a NoSchedule taint"),
    _row("no-schedule-ignored", 11, include("scheduler", "ignored_effects", "NoSchedule"),
         "the scheduler ignores NoSchedule taints except Kubernetes' own"),
    _row("prefer-no-schedule-ignored", 11, include("scheduler", "ignored_effects", "PreferNoSchedule"),
         "the scheduler ignores PreferNoSchedule taints"),
    _row("memory-pressure-tolerated", 11,
         put("api_server", memory_pressure_qos_classes=frozenset({"Burstable", "Guaranteed"})),
         "new pods tolerate memory-pressure unless they are BestEffort"),
    _row("pdb-ignored", 12, put("eviction_api", checks_budgets=False),
         "the eviction API ignores budgets"),
    _row("pdb-not-decremented", 12, put("eviction_api", decrements_budgets=False),
         "the eviction API checks budgets and does not decrement them"),
    _row("pdb-counts-terminating", 12, put("disruption", counts_terminating=True),
         "terminating pods count as healthy in budgets"),
    _row("pdb-counts-unready", 12, put("disruption", counts_unready=True),
         "pods that are not Ready count as healthy in budgets"),
    _row("pdb-recompute-late", 12, delay("disruption", "recompute_delay"),
         "budgets are recomputed a minute late", 60.0),
    _row("stale-disruption-late", 12, delay("disruption", "stale_pod_disruption_timeout"),
         "a stale DisruptionTarget is reset a minute late", 60.0),
    _row("stale-disruption-early", 12, delay("disruption", "stale_pod_disruption_timeout"),
         "a stale DisruptionTarget is reset a minute early", -60.0),
)  # fmt: skip
BREAKAGES = {breakage.id: breakage for breakage, _ in _ALL}
_CHANGES = {breakage.id: change for breakage, change in _ALL}


def check(ids: Collection[str]) -> None:
    """Check ids and written out replacements. Raises ValueError for an unknown one, with similar ids or fields."""
    broken(Rules(), ids)


def broken(rules: Rules, ids: Collection[str]) -> Rules:
    """The rules with the replacements of these breakages. Raises ValueError for an unknown one."""
    for item in ids:
        if "=" in item:
            rules = replaced(rules, item)
        elif item in _CHANGES:
            rules = _CHANGES[item](rules, BREAKAGES[item].seconds)
        else:
            raise ValueError(f"unknown breakage {item!r}{did_you_mean(item, BREAKAGES)}")
    return rules
