"""Parts of the HTML report: lanes, rows of observations, content security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from chaos.core.kube import (
    AttachmentSource,
    AttachmentSpec,
    AttachmentStatus,
    BudgetStatus,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Job,
    JobStatus,
    Metadata,
    Node,
    NodeMetadata,
    Pod,
    PodDisruptionBudget,
    PodStatus,
    VolumeAttachment,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from chaos.core.recording import ActionRecord, BlindWindow, ProbeResult
from chaos.core.result import RunResult
from chaos.core.timeline import Entry, Timeline
from chaos.reports.run import html
from chaos.reports.run.describe import describe, node_state, pod_state
from chaos.reports.run.page.changes import observations
from chaos.reports.run.page.lanes import UNSCHEDULED, lanes
from chaos.reports.run.page.page_data import page_data, unpack
from tests.kit.small_timelines import node, pod, timeline_of

Made = tuple[RunResult, Timeline]


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (node("True"), "ready"),
        (node("False"), "notready"),
        (node("Unknown"), "unknown"),
        (Node(NodeMetadata("n1")), "unknown"),
    ],
)
def test_node_states(made: Node, state: str) -> None:
    assert node_state(made) == state


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (pod("Pending"), "pending"),
        (pod(""), "pending"),
        (pod("Running"), "running"),
        (pod("Running", ready=True), "ready"),
        (pod("Running", ready=True, ending=True), "terminating"),
        (pod("Pending", ending=True), "terminating"),
        (pod("Succeeded", ending=True), "succeeded"),
        (pod("Failed"), "failed"),
        (Pod(), "pending"),
    ],
)
def test_pod_states(made: Pod, state: str) -> None:
    assert pod_state(made) == state


def test_lanes_join_equal_states_and_end_with_the_object() -> None:
    timeline = timeline_of(
        (10, "nodes", "LIST", node("True")),
        (10, "pods", "LIST", pod("Running", ready=True)),
        (12, "nodes", "MODIFIED", node("True")),
        (14, "nodes", "MODIFIED", node("False", "not-ready")),
        (15, "pods", "MODIFIED", pod("Running", ending=True, reason="TerminationByKubelet")),
        (18, "pods", "DELETED", pod("Running", ending=True, reason="TerminationByKubelet")),
        (20, "nodes", "MODIFIED", node("True")),
        (30, "nodes", "MODIFIED", node("True")),
    )
    first, second = lanes(timeline)
    assert [(s.start, s.end, s.state) for s in first.spans] == [
        (10, 14, "ready"),
        (14, 20, "notready"),
        (20, 30, "ready"),
    ]
    assert [(s.start, s.end, s.text) for s in first.taints] == [(14, 20, "not-ready:NoExecute")]
    assert [(s.start, s.end, s.state) for s in second.spans] == [(10, 15, "ready"), (15, 18, "terminating")]
    assert [(m.t, m.kind) for m in second.marks] == [(15, "disruption"), (18, "gone")]
    assert (first.has_changes, second.has_changes) == (True, True)


def test_unobserved_deletion_is_marked() -> None:
    timeline = timeline_of((10, "pods", "LIST", pod("Running")))
    timeline.add(Entry(1, 12, "pods", "DELETED", pod("Running"), note="missing at relist"))
    assert lanes(timeline)[0].marks[0].text == "deletion not observed: missing at the next list"


def test_targets_come_first_and_unscheduled_pods_last() -> None:
    timeline = timeline_of(
        (10, "nodes", "LIST", node("True", name="a")),
        (10, "nodes", "LIST", node("True", name="b")),
        (10, "pods", "LIST", pod("Pending", on=None)),
    )
    assert [(lane.kind, lane.group) for lane in lanes(timeline, ["b"])] == [
        ("node", "b"),
        ("node", "a"),
        ("pod", UNSCHEDULED),
    ]


def test_pod_without_changes_has_no_changes() -> None:
    same = pod("Running", ready=True)
    timeline = timeline_of((10, "pods", "LIST", same), (12, "pods", "MODIFIED", same), (30, "pods", "MODIFIED", same))
    assert not lanes(timeline)[0].has_changes


@pytest.mark.parametrize(
    ("kind", "type_", "thing", "words"),
    [
        ("nodes", "MODIFIED", node("False", "k"), "n1: Ready=False (Why: words), taints k:NoExecute"),
        ("nodes", "DELETED", node("True"), "n1: Ready=True was deleted"),
        (
            "pods",
            "MODIFIED",
            pod("Running", ending=True, reason="EvictionByEvictionAPI"),
            "ns/p on n1: Running, terminating, not ready, DisruptionTarget EvictionByEvictionAPI",
        ),
        (
            "pods",
            "MODIFIED",
            Pod(
                Metadata("p"),
                None,
                PodStatus(
                    "Failed",
                    "Terminated",
                    container_statuses=[
                        ContainerStatus("c", state=ContainerState(terminated=ContainerStateTerminated(3)))
                    ],
                ),
            ),
            "p: Failed (Terminated), c exit 3",
        ),
        (
            "deployments",
            "MODIFIED",
            Workload(Metadata("web", "ns"), WorkloadSpec(6), WorkloadStatus(ready_replicas=5, available_replicas=4)),
            "deployments ns/web: 5 ready, 4 available of 6",
        ),
        (
            "action",
            "poweroff",
            ActionRecord("off", "returned", command="systemctl poweroff", delivery="answered", exit=0),
            "poweroff: returned, systemctl poweroff, answered with 0 (step off)",
        ),
        ("blind", "pods", BlindWindow(1, 3.5, "reset", "pods"), "pods could not be observed for 2.5 s: reset"),
        ("blind", "pods", BlindWindow(1, None, "reset", "pods"), "pods could not be observed from here on: reset"),
        ("host", "machine", "off", "machine on  = off"),
        ("host", "containers", {"running": []}, "running containers on : none"),
        (
            "host",
            "containers",
            {"running": [{"namespace": "d", "pod": "p", "container": "c", "id": "1"}]},
            "running containers on : d/p/c",
        ),
        ("probe", "shop", ProbeResult(True, 200, "", 0.1), "probe shop: ok (HTTP 200)"),
        ("probe", "shop", ProbeResult(False, None, "connection refused"), "probe shop: connection refused"),
        (
            "poddisruptionbudgets",
            "ADDED",
            PodDisruptionBudget(Metadata("b", "d"), None, BudgetStatus(None, 0, 5, 5, 6)),
            "poddisruptionbudget d/b allows 0, 5 of 6 healthy, 5 desired",
        ),
        (
            "volumeattachments",
            "MODIFIED",
            VolumeAttachment(
                Metadata("a"), AttachmentSpec("x", "n1", AttachmentSource("pv-1")), AttachmentStatus(True)
            ),
            "volume pv-1 and n1: attached",
        ),
        (
            "jobs",
            "MODIFIED",
            Job(Metadata("j", "d"), None, JobStatus(active=1, failed=2)),
            "job d/j: 1 active, 2 failed",
        ),
        ("metrics", "503", {}, "metrics of : 503"),
    ],
)
def test_descriptions_of_entries(kind: str, type_: str, thing: Any, words: str) -> None:
    assert describe(Entry(0, 1.0, kind, type_, thing)).split() == words.split()


def test_observations_are_changes_and_evidence_with_count_of_omitted_rows() -> None:
    timeline = timeline_of(
        (1, "nodes", "LIST", node("True")),
        (2, "nodes", "MODIFIED", node("True")),
        (3, "nodes", "MODIFIED", node("False")),
        (4, "nodes", "MODIFIED", node("True")),
        (5, "action", "poweroff", ActionRecord("off", "begin")),
        (6, "replicasets", "ADDED", Workload()),
    )
    assert [entry.seq for entry, _ in observations(timeline, set(), 9)[0]] == [0, 2, 3, 4]
    assert [entry.seq for entry, _ in observations(timeline, {1, 5}, 9)[0]] == [0, 1, 2, 3, 4, 5]
    rows, omitted = observations(timeline, {3}, 1)
    assert [entry.seq for entry, _ in rows] == [0, 3, 4]
    assert omitted == 1


def test_open_blind_window_hatches_its_lane_to_the_end(recorded: Made) -> None:
    result, _ = recorded
    start = result.steps[0].begin or 0.0
    timeline = timeline_of((start, "nodes", "LIST", node("True")), (start + 30, "nodes", "MODIFIED", node("True")))
    timeline.blind_windows += [
        BlindWindow(start + 5, start + 9, "r", "pods"),
        BlindWindow(start + 20, None, "r", "host@n1"),
    ]
    found = page_data(result, timeline, lanes(timeline))["blinds"]
    assert [(b["kind"], b["node"], b["start"], b["end"]) for b in found] == [
        ("pods", "", 5000, 9000),
        ("host", "n1", 20000, 30000),
    ]


def test_every_evidence_link_has_a_footnote_and_every_cited_entry_is_in_the_data(recorded: Made) -> None:
    page = html.render(*recorded)
    ids = set(re.findall(r' id="e(\d+)"', page))
    links = set(re.findall(r'href="#e(\d+)"', page))
    assert links
    assert links <= ids
    data = unpack(page.split('id="data">')[1].split("</script>")[0])
    cited = {seq for verdict in data["verdicts"] for seq in verdict["evidence"]}
    assert cited
    assert cited <= set(data["observations"]["seq"])


def test_page_loads_no_external_resources(recorded: Made) -> None:
    page = html.render(*recorded)
    assert not re.search(r"""(?:src|action|srcset)\s*=|@import|url\(|\bfetch\(|XMLHttpRequest|style=""", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}


def test_policy_admits_only_the_style_and_script_of_the_page(recorded: Made) -> None:
    page = html.render(*recorded)
    for kind, code in (("style", page.split("<style>")[1].split("</style>")[0]), ("script", _script(page))):
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"{kind}-src &#x27;sha256-{digest}&#x27;" in page
    assert "unsafe" not in page.split("</head>")[0].split("<style>")[0]


def _script(page: str) -> str:
    return page.split("<script>")[1].split("</script>", maxsplit=1)[0]
