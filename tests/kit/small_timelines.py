"""Timelines of a few objects, for tests of reports."""

from __future__ import annotations

from typing import Any

from chaos.core.kube import (
    Condition,
    Metadata,
    Node,
    NodeMetadata,
    NodeSpec,
    NodeStatus,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Taint,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from chaos.core.timeline import Entry, Timeline


def node(status: str, *taints: str, name: str = "n1") -> Node:
    ready = Condition("Ready", status, "Why", "words")
    return Node(NodeMetadata(name), NodeSpec([Taint(t, "NoExecute") for t in taints]), NodeStatus([ready]))


def pod(
    phase: str,
    *,
    ready: bool = False,
    ending: bool = False,
    reason: str = "",
    on: str | None = "n1",
    name: str = "p",
    uid: str = "u1",
    owner: str = "",
) -> Pod:
    """A pod; ``owner``: kind/name of its controller, ``reason``: of its DisruptionTarget condition."""
    conditions = [Condition("Ready", "True" if ready else "False")]
    if reason:
        conditions.append(Condition("DisruptionTarget", "True", reason))
    kind, _, owner_name = owner.partition("/")
    references = [OwnerReference(kind, owner_name, f"uid-{owner_name}", True)] if owner else None
    stamp = "2026-11-21T03:35:33Z" if ending else None
    metadata = Metadata(name, "ns", uid, deletion_timestamp=stamp, owner_references=references)
    return Pod(metadata, PodSpec(on), PodStatus(phase, conditions=conditions))


def workload(available: int, desired: int = 3, name: str = "web") -> Workload:
    return Workload(Metadata(name, "ns", name), WorkloadSpec(desired), WorkloadStatus(available_replicas=available))


def timeline_of(*lines: tuple[float, str, str, Any]) -> Timeline:
    """A timeline of (epoch seconds, kind, type, object); the number of an entry is its place."""
    timeline = Timeline()
    for seq, (t, kind, type_, thing) in enumerate(lines):
        timeline.add(Entry(seq, t, kind, type_, thing))
    return timeline
