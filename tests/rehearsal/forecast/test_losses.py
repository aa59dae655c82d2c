"""What is lost, in small timelines with a fault at 100 s."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaos.core.kube import (
    AttachmentSource,
    AttachmentSpec,
    AttachmentStatus,
    BudgetStatus,
    ClaimSource,
    ClaimSpec,
    Condition,
    Metadata,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodSpec,
    Volume,
    VolumeAttachment,
)
from chaos.rehearsal.forecast.finders import findings_of
from chaos.rehearsal.forecast.sample import Case, Finding, FindingKind
from tests.kit.small_timelines import node, pod, timeline_of

WEB, DB = "ReplicaSet/web", "StatefulSet/db"
END = (900.0, "nodes", "MODIFIED", node("True", name="elsewhere"))


def found(*lines: tuple[float, str, str, object], down: tuple[float, float] | None = None) -> list[Finding]:
    windows = {"n1": (down,)} if down else {}
    return list(findings_of(Case(timeline_of(*lines, END), 100.0, windows)))


def kinds(findings: list[Finding]) -> list[tuple[str, str, int, float | None, bool]]:
    return [(str(each.kind), each.subject, each.count, each.seconds, each.lasts) for each in findings]


def web(name: str, *, on: str | None = "n1", ready: bool = True, ending: bool = False) -> Pod:
    return pod("Running", ready=ready, ending=ending, on=on, name=name, uid=name, owner=WEB)


def unschedulable(name: str) -> Pod:
    waiting = Condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")
    made = web(name, on=None, ready=False)
    assert made.status
    return replace(made, status=replace(made.status, conditions=[waiting]))


def test_a_pod_stops_serving_with_its_machine_not_with_its_condition() -> None:
    lines = (
        (90.0, "pods", "LIST", web("a")),
        (146.0, "pods", "MODIFIED", web("a", ready=False)),
        (400.0, "pods", "ADDED", web("b", on="n2", ready=False)),
        (404.0, "pods", "MODIFIED", web("b", on="n2")),
    )
    assert kinds(found(*lines, down=(100.0, 600.0))) == [("single-replica", "ns/web", 1, 304.0, False)]
    assert kinds(found(*lines)) == [("single-replica", "ns/web", 1, 258.0, False)]


def test_one_of_two_pods_is_enough() -> None:
    lines = ((90.0, "pods", "LIST", web("a")), (90.0, "pods", "LIST", web("b", on="n2")))
    assert found(*lines, down=(100.0, 600.0)) == []
    lines = ((90.0, "pods", "LIST", web("a")), (90.0, "pods", "LIST", web("b")))
    assert kinds(found(*lines, down=(100.0, 600.0))) == [("no-replica-left", "ns/web", 2, 500.0, False)]


def test_pods_without_room_have_the_reason_of_the_scheduler() -> None:
    before = [(90.0, "pods", "LIST", unschedulable("old")), (90.0, "pods", "LIST", web("a", on="n2"))]
    new = [(150.0, "pods", "ADDED", unschedulable("b")), (160.0, "pods", "ADDED", unschedulable("c"))]
    findings = found(*before, *new, (200.0, "pods", "MODIFIED", web("b", on="n2")))
    assert kinds(findings) == [("no-room", "ns/web", 2, 740.0, True)]
    assert findings[0].detail == "0/2 nodes are available: 2 Insufficient cpu."


def budget(healthy: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(Metadata("web", "ns"), None, BudgetStatus(current_healthy=healthy, desired_healthy=2))


def test_budgets_below_what_they_demand() -> None:
    lines = [(90.0, "poddisruptionbudgets", "LIST", budget(3))]
    lines += [(150.0 + 10 * n, "poddisruptionbudgets", "MODIFIED", budget(n)) for n in (1, 0, 2)]
    assert kinds(found(*lines)) == [("budget-overdrawn", "ns/web", 2, 10.0, False)]
    assert found((90.0, "poddisruptionbudgets", "LIST", budget(1)), lines[1]) == []  # it was overdrawn before


def test_pods_of_stateful_sets_that_stay_terminating() -> None:
    def db(*, ending: bool) -> Pod:
        return pod("Running", ending=ending, name="db-0", owner=DB)

    lines = ((90.0, "pods", "LIST", db(ending=False)), (400.0, "pods", "MODIFIED", db(ending=True)))
    assert kinds(found(*lines)) == [("stuck-terminating", "ns/db", 1, 500.0, True)]
    assert found(*lines, (405.0, "pods", "DELETED", db(ending=True))) == []


@pytest.mark.parametrize(
    ("kind", "phase", "down", "lost"),
    [
        ("DELETED", "Running", (100.0, 600.0), True),
        ("DELETED", "Running", None, True),  # evicted by a taint
        ("MODIFIED", "Failed", None, True),  # evicted by the kubelet
        ("MODIFIED", "Succeeded", (100.0, 600.0), True),  # by a graceful shutdown
        ("MODIFIED", "Succeeded", None, False),  # by itself
        ("MODIFIED", "Running", (100.0, 600.0), False),
    ],
)
def test_a_pod_that_nothing_replaces(kind: str, phase: str, down: tuple[float, float] | None, *, lost: bool) -> None:
    lines = ((90.0, "pods", "LIST", pod("Running", ready=True)), (400.0, "pods", kind, pod(phase)))
    assert kinds(found(*lines, down=down)) == ([("pod-lost", "ns/p", 1, None, True)] if lost else [])


def test_nodes_that_are_tainted_late_or_not_at_all() -> None:
    lost = [(90.0, "nodes", "LIST", node("True")), (145.0, "nodes", "MODIFIED", node("Unknown"))]
    late = (165.0, "nodes", "MODIFIED", node("Unknown", "node.kubernetes.io/unreachable"))
    assert kinds(found(*lost, late)) == [("eviction-delayed", "n1", 1, 20.0, False)]
    assert kinds(found(*lost)) == [("eviction-delayed", "n1", 1, 755.0, True)]
    assert found(*lost, (146.0, *late[1:])) == []


def test_a_volume_of_the_lost_node() -> None:
    def attachment(name: str, on: str, *, attached: bool) -> VolumeAttachment:
        spec = AttachmentSpec("csi", on, AttachmentSource("pv"))
        return VolumeAttachment(Metadata(name), spec, AttachmentStatus(attached))

    mounted = PodSpec("n2", volumes=[Volume("data", ClaimSource("data-db-0"))])
    new = replace(pod("Pending", on="n2", name="db-0", uid="u2", owner=DB), spec=mounted)
    claim = PersistentVolumeClaim(Metadata("data-db-0", "ns"), ClaimSpec("pv"))
    lines = (
        (90.0, "persistentvolumeclaims", "LIST", claim),
        (90.0, "volumeattachments", "LIST", attachment("old", "n1", attached=True)),
        (200.0, "pods", "ADDED", new),
        (560.0, "volumeattachments", "DELETED", attachment("old", "n1", attached=True)),
        (561.0, "volumeattachments", "ADDED", attachment("new", "n2", attached=False)),
        (562.0, "volumeattachments", "MODIFIED", attachment("new", "n2", attached=True)),
    )
    assert kinds(found(*lines)) == [("volume-wait", "ns/db", 1, 362.0, False)]
    assert [each.kind for each in found(*lines[:3])] == [FindingKind.VOLUME_WAIT]
