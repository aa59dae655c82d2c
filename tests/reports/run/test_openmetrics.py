"""Metrics of a run: their values, and their text by the real promtool."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chaos.core.kube import Condition, Metadata, Node, NodeMetadata, NodeStatus, Pod, PodSpec, PodStatus
from chaos.core.metrics import Metric, Sample, exposition
from chaos.core.result import Phases, RunResult
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.openmetrics import render, run_metrics

Made = tuple[RunResult, Timeline]
PROMTOOL = shutil.which("promtool")


def values(result: RunResult, timeline: Timeline) -> dict[str, float]:
    """By name, without ``nodefall_run_``; those with a verdict as ``NAME VERDICT``."""
    return {
        " ".join([metric.name.removeprefix("nodefall_run_"), *sample.labels.values()]): sample.value
        for metric in run_metrics(result, timeline)
        for sample in metric.samples
    }


def node(name: str, ready: str) -> Node:
    return Node(metadata=NodeMetadata(name=name), status=NodeStatus(conditions=[Condition(type="Ready", status=ready)]))


def pod(name: str, on: str, *, deleted: str | None = None, disrupted: str = "") -> Pod:
    conditions = [Condition(type="DisruptionTarget", status=disrupted)] if disrupted else []
    metadata = Metadata(name=name, namespace="demo", uid=name, deletion_timestamp=deleted)
    return Pod(metadata=metadata, spec=PodSpec(node_name=on), status=PodStatus(conditions=conditions))


def timeline(*entries: tuple[float, Any]) -> Timeline:
    """Versions of Nodes and Pods by time; the type is that of a change."""
    made = Timeline()
    for seq, (t, obj) in enumerate(entries):
        made.add(Entry(seq, t, "nodes" if isinstance(obj, Node) else "pods", "MODIFIED", obj))
    return made


FAULT = 100.0
DOWN = timeline(
    (1, node("n1", "True")), (1, node("n2", "True")), (1, pod("a", "n1")), (1, pod("b", "n2")), (1, pod("c", "n1")),
    (2, pod("c", "n1", deleted="before")), (50, node("n2", "False")),
    (140, node("n1", "Unknown")), (150, node("n1", "True")), (160, node("n1", "False")),
    (120, pod("b", "n2", deleted="now")), (440, pod("a", "n1", disrupted="True")), (450, pod("a", "n1", deleted="now")),
)  # fmt: skip


@pytest.fixture
def result(recorded: Made) -> RunResult:
    """One step on n1 at :data:`FAULT`, and a recovery that held 30 s after its anchor."""
    made, _ = recorded
    step = replace(made.steps[0], node="n1", begin=FAULT - 1, phases=Phases(fired=FAULT))
    held = Verdict("recovery: a", "recovery", Status.HELD, "", at=630.0, start=600.0)
    return replace(
        made, started=90.0, ended=700.0, status=Status.HELD, targets={"t": ("n1",)}, steps=(step,),
        hypothesis=(held, replace_verdict(held, Status.VIOLATED)), recovery=(held,), undo=(),
    )  # fmt: skip


def replace_verdict(verdict: Verdict, status: Status) -> Verdict:
    return Verdict(verdict.name, verdict.assertion, status, "", at=verdict.at, start=verdict.start)


def test_times_and_verdicts(result: RunResult) -> None:
    assert values(result, DOWN) == {
        "verdict held": 1.0,
        "verdict violated": 0.0,
        "verdict inconclusive": 0.0,
        "verdict interrupted": 0.0,
        "verdict refused": 0.0,
        "verdict skipped": 0.0,
        "expectations held": 2.0,
        "expectations violated": 1.0,
        "expectations inconclusive": 0.0,
        "expectations known": 0.0,
        "start_timestamp_seconds": 90.0,
        "end_timestamp_seconds": 700.0,
        "duration_seconds": 610.0,
        "detect_seconds": 40.0,
        "evict_seconds": 340.0,
        "recover_seconds": 30.0,
        "pending_undo": 0.0,
    }


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (lambda made: replace(made, steps=()), {"detect_seconds", "evict_seconds"}),
        (lambda made: replace(made, targets={"t": ("n3",)}), {"detect_seconds", "evict_seconds"}),
        (lambda made: replace(made, targets={"t": ("n2",)}), {"detect_seconds"}),  # it was not Ready before
        (lambda made: replace(made, recovery=()), {"recover_seconds"}),
        (
            lambda made: replace(made, recovery=(*made.recovery, replace_verdict(made.recovery[0], Status.VIOLATED))),
            {"recover_seconds"},
        ),
    ],
)
def test_unknown_times_are_left_out(
    result: RunResult, change: Callable[[RunResult], RunResult], missing: set[str]
) -> None:
    assert values(result, DOWN).keys() - values(change(result), DOWN).keys() == missing


def test_a_recording_of_a_real_cluster(recorded: Made) -> None:
    found = values(*recorded)
    assert 0 < found["detect_seconds"] < 10, "the kubelet announces its shutdown"
    assert 0 < found["evict_seconds"] < 60


@pytest.mark.skipif(not PROMTOOL, reason="needs Debian's package prometheus (apt-get install prometheus)")
class TestPromtool:
    def check(self, text: str) -> str:
        assert PROMTOOL
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        return done.stdout + done.stderr

    def test_metrics_of_a_run(self, recorded: Made) -> None:
        text = render(*recorded)
        assert text.endswith("# EOF\n")
        assert self.check(text) == ""

    def test_hostile_labels(self) -> None:
        names = ['"', "\\", "\n", '\\"', "\\n", "}", "{", " ", "\x00", "\u202e", "\ud800", "日本", "# EOF\n", 'a="b",c']
        samples = tuple(Sample(float(n), {"name": name}) for n, name in enumerate(names))
        text = exposition([Metric("x_seconds", 'Help "of" \\ \n it.', samples)])
        assert self.check(text) == ""
        assert len(text.splitlines()) == 2 + len(names)


@given(st.floats(), st.text())
def test_a_sample_is_one_line(value: float, label: str) -> None:
    text = exposition([Metric("x", "", (Sample(value, {"l": label}),))])
    assert len(text.split("\n")) == 4
    number = text.split("\n")[2].rpartition(" ")[2]
    assert float(number) == value or math.isnan(value)
