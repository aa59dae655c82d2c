"""Replacement of pods by as many others of the same controller; rate and order in which pods begin to match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Literal

from msgspec import structs
from pydantic import Field

from chaos.core.assertion import Memo, View
from chaos.core.field_types import Model
from chaos.core.indexes import controller_key
from chaos.core.kube import Pod, controller_of, full_name, is_finished, pod_condition
from chaos.core.labels import ZONE_LABEL
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.availability import Machines
from chaos.verdicts.judge.machines import effective
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.sequence import changes
from chaos.verdicts.judge.signals import Observation, from_history, mask_unseen_pods

_NOT_REPLACED = "not replaced"


class Replacement(Model):
    """Conditions on the pod that replaces another."""

    ready: bool = True
    node: Literal["same", "other"] | None = Field(
        None, description="same: on the node of the replaced pod. other: on any other node, even one of the target."
    )
    zone: str | None = Field(
        None, description="The name of a zone, or same or other, compared with the replaced pod's."
    )


class Replacements:
    """Pods that were created after the set was formed. Each replaces a pod of the set that has ended.

    A pod has ended once it is being deleted, is finished or gone. A pod of a StatefulSet is replaced by one of the same
    name, any other pod by one of the same controller: the first that ended needs one, the second another. None of
    them is on one of the ``avoided`` nodes.
    """

    def __init__(
        self,
        view: View,
        frozen: Mapping[History[Pod], bool],
        moment: float,
        machines: Machines,
        avoided: frozenset[str] = frozenset(),
    ) -> None:
        self.view, self.timeline, self.machines = view, view.timeline, machines
        self.moment, self.avoided = moment, avoided
        self.frozen = frozen
        self._ends: dict[tuple[str, str] | None, list[tuple[History[Pod], Sample]]] = {}
        for history in frozen:
            end = self._ended(history).samples[-1]
            if end.value is not False:
                self._ends.setdefault(_controller_key(history.last.object), []).append((history, end))

    def signal(self, history: History[Pod], replacement: Replacement) -> Signal:
        """Signal of whether the pod has ended and is replaced. It takes everything as received."""
        key = _controller_key(history.last.object)
        if key is None:
            alone = Signal((Sample(float("-inf"), False, None, "no controller replaces the pod"),))
            return mask_unseen_pods(alone, self.timeline)
        least, most = self._rank(history, key)
        new = list(self._candidates(key, node_of(history.last.object), replacement))
        memo = self.view.memo("replaced", self.moment)
        ended = Subject("", self._ended(history))

        def make() -> Signal:
            count = _count(new, most) if least == most else _unless(False, _count(new, most))
            both = combine(SubjectSet("", (ended, Subject("", count))))
            described = (
                structs.replace(s, observation=count.at(s.t).observation) if s.value else s for s in both.samples
            )
            return mask_unseen_pods(Signal(tuple(described)).without_repetitions(), self.timeline)

        return memo.recall(self.timeline, history, make, least, most, new)

    def _ended(self, history: History[Pod]) -> Signal:
        """Signal that is true from the end of the pod on."""
        made = self.view.memo("ended").recall(
            self.timeline, history, lambda: from_history(history.peek(), _observe_end)
        )
        return Signal(tuple(changes((Sample(float("-inf"), False, None, "it has not ended"), *made.samples))))

    def _rank(self, history: History[Pod], key: tuple[str, str]) -> tuple[int, int]:
        """The least and the greatest number of pods of its controller that ended up to the end of the pod, with it."""
        ends = self._ends.get(key, [])
        own = next((end for other, end in ends if other is history), None)
        if own is None:
            return 1, 1
        least = most = 1
        for other, end in ends:
            if other is not history:
                is_before = _is_before(end, own)
                certain = is_before and self.frozen[other] and end.value is True
                least, most = least + bool(certain), most + (is_before is not False)
        return least, most

    def _candidates(self, key: tuple[str, str], before: str, replacement: Replacement) -> Iterator[Subject]:
        """The pods that may replace a pod that was on the node ``before``."""
        memo = Memo() if replacement.zone else self.view.memo("replaces", before, self.moment)  # zones are of nodes
        for history in self.timeline.pods.of_controller(key[0]):
            if not self.frozen.get(history) and history.first_time > self.moment:
                make = partial(self._candidate, history, before, replacement)
                its_key, subject = memo.recall(self.timeline, history, make, self.machines.of(history))
                if its_key == key:
                    yield subject

    def _candidate(
        self, history: History[Pod], before: str, replacement: Replacement
    ) -> tuple[tuple[str, str] | None, Subject]:
        pod = history.peek_last().object  # of each of many pods once, and again after a change
        subject = Subject(full_name(pod.metadata), self._candidate_signal(history, before, replacement))
        return _controller_key(pod), subject

    def _candidate_signal(self, history: History[Pod], before: str, replacement: Replacement) -> Signal:
        def observe(version: Version[Pod]) -> Observation:
            pod, node = version.object, node_of(version.object)
            ready = pod_condition(pod, "Ready")
            exists = not version.is_deleted and pod.metadata.deletion_timestamp is None and not is_finished(pod)
            is_ready = ready is not None and ready.status == "True"
            matches = (
                exists
                and (is_ready or not replacement.ready)
                and (replacement.node is None or (bool(node) and (node == before) is (replacement.node == "same")))
                and (not self.avoided or (bool(node) and node not in self.avoided))
                and (replacement.zone is None or self._in_zone(node, before, replacement.zone))
            )
            return matches, f"its replacement is {'' if is_ready and exists else 'not '}ready on {node or 'no node'}"

        first = Sample(float("-inf"), False, None, _NOT_REPLACED)
        signal = Signal(tuple(changes((first, *from_history(history.peek(), observe).samples))))
        if replacement.ready:
            signal = effective(signal, history, self.machines.of(history))
        return _unless(True, signal) if history.first.earliest < self.moment else signal  # it may be from before

    def _in_zone(self, node: str, before: str, zone: str) -> bool:
        new, old = self._zone(node), self._zone(before)
        if zone in ("same", "other"):
            return bool(new and old) and (new == old) is (zone == "same")
        return new == zone

    def _zone(self, node: str) -> str:
        history = self.timeline.nodes.get(node)
        return (history.last.object.metadata.labels or {}).get(ZONE_LABEL, "") if history else ""


def _observe_end(version: Version[Pod]) -> Observation:
    pod = version.object
    has_ended = version.is_deleted or pod.metadata.deletion_timestamp is not None or is_finished(pod)
    return has_ended, "it has ended" if has_ended else "it has not ended"


def _is_before(one: Sample, two: Sample) -> bool | None:
    """Whether the first change happened before the second; None if that is unknown."""
    if one.order and two.order:
        return one.order < two.order
    exact = one.lo == one.t and two.lo == two.t
    if one.t <= two.lo or exact:
        return (one.t, one.seq or 0) < (two.t, two.seq or 0)
    return False if two.t <= one.lo else None


def _unless(value: bool, signal: Signal) -> Signal:
    """The signal, unknown where it has the value: a pod may be older than the set, or another may need it."""
    text = "it is not known whether a pod replaces it"
    samples = (structs.replace(s, value=None, observation=text) if s.value is value else s for s in signal.samples)
    return Signal(tuple(samples))


def _count(new: Iterable[Subject], rank: int) -> Signal:
    """Signal of whether there are ``rank`` of the new pods."""
    none = Subject("", Signal((Sample(float("-inf"), False, None, _NOT_REPLACED),)))
    count = combine(SubjectSet("", (none, *new), Quantifier.COUNT, rank))
    described = (
        structs.replace(s, observation=_NOT_REPLACED if s.value is False else s.observation) for s in count.samples
    )
    return Signal(tuple(described)).without_repetitions()


def _controller_key(pod: Pod) -> tuple[str, str] | None:
    """Key that a pod shares with its replacement: the controller, and in a StatefulSet the name."""
    owner = controller_of(pod)
    if owner is None:
        return None
    return controller_key(pod), pod.metadata.name if owner.kind == "StatefulSet" else ""
