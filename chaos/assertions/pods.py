"""What becomes of pods?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from chaos.judge.pods import disruption, ended, pod_facts
from chaos.judge.selection import Chosen, Selection
from chaos.judge.signals import Pattern, Seen, from_history, matches, pods_masked
from chaos.model.assertion import NothingToJudge, Undecidable, View
from chaos.model.experiment import Model
from chaos.model.kube import Pod, full_name, phase, pod_condition
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import History, Version

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
Phases = Annotated[list[Phase], BeforeValidator(lambda v: v if isinstance(v, list) else [v]), Field(min_length=1)]
_BLIND_GUESSES = 10  # pods that may have come and gone unseen, at least


class Filter(Model):
    """What a pod must look like; all that is given must match."""

    phase: Phases | None = None
    reason: str | None = Field(None, description="status.reason, exactly; empty means none")
    message: Pattern | None = None
    disruption: str | None = Field(None, description="reason of DisruptionTarget, or none")
    ready: bool | None = None
    deleting: bool | None = None
    gone: bool | None = None
    restarts_at_least: int | None = Field(None, alias="restarts-at-least", ge=0)
    restarts_at_most: int | None = Field(None, alias="restarts-at-most", ge=0)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one thing that a pod must look like")
        return self

    def words(self) -> str:
        """The filter in words."""
        given = self.model_dump(exclude_none=True, by_alias=True, exclude={"least", "most"})
        return ", ".join(f"{k} {' or '.join(v) if isinstance(v, list) else str(v)}" for k, v in given.items())


class Count(Filter):
    """A filter, and how many pods must match it."""

    least: int = Field(0, ge=0)
    most: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _range(self) -> Self:
        if not self.model_fields_set & {"least", "most"}:
            raise ValueError("give least, most or both")
        if self.most is not None and self.most < self.least:
            raise ValueError(f"most {self.most} is less than least {self.least}")
        return self

    def range(self) -> str:
        """How many, in words."""
        if self.most is None:
            return f"at least {self.least}"
        return f"at most {self.most}" if not self.least else f"{self.least} to {self.most}"


class Params(Chosen):
    """Which pods (``node`` to ``except``), and exactly one of each, none, any and count."""

    each: Filter | None = None
    none: Filter | None = None
    any: Filter | None = None
    count: Count | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(f is not None for f in (self.each, self.none, self.any, self.count)) != 1:
            raise ValueError("give exactly one of each, none, any or count")
        return self

    def quantified(self) -> tuple[Quantifier, Filter]:
        """The quantifier and its filter."""
        for quantifier in Quantifier:
            found: Filter | None = getattr(self, quantifier.value)
            if found is not None:
                return quantifier, found
        raise Undecidable("no filter was given")


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
        yield (disruption((end or version).object) or "none") != wanted.disruption
    if wanted.ready is not None:
        yield wanted.ready is not (not version.gone and _ready(pod))
    if wanted.deleting is not None:
        yield wanted.deleting is not (version.gone or pod.metadata.deletion_timestamp is not None)
    if wanted.gone is not None:
        yield wanted.gone is not version.gone
    restarts = sum(c.restart_count or 0 for c in (status.container_statuses if status else None) or ())
    if wanted.restarts_at_least is not None:
        yield restarts < wanted.restarts_at_least
    if wanted.restarts_at_most is not None:
        yield restarts > wanted.restarts_at_most


def _ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def _words(version: Version[Pod], end: Version[Pod] | None) -> str:
    pod = version.object
    reason = f" ({pod.status.reason})" if pod.status and pod.status.reason else ""
    target = disruption((end or version).object)
    told = [
        f"it is {phase(pod) or 'without a phase'}{reason}",
        f"DisruptionTarget {target}" if target else "no DisruptionTarget",
        "gone" if version.gone else "being deleted" if pod.metadata.deletion_timestamp else "",
    ]
    return ", ".join(t for t in told if t)


def _signal(history: History[Pod], wanted: Filter, selection: Selection | None) -> Signal:
    """Whether the pod matches; with ``selection`` also that it belongs to the set at the moment."""
    ends = ended(history)
    only_gone = wanted.model_fields_set == {"gone"}

    def tell(version: Version[Pod]) -> Seen:
        end = ends.get(version.seq)
        if selection is not None and not selection.chooses(version.object):
            return False, f"it is not one of them; {_words(version, end)}"
        return not any(_mismatches(version, end, wanted)), _words(version, end)

    if only_gone:  # that it is gone is certain, however it ended
        return Signal(tuple(Sample(v.t, v.gone is wanted.gone, v.seq, _words(v, None)) for v in history))
    signal = from_history(history, tell)
    return Signal((Sample(float("-inf"), False, None, "it does not exist"), *signal.samples)) if selection else signal


class Pods:
    """A set of pods, frozen at a moment, and what each, any, none or some of them look like.

    A pod is followed by its UID; one that is gone keeps its last state, and the reason with which it was disrupted is
    the one with which it ended, whatever its clean-up writes later. If its last state was not seen (it vanished in a
    blind window), it is unknown. ``count`` without ``at`` counts, at every moment, the pods that belong then.
    """

    name = "pods"
    summary = "each, any, none or so many of a set of pods have a phase, reason, disruption, readiness..."
    example = (
        "{assert: pods, with: {node: victim, at: power-off, except: [daemonset, finished, terminating], "
        "each: {disruption: TerminationByKubelet, phase: [Succeeded, Failed]}}, "
        "within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = "the pods, watched without a gap from before the moment at which the set is frozen"
    params = Params
    node_fields = ("node",)
    moment_fields = ("at",)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        quantifier, wanted = params.quantified()
        selection = Selection(params, view)
        if isinstance(wanted, Count):
            expected = f"{wanted.range()} pods with {Filter.words(wanted)}"
            wanted_only = Count.model_construct(**{k: getattr(wanted, k) for k in Filter.model_fields})
            dynamic = selection if params.at is None else None
            pods = selection.frozen() if params.at else list(view.timeline.pods.values())
            if params.at and not pods:
                raise NothingToJudge(selection.empty)
            subjects = [self._subject(view, h, wanted_only, dynamic) for h in pods]
            subjects += _unseen(view) if dynamic else []
            return SubjectSet(expected, tuple(subjects), quantifier, wanted.least, wanted.most)
        subjects = [self._subject(view, h, wanted, None) for h in selection.frozen()]
        expected = f"{'no' if quantifier is Quantifier.NONE else quantifier.value} pod with {wanted.words()}"
        return SubjectSet(expected, tuple(subjects), quantifier, empty=selection.empty)

    def _subject(self, view: View, history: History[Pod], wanted: Filter, selection: Any) -> Subject:
        pod = history.versions[0].object
        signal = pods_masked(_signal(history, wanted, selection), view.timeline)
        latest = history.at(view.anchor) or history.versions[0]
        return Subject(full_name(pod.metadata), signal, pod_facts(latest.object))


def _unseen(view: View) -> list[Subject]:
    """Pods that may have come and gone while nobody could see them."""
    nobody = Signal((Sample(float("-inf"), False, None, "no pod like it was seen"),))
    hidden = pods_masked(nobody, view.timeline)
    later = [sample for sample in hidden.samples if sample.t > view.anchor]
    if all(sample.value is False for sample in (hidden.at(view.anchor), *later)):
        return []
    return [Subject("", hidden) for _ in range(max(_BLIND_GUESSES, len(view.timeline.pods)))]


ASSERTION = Pods()
