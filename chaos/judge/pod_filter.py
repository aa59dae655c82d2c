"""What a pod must look like, and when it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from chaos.judge.pods import container_statuses, disruption, finished_versions, node_of
from chaos.judge.selection import Selection
from chaos.judge.signals import Observation, Pattern, from_history, mask_pods, matches
from chaos.model.assertion import View
from chaos.model.experiment import Model
from chaos.model.kube import ContainerStatus, Pod, phase, pod_condition
from chaos.model.signal import Sample, Signal, Subject
from chaos.model.timeline import History, Version

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
Phases = Annotated[list[Phase], BeforeValidator(lambda v: v if isinstance(v, list) else [v]), Field(min_length=1)]
_MIN_UNOBSERVABLE = 10  # pods that may have come and gone unseen, at least


class Filter(Model):
    """What a pod must look like; all that is given must match."""

    phase: Phases | None = None
    reason: str | None = Field(None, description="status.reason, exactly; empty means none")
    message: Pattern | None = None
    disruption: str | None = Field(None, description="reason of DisruptionTarget, any or none")
    ready: bool | None = None
    deleting: bool | None = None
    gone: bool | None = None
    scheduled: bool | None = Field(None, description="bound to a node")
    waiting: str | None = Field(None, description="reason for which a container waits")
    exit_code: int | None = Field(None, alias="exit-code", description="with which a container ended")
    restarts_at_least: int | None = Field(None, alias="restarts-at-least", ge=0)
    restarts_at_most: int | None = Field(None, alias="restarts-at-most", ge=0)

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one thing that a pod must look like")
        return self

    def describe(self) -> str:
        """The filter in words."""
        given = self.model_dump(exclude_none=True, by_alias=True, include=set(Filter.model_fields))
        words = (f"{k} {' or '.join(v) if isinstance(v, list) else str(v)}" for k, v in given.items())
        return ", ".join(words) or "any look"


class Count(Filter):
    """A filter, and how many pods must match it."""

    least: int = Field(0, ge=0)
    most: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if not self.model_fields_set & {"least", "most"}:
            raise ValueError("give least, most or both")
        if self.most is not None and self.most < self.least:
            raise ValueError(f"most {self.most} is less than least {self.least}")
        return self

    def format_range(self) -> str:
        """How many, in words."""
        if self.most is None:
            return f"at least {self.least}"
        return f"at most {self.most}" if not self.least else f"{self.least} to {self.most}"


def _mismatches(version: Version[Pod], end: Version[Pod] | None, wanted: Filter) -> Iterator[bool]:
    """For each thing that is wanted, whether it is not so."""
    pod = version.object
    status = pod.status
    if wanted.phase is not None:
        yield phase(pod) not in wanted.phase
    if wanted.reason is not None:
        yield ((status.reason if status else None) or "") != wanted.reason
    if wanted.message is not None:
        yield not matches(wanted.message, status.message if status else None)
    if wanted.disruption is not None:
        found = disruption((end or version).object)
        yield not found if wanted.disruption == "any" else (found or "none") != wanted.disruption
    if wanted.ready is not None:
        yield wanted.ready is not (not version.is_deleted and _ready(pod))
    if wanted.deleting is not None:
        yield wanted.deleting is not (version.is_deleted or pod.metadata.deletion_timestamp is not None)
    if wanted.gone is not None:
        yield wanted.gone is not version.is_deleted
    if wanted.scheduled is not None:
        yield wanted.scheduled is not bool(node_of(pod))
    yield from _container_mismatches(container_statuses(pod), wanted)


def _container_mismatches(statuses: Sequence[ContainerStatus], wanted: Filter) -> Iterator[bool]:
    if wanted.waiting is not None:
        yield all(not s.state or not s.state.waiting or s.state.waiting.reason != wanted.waiting for s in statuses)
    if wanted.exit_code is not None:
        ends = (s.state.terminated for s in statuses if s.state and s.state.terminated)
        yield all(end.exit_code != wanted.exit_code for end in ends)
    restarts = sum(s.restart_count or 0 for s in statuses)
    if wanted.restarts_at_least is not None:
        yield restarts < wanted.restarts_at_least
    if wanted.restarts_at_most is not None:
        yield restarts > wanted.restarts_at_most


def _ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def _describe_pod(version: Version[Pod], end: Version[Pod] | None) -> str:
    pod = version.object
    reason = f" ({pod.status.reason})" if pod.status and pod.status.reason else ""
    target = disruption((end or version).object)
    told = [
        f"it is {phase(pod) or 'without a phase'}{reason}",
        f"DisruptionTarget {target}" if target else "no DisruptionTarget",
        "gone" if version.is_deleted else "being deleted" if pod.metadata.deletion_timestamp else "",
    ]
    return ", ".join(t for t in told if t)


def pod_signal(history: History[Pod], wanted: Filter, selection: Selection | None) -> Signal:
    """Whether the pod looks like the filter; with ``selection`` also that it belongs to the set at the moment."""
    ends = finished_versions(history)
    only_gone = wanted.model_fields_set == {"gone"}

    def tell(version: Version[Pod]) -> Observation:
        end = ends.get(version.seq)
        if selection is not None and not selection.includes(version.object):
            return False, f"it is not one of them; {_describe_pod(version, end)}"
        return not any(_mismatches(version, end, wanted)), _describe_pod(version, end)

    if only_gone:  # that it is gone is certain, however it ended
        return Signal(tuple(Sample(v.t, v.is_deleted is wanted.gone, v.seq, _describe_pod(v, None)) for v in history))
    signal = from_history(history, tell)
    return Signal((Sample(float("-inf"), False, None, "it does not exist"), *signal.samples)) if selection else signal


def unobservable(view: View) -> list[Subject]:
    """Pods that may have come and gone while nobody could see them."""
    nobody = Signal((Sample(float("-inf"), False, None, "no pod like it was seen"),))
    hidden = mask_pods(nobody, view.timeline)
    later = [sample for sample in hidden.samples if sample.t > view.anchor]
    if all(sample.value is False for sample in (hidden.at(view.anchor), *later)):
        return []
    return [Subject("", hidden) for _ in range(max(_MIN_UNOBSERVABLE, len(view.timeline.pods)))]
