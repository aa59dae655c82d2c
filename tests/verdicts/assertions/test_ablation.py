"""Every assertion needs the evidence in ``needs``: it is not held without it, and other entries do not matter.

Timelines are handmade or recorded. Each row has an expectation and the entries that are its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from chaos.core.recording import RecordingEntry
from chaos.core.verdict import Verdict
from tests.kit.story import HELD, INCONCLUSIVE, Story, blinded, lines_of, of_recording, plugin_registry

LOCK = [{"who": "kubelet", "what": "shutdown", "mode": "delay"}]
REFUSED = {"t": 1_800_000_010.1, "status": 429, "message": "Cannot evict pod as it would violate the budget."}
CONTROLLERS = "https://192.0.2.1:10257"
EVICTIONS = {"pods": [{"pod": "demo/a", "uid": "uid-a", "status": 429, "refusals": [REFUSED]}]}


@dataclass(frozen=True)
class Row:
    """An expectation that holds; ``evidence`` matches the entries that it needs."""

    expectation: str
    lines: Iterable[RecordingEntry]
    evidence: tuple[Callable[[RecordingEntry], bool], ...]
    action: str = "poweroff"

    def is_evidence(self, line: RecordingEntry) -> bool:
        return any(is_one(line) for is_one in self.evidence)


def kinds(*names: str) -> tuple[Callable[[RecordingEntry], bool]]:
    return (lambda line: line.kind in names,)


def host(fact: str) -> tuple[Callable[[RecordingEntry], bool]]:
    return (lambda line: (line.kind, line.type) == ("host", fact),)


def with_text(kind: str, text: str) -> tuple[Callable[[RecordingEntry], bool]]:
    return (lambda line: line.kind == kind and f'"{text}"'.encode() in bytes(line.object),)


def entries_with_noise(story: Story) -> list[RecordingEntry]:
    """Entries of the story, with an end and with many entries that no expectation needs."""
    story.node(0, "n1").node(0, "n9").pod(0, "other", node="n9").lease(0, "n9").event(0, "Started", "n9")
    story.event(11, "Started", "n9").metrics(12, 0, node="n9").host(12, "swap", "off", node="n9").node(
        60, "n9", "False"
    )
    story.workload(0, "other", 1, namespace="elsewhere").add(100, "nodes", "BOOKMARK", {})
    if not any(line.kind == "action" for line in story.lines):
        story.done(10, "poweroff", step="stop")
    return sorted(story.lines, key=lambda line: line.t)


def replaced_pod() -> Story:
    """A pod of a StatefulSet is force deleted on n1 and replaced on n9."""
    db: dict[str, Any] = {"owner": ("StatefulSet", "db")}
    story = Story().pod(0, "db-0", uid="old", **db).pod(12, "db-0", uid="old", type_="DELETED", **db)
    return story.pod(20, "db-0", node="n9", uid="new", started=20, **db)


def deletion_counts() -> Story:
    """A pod is deleted for a taint at 15."""
    story, name = Story(), "taint_eviction_controller_pod_deletions_total"
    for t in range(45):
        story.add(t, "metrics", "200", [f"{name} {int(t >= 15)}"], CONTROLLERS)
    return story


def probe_answers() -> Story:
    """A probe every second; it fails from 12 to 14."""
    story = Story()
    for t in range(45):
        story.probe(t, "shop", t not in (12, 13))
    return story


ROWS = {
    "nodes-ready": Row(
        "{assert: nodes-ready, with: {nodes: victim}, within: 5s}", entries_with_noise(Story()), kinds("nodes")
    ),
    "node-condition": Row(
        '{assert: node-condition, with: {node: victim, status: "False", message: shutting down}, within: 5s}',
        lines_of("01"),
        kinds("nodes"),
    ),
    "node-taint": Row(
        "{assert: node-taint, with: {node: victim, key: node.kubernetes.io/unreachable}, within: 70s}",
        lines_of("05"),
        kinds("nodes"),
        "power-cut",
    ),
    "node-rebooted": Row(
        "{assert: node-rebooted, with: {node: victim}, within: 2m}",
        lines_of("01"),
        (lambda line: (line.kind, line.type) == ("host", "pid1-start") or b'"pid1-start"' in bytes(line.object),),
    ),
    "pods": Row(
        "{assert: pods, with: {node: victim, except: [daemonset, finished, terminating], "
        "each: {disruption: TerminationByKubelet}}, within: 40s}",
        lines_of("01"),
        kinds("pods"),
    ),
    "pods-started": Row(
        "{assert: pods-started, with: {node: victim}, never: {for: 30s}}", lines_of("01"), kinds("pods")
    ),
    "workload-available": Row(
        "{assert: workload-available, with: {namespace: workload, as: reported}, within: 100s}",
        lines_of("05"),
        kinds("deployments", "statefulsets", "daemonsets"),
        "power-cut",
    ),
    "shutdown-metrics": Row(
        "{assert: shutdown-metrics, with: {node: victim, started: true}, within: 10s}",
        lines_of("01"),
        kinds("metrics"),
    ),
    "inhibitor-held": Row(
        "{assert: inhibitor-held, with: {node: victim}, within: 5s}",
        entries_with_noise(Story().done(10, "poweroff", step="stop").host(12, "inhibitor-locks", LOCK)),
        host("inhibitor-locks"),
    ),
    "lease-fresh": Row(
        "{assert: lease-fresh, with: {node: victim, fresh: false}, within: 45s}", lines_of("01"), kinds("leases")
    ),
    "event": Row(
        "{assert: event, with: {node: victim, reason: Shutdown, component: kubelet}, within: 5s}",
        lines_of("01"),
        kinds("events"),
    ),
    "eviction-refused": Row(
        "{assert: eviction-refused, with: {node: victim, message: budget}, within: 5s}",
        entries_with_noise(
            Story().act(10, "drain", step="stop").act(40, "drain", "returned", step="stop", exit=1, evidence=EVICTIONS)
        ),
        with_text("action", "returned"),
        "drain",
    ),
    "termination-order": Row(
        "{assert: termination-order, with: {node: victim}, within: 20s}",
        lines_of("10"),
        (*kinds("pods"), *with_text("events", "Killing"), *host("configz")),
    ),
    "grace-respected": Row(
        "{assert: grace-respected, with: {node: victim}, within: 20s}",
        lines_of("10"),
        (*kinds("pods"), *with_text("events", "Killing"), *host("configz")),
    ),
    "at-most-one": Row(
        "{assert: at-most-one, with: {namespace: demo}, always: {for: 40s}}",
        entries_with_noise(replaced_pod().host(15, "containers", {"running": []})),
        (*kinds("pods"), *host("containers")),
    ),
    "volume-attached": Row(
        "{assert: volume-attached, with: {node: victim, attached: false}, within: 20s}",
        entries_with_noise(Story().attachment(0).attachment(20, type_="DELETED")),
        kinds("volumeattachments"),
    ),
    "budget-respected": Row(
        "{assert: budget-respected, with: {namespace: demo}, always: {for: 60s}}",
        lines_of("08"),
        (*kinds("poddisruptionbudgets"), *kinds("pods")),
        "drain",
    ),
    "metric": Row(
        "{assert: metric, with: {node: victim, name: kubelet_graceful_shutdown_start_time_seconds, at-least: 1}, "
        "within: 10s}",
        lines_of("01"),
        kinds("metrics"),
    ),
    "metric of the controller-manager": Row(
        "{assert: metric, with: {controller-manager: true, name: taint_eviction_controller_pod_deletions_total, "
        "increase: true, at-least: 1}, within: 10s}",
        entries_with_noise(deletion_counts()),
        (lambda line: line.kind == "metrics" and line.node == CONTROLLERS,),
    ),
    "endpoint-available": Row(
        "{assert: endpoint-available, with: {probe: shop, budget: 3s}, always: {for: 30s}}",
        entries_with_noise(probe_answers()),
        kinds("probe"),
    ),
    "expression": Row(
        "{assert: expression, with: {namespace: demo, "
        'expression: "pods.filter(p, p.ready).size() >= 1 && workloads.all(w, w.ready == w.wanted)"}, within: 10s}',
        entries_with_noise(Story().pod(0, "a").workload(0, "web", 3)),
        (*kinds("pods"), *kinds("deployments")),
    ),
    "pods-disrupted": Row(
        "{assert: pods-disrupted, with: {node: victim, except: [finished]}, within: 40s}", lines_of("01"), kinds("pods")
    ),
    "pods-evicted": Row(
        "{assert: pods-evicted, with: {node: victim, labels: {app: web}}, within: 40s}",
        lines_of("08"),
        kinds("pods"),
        "drain",
    ),
    "pods-rejected": Row("{assert: pods-rejected, with: {node: victim}, within: 20s}", lines_of("01"), kinds("pods")),
    "pods-stuck": Row(
        "{assert: pods-stuck, with: {node: victim, labels: {app: web}}, within: 6m}",
        lines_of("05"),
        kinds("pods"),
        "power-cut",
    ),
    "pods-rescheduled": Row(
        "{assert: pods-rescheduled, with: {node: victim, labels: {app: web}}, within: 40s}",
        lines_of("01"),
        kinds("pods"),
    ),
}
ALWAYS = frozenset({"meta", "action", "nodes"})  # nodes, and the actions


def ask(name: str, keep: Callable[[RecordingEntry], bool]) -> Verdict:
    row = ROWS[name]
    return of_recording([line for line in row.lines if keep(line)], row.action, row.expectation, namespace="demo")


def test_every_assertion_has_a_row() -> None:
    assert {name.partition(" ")[0] for name in ROWS} == set(plugin_registry().assertions)


@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name, row in ROWS.items() for i in range(len(row.evidence))]
)
def test_expectation_does_not_hold_without_its_evidence(name: str, number: int) -> None:
    is_evidence = ROWS[name].evidence[number]
    assert ask(name, lambda _: True).status is HELD, ask(name, lambda _: True).because
    without = ask(name, lambda line: line.kind == "meta" or not is_evidence(line))
    assert without.status is INCONCLUSIVE, without.because
    assert "; to decide this, nodefall needs " in without.because


@pytest.mark.parametrize("name", sorted(ROWS))
def test_other_entries_do_not_matter(name: str) -> None:
    row = ROWS[name]
    whole, bare = ask(name, lambda _: True), ask(name, lambda line: line.kind in ALWAYS or row.is_evidence(line))
    assert (bare.status, bare.because) == (whole.status, whole.because)


SOURCES = ("nodes", "pods", "deployments", "statefulsets", "daemonsets", "events", "leases", "poddisruptionbudgets")


@pytest.mark.parametrize("start", [1.0, 4.5, 30.0])
@pytest.mark.parametrize("length", [0.7, 20.0])
@pytest.mark.parametrize("name", sorted(ROWS))
def test_blind_windows_cause_no_violation(name: str, start: float, length: float) -> None:
    """An expectation that holds is held or inconclusive if the connection to the API was lost for some time."""
    row = ROWS[name]
    cut = sorted(blinded(list(row.lines), SOURCES, start, length), key=lambda line: line.t)
    verdict = of_recording(cut, row.action, row.expectation, namespace="demo")
    assert verdict.status in (HELD, INCONCLUSIVE), verdict.because
