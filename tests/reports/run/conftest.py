"""Results and timelines to render: a recording of a real cluster, and a small one in which every string is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.kube import (
    Condition,
    Event,
    Metadata,
    Node,
    NodeMetadata,
    NodeSpec,
    NodeStatus,
    ObjectReference,
    Pod,
    PodSpec,
    PodStatus,
    Taint,
)
from chaos.core.recording import ActionRecord, BlindWindow
from chaos.core.result import RESULT_VERSION, RunResult, StepResult, UndoResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import Status, Verdict
from tests.kit.browser import Browser

RECORDINGS = Path(__file__).parents[2] / "recordings"
Made = tuple[RunResult, Timeline]


def _seqs(timeline: Timeline, kind: str, name: str, has: str) -> tuple[int, ...]:
    return tuple(
        e.seq
        for e in timeline.entries
        if e.kind == kind and name in e.object.metadata.name and has in msgspec.json.encode(e.object).decode()
    )


@pytest.fixture(scope="session")
def recorded() -> Made:
    """Recording 01 and a handmade result that has every kind of verdict."""
    timeline = build_timeline(read_recording(RECORDINGS / "01-graceful-poweroff.jsonl.gz"))
    begins = [(e, r) for e, r in timeline.actions if r.phase == "begin"]
    (off, _), (on, _) = begins[0], begins[1]
    down = _seqs(timeline, "nodes", "ra-worker", "node is shutting down")
    ended = _seqs(timeline, "pods", "", "TerminationByKubelet")
    machine = tuple(f.seq for f in timeline.readings("ra-worker", "machine"))
    steady = Verdict("all nodes are ready", "nodes-ready", Status.HELD, "4 of 4 nodes were ready", at=off.t)
    held = Verdict(
        "the kubelet announces the shutdown", "node-condition", Status.HELD,
        "Ready of ra-worker was False with 'node is shutting down' after 0.3s", "Ready=False within 5s", "after 0.3s",
        timeline.entries[down[0]].t, off.t, off.t + 5, down[:1],
    )  # fmt: skip
    violated = Verdict(
        "every pod is terminated by the kubelet", "pods", Status.VIOLATED,
        "demo/web-6749b54fc9-x was still Running 40 s after power-off", "disruption TerminationByKubelet within 40s",
        "no DisruptionTarget condition", off.t + 40, off.t, off.t + 40, ended,
    )  # fmt: skip
    unknown = Verdict(
        "nothing starts on the dying node", "pods-started", Status.INCONCLUSIVE,
        "pods could not be seen from +20s to +26s", "no start", "blind", on.t, off.t, on.t, (), ("a=40s",),
    )  # fmt: skip
    timeline.blind_windows.append(BlindWindow(off.t + 20, off.t + 26, "connection reset", "pods"))
    steps = tuple(
        StepResult(name, entry.type, "ra-worker", entry.t, entry.t + 0.3, "answered", f"systemctl {name}",
                   ProofStatus.PROVEN, "ra-worker was off 8.1 s after the step", machine)
        for name, entry in (("power-off", off), ("power-on", on))
    )  # fmt: skip
    result = RunResult(
        version=RESULT_VERSION, run="20261121T033537Z-ab12", experiment="graceful-poweroff",
        title="A planned power-off finishes every pod in time and moves its work", status=Status.VIOLATED, exit_code=1,
        headline="violated: every pod is terminated by the kubelet: demo/web was still Running, +40s",
        simulated=True, kubernetes="v1.36.2", cluster_uid="8fda81c0", started=timeline.start, ended=timeline.end,
        targets={"victim": ("ra-worker",)}, steps=steps, steady_state=(steady,), hypothesis=(held, violated, unknown),
        recovery=(Verdict("all nodes are ready", "nodes-ready", Status.HELD, "4 of 4 nodes were ready", at=on.t + 12),),
        undo=(UndoResult("power-off", "poweroff", "ra-worker", True, "ra-worker is on"),), notes=("a note",),
        started_by="ann@laptop/4242-ab12cd34", nodefall_version="9.8.7", plan_hash="c0ffee",
    )  # fmt: skip
    return result, timeline


def _hostile_timeline(text: str) -> Timeline:
    timeline = Timeline()
    about = Metadata(name=text, namespace=text, uid="u1", deletion_timestamp=text)
    condition = Condition(type="Ready", status="False", reason=text, message=text)
    disrupted = Condition(type="DisruptionTarget", status="True", reason=text)
    node = Node(NodeMetadata(name=text), NodeSpec([Taint(text, text)]), NodeStatus([condition]))
    pod = Pod(about, PodSpec(node_name=text), PodStatus(text, text, text, conditions=[disrupted]))
    event = Event(about, ObjectReference(text, text, text, "u1"), text, text)
    objects: list[tuple[str, str, Any]] = [
        ("nodes", "LIST", node), ("pods", "ADDED", pod), ("events", "ADDED", event), ("host", text, text),
        ("action", text, ActionRecord(text, "begin", {text: text}, text, text, 1, {text: text})),
        ("blind", "pods", BlindWindow(13.0, None, text, f"host@{text}")), (f"x{text}", text, {text: [text]}),
        ("pods", "DELETED", pod),
    ]  # fmt: skip
    for seq, (kind, type_, thing) in enumerate(objects):
        timeline.add(Entry(seq, 10.0 + seq, kind, type_, thing, text, text if seq == 2 else ""))
    return timeline


def _hostile(text: str) -> Made:
    timeline = _hostile_timeline(text)
    every = (*range(len(timeline.entries)), 99)
    verdicts = tuple(
        Verdict(text, text, status, text, text, text, 13.0, 11.0, 14.0, every, (text,)) for status in Status
    )
    step = StepResult(text, text, text, 11.0, 12.0, text, text, ProofStatus.UNPROVEN, text, every)
    result = RunResult(
        RESULT_VERSION, text, text, text, Status.VIOLATED, 1, text, True, text, text, 10.0, 20.0, {text: (text,)},
        (step,), verdicts, verdicts, verdicts, verdicts, (UndoResult(text, text, text, False, text),), (text,), (text,),
        {text: text}, text, text, text,
    )  # fmt: skip
    return result, timeline


@pytest.fixture(scope="session")
def hostile() -> Callable[[str], Made]:
    """Make a result and a timeline in which every external string is the given one."""
    return _hostile


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for the tests of a module."""
    with Browser() as started:
        yield started
