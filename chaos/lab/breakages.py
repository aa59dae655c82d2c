"""Breakages: deliberate misbehaviours, each against one rule of facts 16, which prove that experiments can fail.

A component tests ``spec.has_breakage(id)`` where the rule applies, or adds ``spec.shift(mechanism)`` seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches


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


_ALL = (
    Breakage("unknown-missing", 1, "a silent node keeps its Ready condition"),
    Breakage("unknown-late", 1, "Ready=Unknown comes 30 s after its window", 30.0),
    Breakage("unknown-early", 1, "Ready=Unknown comes 30 s too early", -30.0),
    Breakage("heartbeats-ignored", 1, "Ready=Unknown is written for nodes whose kubelets report"),
    Breakage("reboot-unready", 1, "after a reboot a kubelet first reports that its node is not ready"),
    Breakage("capacity-missing", 1, "a node registers without its capacity"),
    Breakage("register-taints-missing", 1, "a node registers without the taints that its kubelet is configured with"),
    Breakage("pods-stay-ready", 1, "pods of a silent node keep Ready=True"),
    Breakage(
        "pods-unready-on-not-ready", 1, "pods turn Ready=False also when the kubelet reports its node as not Ready"
    ),
    Breakage("no-schedule-taint-missing", 1, "conditions and cordons add no NoSchedule taints"),
    Breakage("no-schedule-taint-late", 1, "NoSchedule taints come and go a minute late", 60.0),
    Breakage("taint-eviction-without-condition", 1, "taint eviction deletes pods without DisruptionTarget"),
    Breakage("taint-eviction-reordered", 1, "taint eviction deletes a pod before it sets DisruptionTarget"),
    Breakage("pod-gc-without-failed", 1, "pod GC removes pods without setting their phase to Failed"),
    Breakage("orphan-removal-late", 1, "pods of a deleted node stay 2 minutes longer", 120.0),
    Breakage("orphan-removal-early", 1, "pods of a deleted node are removed without quarantine", -40.0),
    Breakage("delete-removes-running-pod", 2, "DELETE removes a running pod's object at once"),
    Breakage("terminating-pod-expires", 2, "a terminating pod is removed after its grace period, even on a dead node"),
    Breakage("pod-removal-late", 2, "the kubelet removes a pod a minute after its containers have ended", 60.0),
    Breakage("pod-removal-early", 2, "the kubelet removes a deleted pod while its containers run"),
    Breakage("pod-ended-while-running", 3, "a node's shutdown sets pods' terminal phase while their containers run"),
    Breakage("failed-pod-stays-ready", 3, "a pod with phase Failed has Ready=True"),
    Breakage("disruption-target-missing", 3, "the kubelet sets no DisruptionTarget"),
    Breakage("disruption-target-early", 3, "the kubelet's DisruptionTarget comes before the terminal phase"),
    Breakage("disruption-target-late", 3, "the kubelet's DisruptionTarget comes 5 s after the terminal phase"),
    Breakage("exit-code-ignored", 4, "a pod that was ended by a shutdown is Succeeded whatever its exit code"),
    Breakage("reason-on-succeeded", 4, "a pod that the kubelet ended has reason and message though it Succeeded"),
    Breakage("shutdown-flag-survives", 5, "after any shutdown a kubelet starts in the shutting-down state"),
    Breakage("state-file-lost", 5, "the shutdown's state file does not survive a boot, so the gauges stay 0"),
    Breakage("gauges-late", 5, "the gauges of the last shutdown are back a minute late", 60.0),
    Breakage(
        "gauges-early", 5, "the gauges of the last shutdown are back as soon as the manager starts", -1.0,
        unobservable_reason="no rule requires a delay: the usual delay of less than 1 s is chance",
    ),
    Breakage(
        "gauges-without-dbus", 5, "the gauges are reloaded without logind",
        unobservable_reason="it needs a host with logind at one boot and without at the next; no action does that",
    ),
    Breakage("cancellation-at-once", 6, "a cancelled shutdown is handled while the shutdown is still processed"),
    Breakage("cancellation-late", 6, "a cancelled shutdown is handled 30 s late", 30.0),
    Breakage("signals-reordered", 6, "the last of the queued shutdown signals is handled first"),
    Breakage("schedule-announced", 6, "a shutdown is announced to the kubelet as soon as it is scheduled"),
    Breakage("buckets-reordered", 7, "pods of the highest priority are stopped first"),
    Breakage("buckets-parallel", 7, "pods of all priorities are stopped at once"),
    Breakage("bucket-serial", 7, "pods of a bucket are stopped one after the other"),
    Breakage("empty-bucket-waited", 7, "the kubelet waits out the time of a bucket without pods"),
    Breakage("bucket-timer-ignored", 7, "the kubelet waits for a bucket's pods without end"),
    Breakage(
        "volumes-not-waited", 7, "the kubelet does not wait for volumes to be unmounted",
        unobservable_reason="the lab unmounts in 0.5 s, so the next bucket or the power-off is only that much earlier",
    ),
    Breakage("lock-release-early", 7, "the inhibitor is released at the start of the shutdown"),
    Breakage("lock-release-late", 7, "the inhibitor is released 20 s after the last bucket", 20.0),
    Breakage("preshutdown-ignored", 7, "on Windows the kubelet ends no pods at the pre-shutdown notice"),
    Breakage("preshutdown-timeout-ignored", 7, "a service gets more than its pre-shutdown time-out"),
    Breakage("nssm-notified", 7, "a kubelet under nssm gets the pre-shutdown notice"),
    Breakage("late-abort-accepted", 7, "shutdown /a succeeds without effect once services are notified of a shutdown"),
    Breakage("limiter-missing", 8, "NoExecute taints are not rate limited"),
    Breakage("limiter-reordered", 8, "zone states are evaluated at the start of a pass"),
    Breakage("partial-disruption-ignored", 8, "a zone in partial disruption is tainted like any other"),
    Breakage("full-disruption-ignored", 8, "NoExecute taints are added though every zone is fully disrupted"),
    Breakage("no-execute-taint-missing", 8, "a node that is not Ready gets no NoExecute taint"),
    Breakage("no-execute-taint-late", 8, "the NoExecute taint comes a minute after its token", 60.0),
    Breakage("eviction-missing", 9, "NoExecute taints evict nothing"),
    Breakage("eviction-late", 9, "taint eviction comes a minute after tolerationSeconds", 60.0),
    Breakage("eviction-early", 9, "taint eviction comes 10 s before tolerationSeconds", -10.0),
    Breakage("countdown-restarts-on-swap", 9, "tolerationSeconds restart when the taint is swapped"),
    Breakage("countdown-survives-untaint", 9, "pods are evicted though the taint has been removed"),
    Breakage(
        "countdown-survives-restart", 9, "tolerationSeconds continue when the controller restarts",
        unobservable_reason="no action restarts kube-controller-manager",
    ),
    Breakage("volume-detached-while-mounted", 10, "volumes are detached at once from nodes that have them mounted"),
    Breakage("detach-clock-from-deletion", 10, "the 6 minutes before a forced detach start when the pod is deleted"),
    Breakage("forced-detach-late", 10, "a forced detach comes 5 minutes late", 300.0),
    Breakage("forced-detach-early", 10, "a forced detach comes 5 minutes early", -300.0),
    Breakage("out-of-service-ignored", 10, "the out-of-service taint does not speed up a detach"),
    Breakage("replicaset-waits-for-removal", 11, "a ReplicaSet replaces a pod only when it is gone"),
    Breakage("replicaset-replaces-unready", 11, "a ReplicaSet replaces a pod that is not Ready"),
    Breakage("replacement-late", 11, "workload controllers replace pods a minute late", 60.0),
    Breakage("statefulset-replaced-before-removal", 11, "a StatefulSet force deletes its terminating pods"),
    Breakage("daemonset-ignores-taints", 11, "a DaemonSet creates pods for nodes with a NoSchedule taint"),
    Breakage("no-schedule-ignored", 11, "the scheduler ignores NoSchedule taints except Kubernetes' own"),
    Breakage("prefer-no-schedule-ignored", 11, "the scheduler ignores PreferNoSchedule taints"),
    Breakage("memory-pressure-tolerated", 11, "new pods tolerate memory-pressure unless they are BestEffort"),
    Breakage("pdb-ignored", 12, "the eviction API ignores budgets"),
    Breakage("pdb-not-decremented", 12, "the eviction API checks budgets and does not decrement them"),
    Breakage("pdb-counts-terminating", 12, "terminating pods count as healthy in budgets"),
    Breakage("pdb-counts-unready", 12, "pods that are not Ready count as healthy in budgets"),
    Breakage("pdb-recompute-late", 12, "budgets are recomputed a minute late", 60.0),
    Breakage("stale-disruption-late", 12, "a stale DisruptionTarget is reset a minute late", 60.0),
    Breakage("stale-disruption-early", 12, "a stale DisruptionTarget is reset a minute early", -60.0),
)  # fmt: skip
BREAKAGES = {breakage.id: breakage for breakage in _ALL}


def check(ids: Collection[str]) -> None:
    """Check ids. Raises ValueError for an unknown one, with similar ids."""
    for unknown in [item for item in ids if item not in BREAKAGES]:
        near = get_close_matches(unknown, BREAKAGES, 3, 0.5)
        hint = f"; did you mean: {', '.join(near)}" if near else ""
        raise ValueError(f"unknown breakage {unknown!r}{hint}")


def shift(ids: Collection[str], mechanism: str) -> float:
    """Sum of the seconds of ``MECHANISM-late`` and ``MECHANISM-early``, as far as they are in ``ids``."""
    return sum(BREAKAGES[item].seconds for item in (f"{mechanism}-late", f"{mechanism}-early") if item in ids)
