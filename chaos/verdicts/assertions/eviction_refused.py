"""Assertion ``eviction-refused``: the eviction API refused to evict a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from chaos.core.assertion import Claim, Names, NothingToJudge, Noun, View, namespace_text
from chaos.core.evidence import is_number
from chaos.core.field_types import Model
from chaos.core.recording import USUAL_LAG, ActionPhase, ActionRecord
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import Entry, Timeline
from chaos.verdicts.judge.signals import Pattern, matches

_EVICTION_ACTIONS = ("drain", "evict-pod")


class Params(Model):
    """Refusals to match."""

    node: str | None = Field(None, description="Only evictions from this target or node.")
    namespace: str | None = Field(None, description="Only pods of this namespace, or workload.")
    status: int = Field(429, description="The HTTP status: 429 (a budget), 500 (two budgets match), 403 or 504.")
    message: Pattern | None = Field(None, description="The message of the API server, including its causes.")


DrainStart = tuple[Entry, ActionRecord, ActionRecord | None]


def _evictions(timeline: Timeline, anchor: float) -> Iterator[DrainStart]:
    """The start and the return (or None) of evicting steps that began at or after the anchor."""
    for index, (entry, record) in enumerate(timeline.actions):
        if record.phase != ActionPhase.BEGIN or entry.t < anchor or entry.type not in _EVICTION_ACTIONS:
            continue
        if record.params.get("disable-eviction"):
            continue
        following = (
            other_record
            for other, other_record in timeline.actions[index + 1 :]
            if (other.node, other.type, other_record.step) == (entry.node, entry.type, record.step)
        )
        yield entry, record, next((other for other in following if other.phase == ActionPhase.RETURNED), None)


def _signal(entry: Entry, pod: dict[str, Any], params: Params) -> Signal:
    """Signal that is true from the first matching refusal on: that happened before it was received.

    If the answers take long, it counts from when the first request about the pod was handled, which is no later than
    its answer: what the requests before it took is no matter of the budget.
    """
    samples = [Sample(float("-inf"), False, entry.seq, f"eviction not refused with {params.status}")]
    refusals = sorted(_refusals(pod), key=lambda r: float(r["t"]))
    for number, refusal in enumerate(refusals):
        t, message = float(refusal["t"]), str(refusal.get("message", ""))
        if refusal.get("status") == params.status and (params.message is None or matches(params.message, message)):
            text = f"eviction refused ({params.status}): {message}"
            sent = _sent(refusal)
            if t - entry.t > USUAL_LAG and sent < t:
                text += f" (sent {sent - entry.t:.1f} s after {entry.type} began, answered {t - sent:.1f} s later)"
                first = refusals[0]
                since = sent - float(first["t"]) if first.get("status") else 0.0  # else it may be handled at any time
                t, sent = (entry.t + t - _sent(first), entry.t + since) if number else (entry.t, entry.t)
            samples.append(Sample(t, True, entry.seq, text, sent))
            break
    return Signal(tuple(samples))


def _sent(refusal: dict[str, Any]) -> float:
    return float(refusal["sent"]) if is_number(refusal.get("sent")) else float(refusal["t"])


def _refusals(pod: dict[str, Any]) -> list[dict[str, Any]]:
    refusals = pod.get("refusals")
    if not isinstance(refusals, list):
        return []
    return [r for r in refusals if isinstance(r, dict) and is_number(r.get("t"))]


class EvictionRefused:
    """An eviction by a ``drain`` or ``evict-pod`` step of the experiment was refused with that status.

    The evidence that the step recorded contains the responses of the API server. Evictions by other clients are not
    covered. If the server is slow, a refusal counts from the moment at which the server handled the first request for
    the pod. If the responses were not recorded, the result is unknown.
    """

    name = "eviction-refused"
    summary = "the eviction API refused to evict a pod, with a status and a message"
    example = (
        "{assert: eviction-refused, with: {node: victim, message: The disruption budget web needs}, "
        "after: drain, within: 10s}"
    )
    needs = "the responses to the evictions, in the evidence of a drain or evict-pod that returned"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    masks_itself = True

    def claim(self, params: Params, names: Names) -> Claim:
        where = names.on(params.node) or namespace_text(params.namespace)
        what = f"eviction{where} ({params.status})"
        return Noun("the API server").claim(f"refused an {what}", f"refused no {what}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        nodes = view.nodes(params.node) if params.node else None
        namespace = view.namespace(params.namespace) if params.namespace else None
        subjects = []
        starts = [s for s in _evictions(view.timeline, view.anchor) if nodes is None or s[0].node in nodes]
        if not starts:
            raise NothingToJudge("no step called the eviction API")
        for entry, record, returned in starts:
            pods = returned.evidence.get("pods") if returned else None
            if not isinstance(pods, list):
                text = f"the responses of the API server to {record.step or entry.type} were not recorded"
                before = Sample(float("-inf"), False, entry.seq, "no eviction requested yet")
                subjects.append(Subject("", Signal((before, Sample(entry.t, None, entry.seq, text)))))
                continue
            for pod in (p for p in pods if isinstance(p, dict)):
                name = str(pod.get("pod", ""))
                if namespace is None or name.partition("/")[0] == namespace:
                    subjects.append(Subject(name, _signal(entry, pod, params)))
        message = f" and message {params.message}" if params.message else ""
        expected = f"an eviction is refused with {params.status}{message}"
        return SubjectSet(expected, tuple(subjects), Quantifier.ANY, empty_reason="no such pod was evicted")


ASSERTION = EvictionRefused()
