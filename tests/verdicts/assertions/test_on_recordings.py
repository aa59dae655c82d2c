"""Each assertion on recordings of a real cluster, with and without the evidence that it needs."""

from __future__ import annotations

import pytest

from chaos.core.verdict import Status
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, lines_of, of_recording

FRESH = "{assert: lease-fresh, with: {node: victim, %s}, %s}"
EVENT = "{assert: event, with: {%s}, within: %s}"
ORDER = "{assert: termination-order, with: {node: victim}, within: 40s}"
GRACE = "{assert: grace-respected, with: {node: victim, except: [finished, static, terminating]%s}, within: 40s}"
BUDGET = "{assert: budget-respected, with: {namespace: demo, by: %s}, always: {for: 60s}}"
ONE = "{assert: at-most-one, with: {namespace: demo}, always: {for: %s}}"
RATE = (
    "{assert: pods, with: {rate: {deleting: true, disruption: DeletionByTaintManager, per: node, over: %s, "
    "at-most: %s}}, always: {for: 140s}}"
)
MOVED = "{assert: pods-rescheduled, with: {node: victim, %s}, within: %s}"
STUCK = "{assert: pods-stuck, with: {node: victim, owner: {kind: StatefulSet, name: db}%s}, %s}"
EVICTED = "{assert: pods-evicted, with: {node: victim, labels: {app: web}%s}, %s}"
METRIC = "{assert: metric, with: {node: victim, name: %s}, within: %s}"
CEL = "{assert: expression, with: {node: victim, expression: '%s'}, %s}"
BLOCKED = "{timeout: 25s}"

