"""Measures of small timelines, and of recordings of a real cluster."""

from __future__ import annotations

import pytest

from chaos.core.kube import AttachmentSource, AttachmentSpec, AttachmentStatus, ClaimSpec, Metadata
from chaos.core.kube import PersistentVolumeClaim as Claim
from chaos.core.kube import VolumeAttachment as Attachment
from chaos.core.store.recording import build_timeline, read_recording
from chaos.verdicts.outcome.measure import Kind, Measure
from chaos.verdicts.outcome.outcome import fault_time, outcome_of
from tests.kit.processes import ROOT
from tests.kit.small_timelines import node, pod, timeline_of

WEB = "ReplicaSet/web"


def seconds(*lines: tuple[float, str, str, object], meta: dict[str, object] | None = None) -> dict[str, float]:
    """Measures of a timeline with a fault at 100 s."""
    timeline = timeline_of(*lines)
    timeline.meta.update(meta or {})
    return {str(measure): value for measure, value in outcome_of(timeline, 100.0).seconds.items()}


def test_a_node_that_is_lost_and_returns() -> None:
    found = seconds(
        (90, "nodes", "LIST", node("True")),
        (146, "nodes", "MODIFIED", node("Unknown")),
        (147, "nodes", "MODIFIED", node("Unknown", "node.kubernetes.io/unreachable")),
        (200, "nodes", "MODIFIED", node("True", "node.kubernetes.io/unreachable")),
        (205, "nodes", "MODIFIED", node("True")),
        (300, "nodes", "MODIFIED", node("Unknown")),
    )
    assert found == {
        "node n1: Ready=Unknown": 46.0,
        "node n1: tainted node.kubernetes.io/unreachable:NoExecute": 47.0,
        "node n1: Ready again": 100.0,
        "node n1: untainted node.kubernetes.io/unreachable:NoExecute": 105.0,
        "node n1: Ready=Unknown (2)": 200.0,
    }


def test_the_name_of_a_pod_that_a_step_made_has_the_experiment_for_the_run() -> None:
    meta: dict[str, object] = {"run": "preemption-0a1b2c", "experiment": "preemption"}
    made = pod("Running", ready=True, name="nodefall-preemption-0a1b2c-preempt", uid="u1")
    assert seconds((110, "pods", "ADDED", made), meta=meta) == {
        "replacement 1 of ns/nodefall-preemption-preempt: created": 10.0,
        "replacement 1 of ns/nodefall-preemption-preempt: scheduled": 10.0,
        "replacement 1 of ns/nodefall-preemption-preempt: Ready": 10.0,
    }


def test_pods_of_an_owner_are_counted_not_named() -> None:
    first = [("a", "u1"), ("b", "u2")]
    found = seconds(
        *((90.0, "pods", "LIST", pod("Running", ready=True, name=n, uid=u, owner=WEB)) for n, u in first),
        (110, "pods", "MODIFIED", pod("Running", ready=True, ending=True, name="b", uid="u2", owner=WEB)),
        (111, "pods", "ADDED", pod("Pending", on=None, name="c", uid="u3", owner=WEB)),
        (112, "pods", "MODIFIED", pod("Pending", on="n2", name="c", uid="u3", owner=WEB)),
        (113, "pods", "DELETED", pod("Succeeded", ending=True, name="b", uid="u2", owner=WEB)),
        (114, "pods", "MODIFIED", pod("Running", ready=True, on="n2", name="c", uid="u3", owner=WEB)),
        (120, "pods", "MODIFIED", pod("Running", ready=True, ending=True, name="a", uid="u1", owner=WEB)),
    )
    assert found == {
        "pod 1 of ns/web on n1: deleting": 10.0,
        "pod 1 of ns/web on n1: Succeeded": 13.0,
        "pod 1 of ns/web on n1: removed": 13.0,
        "pod 2 of ns/web on n1: deleting": 20.0,
        "replacement 1 of ns/web: created": 11.0,
        "replacement 1 of ns/web: scheduled": 12.0,
        "replacement 1 of ns/web: Ready": 14.0,
        "workload ns/web: fewer pods ready": 13.0,
        "workload ns/web: enough pods ready again": 14.0,
        "workload ns/web: fewer pods ready for": 1.0,
    }


