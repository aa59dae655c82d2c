"""Deliberate wrong behaviours: each breaks one rule of facts section 16, to prove that experiments can fail.

A mechanism asks ``spec.broken(id)`` where it would do right, or waits ``spec.shift(mechanism)`` seconds more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Breakage:
    """``rule``: its number in facts section 16. ``seconds``: how much later it acts, negative for earlier.

    ``unseen``: why no experiment can notice it.
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
    Breakage("reboot-unready", 1, "a kubelet first says after a reboot that its node is not ready"),
    Breakage("capacity-missing", 1, "a node registers without its capacity"),
    Breakage("register-taints-missing", 1, "a node registers without the taints that its kubelet is configured with"),
    Breakage("pods-stay-ready", 1, "pods of a node that went silent keep Ready=True"),
    Breakage(
        "pods-unready-on-not-ready", 1, "pods turn Ready=False also when the kubelet itself said that its node is"
    ),
    Breakage("no-schedule-taint-missing", 1, "conditions and cordons put no NoSchedule taints on nodes"),
    Breakage("no-schedule-taint-late", 1, "NoSchedule taints come and go a minute late", 60.0),
    Breakage("taint-eviction-without-condition", 1, "taint eviction deletes pods without DisruptionTarget"),
    Breakage("taint-eviction-reordered", 1, "taint eviction deletes a pod first and sets DisruptionTarget then"),
    Breakage("pod-gc-without-failed", 1, "pod GC removes pods without setting their phase to Failed"),
    Breakage("orphan-removal-late", 1, "pods of a deleted node stay 2 minutes longer", 120.0),
    Breakage("orphan-removal-early", 1, "pods of a deleted node are removed without quarantine", -40.0),
    Breakage("delete-removes-running-pod", 2, "DELETE takes a running pod's object away at once"),
    Breakage("terminating-pod-expires", 2, "a terminating pod vanishes when its grace is over, its node dead or not"),
    Breakage("pod-removal-late", 2, "the kubelet removes a pod a minute after its containers have ended", 60.0),
    Breakage("pod-removal-early", 2, "the kubelet removes a deleted pod while its containers run"),
    Breakage("pod-ended-while-running", 3, "a node's shutdown sets pods' terminal phase while their containers run"),
    Breakage("failed-pod-stays-ready", 3, "a pod with phase Failed has Ready=True"),
    Breakage("disruption-target-missing", 3, "the kubelet sets no DisruptionTarget"),
    Breakage("disruption-target-early", 3, "the kubelet's DisruptionTarget comes before the terminal phase"),
    Breakage("disruption-target-late", 3, "the kubelet's DisruptionTarget comes 5 s after the terminal phase"),
    Breakage("exit-code-ignored", 4, "a pod that a shutdown ended is Succeeded whatever its exit code"),
    Breakage("reason-on-succeeded", 4, "a pod that a shutdown ended has reason and message though it Succeeded"),
    Breakage("shutdown-flag-survives", 5, "a kubelet that was ever shut down starts as one that shuts down"),
    Breakage("state-file-lost", 5, "the shutdown's state file does not survive a boot, so the gauges stay 0"),
    Breakage("gauges-late", 5, "the gauges of the last shutdown are back a minute late", 60.0),
    Breakage(
        "gauges-early", 5, "the gauges of the last shutdown are back as soon as the manager starts", -1.0,
        unobservable_reason="no rule says that they come later: that they do, by less than a second, is chance",
    ),
    Breakage(
        "gauges-without-dbus", 5, "the gauges are reloaded though there is no logind",
        unobservable_reason="it takes a host with logind at one boot and without it at the next; no action makes one",
    ),
    Breakage("cancellation-at-once", 6, "a cancelled shutdown is handled while the shutdown is still processed"),
    Breakage("cancellation-late", 6, "a cancelled shutdown is handled 30 s late", 30.0),
    Breakage("signals-reordered", 6, "of the shutdown signals that wait the last is handled first"),
    Breakage("schedule-announced", 6, "logind announces a shutdown as soon as it is scheduled"),
    Breakage("buckets-reordered", 7, "pods of the highest priority are stopped first"),
    Breakage("buckets-parallel", 7, "pods of all priorities are stopped at once"),
    Breakage("bucket-serial", 7, "pods of a bucket are stopped one after the other"),
    Breakage("empty-bucket-waited", 7, "the kubelet waits out the time of a bucket without pods"),
    Breakage("bucket-timer-ignored", 7, "the kubelet waits for a bucket's pods without end"),
    Breakage(
        "volumes-not-waited", 7, "the kubelet does not wait for volumes to be unmounted",
        unobservable_reason="the lab unmounts in 0.3 s: the next bucket, or the power-off, comes so much earlier",
    ),
    Breakage("lock-release-early", 7, "the inhibitor is released when the shutdown begins"),
    Breakage("lock-release-late", 7, "the inhibitor is released 20 s after the last bucket", 20.0),
    Breakage("limiter-missing", 8, "NoExecute taints are not rate limited"),
    Breakage("limiter-reordered", 8, "zone states are evaluated at the begin of a pass"),
    Breakage("partial-disruption-ignored", 8, "a zone in partial disruption is tainted like any other"),
    Breakage("full-disruption-ignored", 8, "NoExecute taints come though every zone is fully disrupted"),
    Breakage("no-execute-taint-missing", 8, "a node that is not Ready gets no NoExecute taint"),
    Breakage("no-execute-taint-late", 8, "the NoExecute taint comes a minute after its token", 60.0),
    Breakage("eviction-missing", 9, "NoExecute taints evict nothing"),
    Breakage("eviction-late", 9, "taint eviction comes a minute after tolerationSeconds", 60.0),
    Breakage("eviction-early", 9, "taint eviction comes 10 s before tolerationSeconds", -10.0),
    Breakage("countdown-restarts-on-swap", 9, "tolerationSeconds begin anew when the taint is swapped"),
    Breakage("countdown-survives-untaint", 9, "pods are evicted though the taint has gone"),
    Breakage(
        "countdown-survives-restart", 9, "tolerationSeconds go on when the controller starts anew",
        unobservable_reason="no action restarts kube-controller-manager",
    ),
    Breakage("volume-detached-while-mounted", 10, "volumes are detached at once from nodes that have them mounted"),
    Breakage("detach-clock-from-deletion", 10, "the 6 minutes to a forced detach begin when the pod is deleted"),
    Breakage("forced-detach-late", 10, "a forced detach comes 5 minutes late", 300.0),
    Breakage("forced-detach-early", 10, "a forced detach comes 5 minutes early", -300.0),
    Breakage("out-of-service-ignored", 10, "the out-of-service taint does not speed a detach up"),
    Breakage("replicaset-waits-for-removal", 11, "a ReplicaSet replaces a pod only when it is gone"),
    Breakage("replicaset-replaces-unready", 11, "a ReplicaSet replaces a pod that is not Ready"),
    Breakage("replacement-late", 11, "workload controllers replace pods a minute late", 60.0),
    Breakage("statefulset-replaced-before-removal", 11, "a StatefulSet force deletes its terminating pods"),
    Breakage("daemonset-ignores-taints", 11, "a DaemonSet creates pods for nodes with a NoSchedule taint"),
    Breakage("no-schedule-ignored", 11, "the scheduler heeds no NoSchedule taints but Kubernetes' own"),
    Breakage("prefer-no-schedule-ignored", 11, "the scheduler heeds no PreferNoSchedule taints"),
    Breakage("memory-pressure-tolerated", 11, "new pods tolerate memory-pressure unless they are BestEffort"),
    Breakage("pdb-ignored", 12, "the eviction API does not look at budgets"),
    Breakage("pdb-not-decremented", 12, "the eviction API looks at budgets and does not take from them"),
    Breakage("pdb-counts-terminating", 12, "terminating pods are healthy to budgets"),
    Breakage("pdb-counts-unready", 12, "pods that are not Ready are healthy to budgets"),
    Breakage("pdb-recompute-late", 12, "budgets are recomputed a minute late", 60.0),
    Breakage("stale-disruption-late", 12, "a DisruptionTarget that came to nothing is reset a minute late", 60.0),
    Breakage("stale-disruption-early", 12, "a DisruptionTarget that came to nothing is reset a minute early", -60.0),
)  # fmt: skip
BREAKAGES = {breakage.id: breakage for breakage in _ALL}


def check(ids: Collection[str]) -> None:
    """Raises ValueError for an unknown id, with the nearest ones."""
    for unknown in [item for item in ids if item not in BREAKAGES]:
        near = get_close_matches(unknown, BREAKAGES, 3, 0.5)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise ValueError(f"there is no breakage {unknown!r}{hint}")


def shift(ids: Collection[str], mechanism: str) -> float:
    """By how many seconds the ids ``MECHANISM-late`` and ``MECHANISM-early`` move it."""
    return sum(BREAKAGES[item].seconds for item in (f"{mechanism}-late", f"{mechanism}-early") if item in ids)