ROWS: list[tuple[str, str, str, Status, str]] = [
    # A kubelet renews its Lease until the machine is off, and again after the boot.
    ("01", "poweroff", FRESH % ("at-most: 15s, fresh: true", "always: {for: 5s}"), HELD, "true the whole time"),
    ("01", "poweroff", FRESH % ("fresh: false", "within: 45s"), HELD, "its Lease is no longer renewed, 37.3 s"),
    ("01", "power-on", FRESH % ("fresh: true", "within: 10s"), HELD, "2.2 s after"),
    ("05", "power-cut", FRESH % ("fresh: true", "always: {for: 60s}"), VIOLATED, "no longer renewed"),
    ("07", "partition", FRESH % ("fresh: false", "within: 45s"), HELD, "no longer renewed"),
    # Over IPv6 the kubelet is back after 45 s; the Lease was stale for 10 s by then.
    ("12", "partition", FRESH % ("fresh: false", "within: 45s"), HELD, "no longer renewed"),
    ("12", "partition", FRESH % ("at-most: 50s, fresh: true", "always: {for: 100s}"), HELD, "true the whole time"),
    ("27", "poweroff", FRESH % ("fresh: true", "always: {for: 60s}"), HELD, "true the whole time"),
    # Events.
    ("01", "poweroff", EVENT % ("node: victim, reason: Shutdown, component: kubelet", "5s"), HELD, "1 observed"),
    ("02", "prepare-for-shutdown", EVENT % ("node: victim, message: shutdown cancellation", "15s"), HELD, "1 observed"),
    ("01", "poweroff", EVENT % ("node: victim, message: shutdown cancellation", "15s"), VIOLATED, "no such Event"),
    ("05", "power-cut", EVENT % ("node: victim, reason: Shutdown", "60s"), VIOLATED, "no such Event was observed"),
    (
        "05",
        "power-cut",
        EVENT % ("node: victim, reason: NodeNotReady, component: node-controller", "65s"),
        HELD,
        "status is now: NodeNotReady",
    ),
    ("16", "poweroff", EVENT % ("reason: NodeShutdown, kind: Pod, least: 2", "30s"), HELD, "2 observed"),
    # Graceful shutdowns: two phases, and by priority with groups that have no pod.
    ("01", "poweroff", ORDER, HELD, "6 of priority 0, 1 of priority 2000000000"),
    ("10", "poweroff", ORDER, HELD, "1 of priority 0, 1 of priority 1000, 1 of priority 100000"),
    ("16", "poweroff", ORDER, HELD, "10 of priority 0"),
    ("02", "prepare-for-shutdown", ORDER, HELD, "group by group"),
    ("27", "poweroff", ORDER, HELD, "17 of priority 0"),
    ("05", "power-cut", ORDER, INCONCLUSIVE, "the end of demo/db-1 was not observed"),
    ("01", "poweroff", GRACE % "", HELD, "the shutdown gives its group 20 s"),
    ("10", "poweroff", GRACE % "", HELD, "3 of 3, for example"),
    ("02", "prepare-for-shutdown", GRACE % "", HELD, "11 of 11, for example"),
    # Ignores SIGTERM and has 120 s: the shutdown allows 20 s, then the container is killed.
    ("16", "poweroff", GRACE % ", labels: {app: stubborn}", HELD, "killed 19 to 21 s after"),
    ("16", "poweroff", GRACE % "", HELD, "11 of 11, for example"),
    # A pod that was already being deleted: its end was not reported.
    ("16", "poweroff", GRACE.replace(", terminating", "") % "", INCONCLUSIVE, "p9p2v: its end was not observed"),
    ("05", "power-cut", GRACE % "", INCONCLUSIVE, "its end was not observed"),
    ("08", "drain", BUDGET % "[eviction]", HELD, "demo/web: 6 pods are healthy, 6 are desired; lost so far: none"),
    ("01", "poweroff", BUDGET % "[eviction, deletion]", HELD, "true the whole time"),
    ("05", "power-cut", BUDGET % "[eviction, deletion]", HELD, "true the whole time"),
    # Two nodes of a zone: the rate limiter admits one taint per 10 s.
    ("25", "power-cut", RATE % ("10s", "0.1/s"), HELD, "true the whole time"),
    ("25", "power-cut", RATE % ("30s", "0.05/s"), VIOLATED, "2 nodes in 30s"),
    ("25", "power-cut", MOVED % ("except: [daemonset, static]", "140s"), HELD, "is ready on rz-worker"),
    ("01", "poweroff", MOVED % ("labels: {app: web}", "30s"), HELD, "is ready on ra-worker"),
    # One of db must be on each node, so the third waits for its node.
    ("01", "poweroff", MOVED % ("labels: {app: db}", "100s"), VIOLATED, "demo/db-1: not replaced"),
    ("01", "poweroff", "{assert: pods-rejected, with: {node: victim}, within: 30s}", HELD, "Failed (NodeShutdown)"),
    ("02", "prepare-for-shutdown", "{assert: pods-rejected, with: {node: victim}, within: 30s}", HELD, "agent-"),
    (
        "05",
        "power-cut",
        "{assert: pods-rejected, with: {node: victim}, within: 30s}",
        VIOLATED,
        "0 pods rejected because of the shutdown",
    ),
    ("05", "power-cut", STUCK % ("", "after: stop + 100s, always: {for: 300s}"), HELD, "being deleted"),
    ("05", "power-cut", STUCK % (", none: {}", "within: 440s"), HELD, "already at stop"),
    ("08", "drain", EVICTED % ("", "within: 35s"), HELD, "EvictionByEvictionAPI, being deleted"),
    ("08", "drain", EVICTED % (", any: {}", "never: {for: 25s}"), HELD, "never observed"),
    (
        "05",
        "power-cut",
        "{assert: pods-disrupted, with: {node: victim, labels: {app: web}}, within: 6m}",
        HELD,
        "344.0 s",
    ),
    # Metrics of kubelets, and expressions.
    (
        "01",
        "poweroff",
        METRIC % ("kubelet_graceful_shutdown_start_time_seconds, at-least: 1", "10s"),
        HELD,
        "value 1.79",
    ),
    (
        "01",
        "poweroff",
        METRIC % ("kubelet_graceful_shutdown_end_time_seconds, at-least: 1", "60s"),
        INCONCLUSIVE,
        "read",
    ),
    (
        "05",
        "power-cut",
        METRIC % ("kubelet_graceful_shutdown_start_time_seconds, at-least: 1", "60s"),  # of an earlier shutdown
        HELD,
        "already at stop",
    ),
    (
        "05",
        "power-cut",
        METRIC % ("kubelet_no_such_metric, at-least: 1", "60s"),
        INCONCLUSIVE,
        "reading the metrics of the kubelet failed",
    ),
    ("25", "power-cut", CEL % ("nodes.filter(n, !n.ready).size() == 2", "within: 65s"), HELD, "is true"),
    ("25", "power-cut", CEL % ("nodes.filter(n, !n.ready).size() == 3", "within: 65s"), VIOLATED, "is false"),
    ("01", "poweroff", CEL % ("nodes.all(n, n.ready || n.name in targets)", "always: {for: 100s}"), HELD, ""),
    # No pod of the recording has a volume.
    (
        "05",
        "power-cut",
        "{assert: volume-attached, with: {node: victim, attached: false}, within: 60s}",
        INCONCLUSIVE,
        "no VolumeAttachments were observed; to decide this, nodefall needs the VolumeAttachments",
    ),
    # The power control reports that the machine is off; recording 07 has no reading of the running containers.
    ("01", "poweroff", ONE % "150s", HELD, "true the whole time"),
    ("05", "power-cut", ONE % "480s", HELD, "true the whole time"),
    ("07", "partition", ONE % "150s", INCONCLUSIVE, "no report from ra-worker on whether it still runs"),
    # Drained by kubectl: the responses of the API server were not recorded.
    (
        "08",
        "drain",
        "{assert: eviction-refused, with: {node: victim}, within: 10s}",
        INCONCLUSIVE,
        "to drain-blocked were not recorded, at stop; to decide this, nodefall needs the responses to the",
    ),
]


@pytest.mark.parametrize(("number", "action", "expectation", "status", "because"), ROWS)
def test_on_recordings(number: str, action: str, expectation: str, status: Status, because: str) -> None:
    params = BLOCKED if number == "08" else "{}"
    verdict = of_recording(lines_of(number), action, expectation, params)
    assert (verdict.status, because in verdict.because) == (status, True), verdict.because