def test_names_of_a_run_do_not_have_its_id() -> None:
    found = seconds(
        (90, "nodes", "LIST", node("True")),
        (90, "pods", "LIST", pod("Running", ready=True, owner=WEB)),
        (110, "nodes", "MODIFIED", node("False")),
        (110, "pods", "MODIFIED", pod("Running", owner=WEB)),
        meta={"targets": {"n1": "victim"}, "workload": "ns"},
    )
    assert found == {
        "node victim: Ready=False": 10.0,
        "pod 1 of workload/web on victim: not Ready": 10.0,
        "workload workload/web: fewer pods ready": 10.0,
        "workload workload/web: no pod ready": 10.0,
    }


def test_nodes_of_one_target_are_numbered_by_name() -> None:
    lines = [(90.0, "nodes", "LIST", node("True", name=name)) for name in ("b", "a")]
    found = seconds(
        *lines,
        (110, "nodes", "MODIFIED", node("Unknown", "node.kubernetes.io/unreachable", name="b")),
        (120, "nodes", "MODIFIED", node("Unknown", "node.kubernetes.io/unreachable", name="a")),
        meta={"targets": {"b": "lost", "a": "lost"}},
    )
    assert found["node lost-2: Ready=Unknown"] == 10.0
    assert found["node lost-1: Ready=Unknown"] == 20.0
    assert found["zone of no zone: node 2 tainted NoExecute"] == 20.0


def test_a_volume_that_moves() -> None:
    def attachment(name: str, on: str, *, attached: bool) -> Attachment:
        spec = AttachmentSpec("csi", on, AttachmentSource("pv-1"))
        return Attachment(Metadata(name), spec, AttachmentStatus(attached))

    found = seconds(
        (90, "persistentvolumeclaims", "LIST", Claim(Metadata("data", "ns"), ClaimSpec("pv-1"))),
        (90, "volumeattachments", "LIST", attachment("x", "n1", attached=True)),
        (460, "volumeattachments", "DELETED", attachment("x", "n1", attached=True)),
        (461, "volumeattachments", "ADDED", attachment("y", "n2", attached=False)),
        (463, "volumeattachments", "MODIFIED", attachment("y", "n2", attached=True)),
    )
    assert found == {
        "volume ns/data: detached from n1": 360.0,
        "volume ns/data: attached to another node": 363.0,
    }


def test_what_was_so_before_the_fault_is_no_measure() -> None:
    assert (
        seconds(
            (80, "pods", "LIST", pod("Failed", owner=WEB)),
            (90, "pods", "LIST", pod("Running", ending=True, name="b", uid="u2", owner=WEB)),
            (110, "pods", "DELETED", pod("Failed", owner=WEB)),
            (111, "pods", "MODIFIED", pod("Running", ending=True, name="b", uid="u2", owner=WEB)),
        )
        == {}
    )


@pytest.mark.parametrize(
    ("name", "measure", "expected"),
    [
        ("05-power-cut", Measure(Kind.NODE, "rb-worker", "Ready=Unknown"), 43.9),
        ("05-power-cut", Measure(Kind.REPLACEMENT, "3 of demo/web", "Ready"), 345.2),
        ("33-volume-graceful-poweroff", Measure(Kind.NODE, "nf3-worker", "shutdown seen"), 0.6),
        ("33-volume-graceful-poweroff", Measure(Kind.VOLUME, "demo/data-db-0", "detached from nf3-worker"), 361.5),
    ],
)
def test_recordings(name: str, measure: Measure, expected: float) -> None:
    timeline = build_timeline(read_recording(ROOT / "tests" / "recordings" / f"{name}.jsonl.gz"))
    start = fault_time(timeline)
    assert start is not None
    assert outcome_of(timeline, start).seconds[measure] == pytest.approx(expected, abs=0.1)


def test_an_end_hides_what_comes_later() -> None:
    timeline = timeline_of((90, "nodes", "LIST", node("True")), (146, "nodes", "MODIFIED", node("Unknown")))
    outcome = outcome_of(timeline, 100.0, 120.0)
    assert (outcome.observed, outcome.seconds) == (20.0, {})
