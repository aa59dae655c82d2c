"""Recordings in the making, for tests of what reads them: assertions, proofs and renderers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from chaos.core.assertion import Assertion
from chaos.core.binding import BoundAssertion
from chaos.core.experiment import Expectation, Experiment
from chaos.core.recording import EntryKind, RecordingEntry
from chaos.core.store.recording import build_timeline
from chaos.core.timeline import Timeline
from chaos.core.verdict import Verdict
from chaos.documents.yaml_text import parse_flow
from chaos.engine.registry import load_registry
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge

T0 = 1_800_000_000.0  # seconds since the epoch: where the times of a recording begin
_KUBELET_SAYS = {"True": ("KubeletReady", "kubelet is posting ready status"), "False": ("KubeletNotReady", "")}


def stamp(t: float) -> str:
    """``t`` seconds after T0 in whole seconds, as Kubernetes writes times."""
    return datetime.fromtimestamp(T0 + t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class RecordingBuilder:
    """A recording; entries may be added in any order. All times are in seconds after :data:`T0`."""

    def __init__(self, **meta: Any) -> None:
        self.lines: list[RecordingEntry] = []
        self.add(0, "meta", "recording", {"format": 1, "kubernetes": "v1.36.2"} | meta)

    def add(self, t: float, kind: str, type_: str, obj: Any, node: str = "", note: str = "") -> Self:
        """An entry of any kind: of an object of Kubernetes, the kind is its plural and ``type_`` as in a watch."""
        line = RecordingEntry(T0 + t, kind, type_, msgspec.Raw(msgspec.json.encode(obj)))
        if node:
            line.node = node
        if note:
            line.note = note
        self.lines.append(line)
        return self

    def node(  # noqa: PLR0913, PLR0917 - the parts of a Node
        self,
        t: float,
        name: str,
        ready: str = "True",
        message: str = "",
        taints: Sequence[str] = (),
        boot_id: str = "",
        type_: str = "MODIFIED",
        heartbeat: float | None = None,
        reason: str = "",
    ) -> Self:
        """A version of a Node with its condition Ready; ``taints`` are written ``key:Effect``."""
        default = _KUBELET_SAYS.get(ready, ("NodeStatusUnknown", "Kubelet stopped posting node status."))
        condition = {"type": "Ready", "status": ready, "reason": reason or default[0], "message": message or default[1]}
        condition["lastHeartbeatTime"] = stamp(t if heartbeat is None else heartbeat)
        split = [taint.split(":") for taint in taints]
        return self.add(
            t,
            "nodes",
            type_,
            {
                "metadata": {"name": name, "uid": f"uid-{name}"},
                "spec": {"taints": [{"key": key, "effect": effect} for key, effect in split]},
                "status": {"conditions": [condition], "nodeInfo": {"bootID": boot_id or f"boot-{name}"}},
            },
        )

    def act(self, t: float, action: str, phase: str = "begin", node: str = "n1", step: str = "", **record: Any) -> Self:
        """One phase of a step."""
        return self.add(t, "action", action, {"step": step or action, "phase": phase} | record, node)

    def done(self, t: float, action: str, node: str = "n1", step: str = "", **record: Any) -> Self:
        """A step that begins and, 0.2 s later, returns with exit code 0."""
        self.act(t, action, "begin", node, step, **record)
        return self.act(t + 0.2, action, "returned", node, step, delivery="answered", exit=0, **record)

    def host(self, t: float, fact: str, value: Any, node: str = "n1", since: float | None = None) -> Self:
        """A reading of a fact; ``since``: when it began, if it took long."""
        self.add(t, "host", fact, value, node)
        if since is not None:
            self.lines[-1].since = T0 + since
        return self

    def sample(self, t: float, name: str, value: Any) -> Self:
        """A sample, as a ``chaos.extend.observer.Sampler`` takes it."""
        return self.add(t, EntryKind.SAMPLE, name, value)

    def blind(
        self,
        start: float,
        end: float | None,
        source: str,
        reason: str = "the line was cut",
        changed: Sequence[str] | None = None,
    ) -> Self:
        """A blind window; ``changed``: the uids of the objects that differ before and after it; unknown without."""
        window = {"from": T0 + start, "to": None if end is None else T0 + end, "reason": reason, "changed": changed}
        return self.add(start, "blind", source, window)

    def current(self, until: float, source: str, behind: Sequence[str] = (), complete: float | None = None) -> Self:
        """A proof, recorded at once, that a watch is current; ``behind``: uids; ``complete``: default as ``until``."""
        proof = {
            "until": T0 + until,
            "behind": list(behind),
            "complete": T0 + (until if complete is None else complete),
        }
        return self.add(until, "current", source, proof)

    def timeline(self, end: float | None = None) -> Timeline:
        """Everything added, in order of time; ``end``: how far it was watched."""
        if end is not None:
            self.add(end, "nodes", "BOOKMARK", {})
        return build_timeline(sorted(self.lines, key=lambda line: line.t))


def judge_assertion(
    assertion: Assertion, expectation: str, recording: RecordingBuilder, end: float, nodes: Sequence[str] = ("n1",)
) -> Verdict:
    """The verdict on one expectation (YAML) about a step that powers off ``victim``, which is ``nodes``.

    The recording needs such a step, as ``RecordingBuilder().done(10, "poweroff").host(15, "machine", "off")``.
    """
    expected = Expectation.model_validate(parse_flow(expectation))
    expected.bind(BoundAssertion(assertion, assertion.params.model_validate(expected.with_)))
    experiment = _experiment({"name": "poweroff", "action": "poweroff", "target": "victim"}, len(nodes))
    spec = experiment.spec.model_copy(update={"hypothesis": [expected]})
    experiment = experiment.model_copy(update={"spec": spec})
    options = Options(bind={"victim": tuple(nodes)})
    return judge(experiment, recording.timeline(end), load_registry(), options).hypothesis[0]


def _experiment(step: Mapping[str, Any], count: int) -> Experiment:
    return Experiment.model_validate(
        {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Experiment",
            "metadata": {"name": "test"},
            "spec": {
                "title": "A test",
                "targets": {"victim": {"role": "worker", "count": count}},
                "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
                "method": [dict(step)],
                "hypothesis": [{"assert": "nodes-ready", "with": {"nodes": "all"}, "within": "10s"}],
            },
        }
    )
