"""Did the eviction API refuse?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from chaos.judge.signals import Pattern, matches
from chaos.model.assertion import NothingToJudge, View
from chaos.model.evidence import is_number
from chaos.model.experiment import Model
from chaos.model.recording import ActionPhase, ActionRecord
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import Entry, Timeline

_EVICTION_ACTIONS = ("drain", "evict-pod")


class Params(Model):
    """Which refusals."""

    node: str | None = Field(None, description="only evictions from this target or node")
    namespace: str | None = Field(None, description="only pods of this namespace, or workload")
    status: int = Field(429, description="HTTP status: 429 by a budget, 500 two budgets match, 403, 504")
    message: Pattern | None = Field(None, description="what the API server says, its causes included")


DrainStart = tuple[Entry, ActionRecord, ActionRecord | None]


def _evictions(timeline: Timeline, anchor: float) -> Iterator[DrainStart]:
    """Steps that evict, begun at the anchor or later: the begin, and the return if there is one."""
    for index, (entry, record) in enumerate(timeline.actions):
        if record.phase != ActionPhase.BEGIN or entry.t < anchor or entry.type not in _EVICTION_ACTIONS:
            continue
        if record.params.get("disable-eviction"):
            continue
        own = (
            told
            for other, told in timeline.actions[index + 1 :]
            if (other.node, other.type, told.step) == (entry.node, entry.type, record.step)
        )
        yield entry, record, next((told for told in own if told.phase == ActionPhase.RETURNED), None)


def _signal(entry: Entry, pod: dict[str, Any], params: Params) -> Signal:
    """True from the first refusal that fits."""
    samples = [Sample(float("-inf"), False, entry.seq, f"its eviction was not refused with {params.status}")]
    for refusal in sorted(_refusals(pod), key=lambda r: float(r["t"])):
        said = str(refusal.get("message", ""))
        if refusal.get("status") == params.status and (params.message is None or matches(params.message, said)):
            seen = f"its eviction was refused ({params.status}): {said}"
            samples.append(Sample(float(refusal["t"]), True, entry.seq, seen))
            break
    return Signal(tuple(samples))


def _refusals(pod: dict[str, Any]) -> list[dict[str, Any]]:
    told = pod.get("refusals")
    return [r for r in told if isinstance(r, dict) and is_number(r.get("t"))] if isinstance(told, list) else []


class EvictionRefused:
    """Any eviction that a ``drain`` or ``evict-pod`` of the experiment asked for was refused with that status.

    What the API server answered is in the recorded evidence of the step. Nothing is known of evictions that others
    asked for. A step that evicts, but whose answers were not recorded, is unknown.
    """

    name = "eviction-refused"
    summary = "the eviction API refused to evict a pod, with a status and a message"
    example = (
        "{assert: eviction-refused, with: {node: victim, message: The disruption budget web needs}, "
        "after: drain, within: 10s}"
    )
    needs = "the answers to the evictions, in the evidence of a drain or evict-pod that returned"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        nodes = view.nodes(params.node) if params.node else None
        namespace = view.namespace(params.namespace) if params.namespace else None
        subjects = []
        begun = [b for b in _evictions(view.timeline, view.anchor) if nodes is None or b[0].node in nodes]
        if not begun:
            raise NothingToJudge("no step asked the eviction API for anything")
        for entry, record, told in begun:
            pods = told.evidence.get("pods") if told else None
            if not isinstance(pods, list):
                why = f"what the API server answered to {record.step or entry.type} was not recorded"
                nothing = Sample(float("-inf"), False, entry.seq, "no eviction was asked for yet")
                subjects.append(Subject("", Signal((nothing, Sample(entry.t, None, entry.seq, why)))))
                continue
            for pod in (p for p in pods if isinstance(p, dict)):
                name = str(pod.get("pod", ""))
                if namespace is None or name.partition("/")[0] == namespace:
                    subjects.append(Subject(name, _signal(entry, pod, params)))
        said = f" saying {params.message}" if params.message else ""
        expected = f"an eviction is refused with {params.status}{said}"
        return SubjectSet(expected, tuple(subjects), Quantifier.ANY, empty_reason="no such pod was to be evicted")


ASSERTION = EvictionRefused()
