"""Effective readiness: the readiness that the API reports, limited to pods whose machines run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from chaos.core.kube import Pod
from chaos.core.signal import Quantifier, Signal, Subject, SubjectSet
from chaos.core.timeline import History, Timeline, Version
from chaos.verdicts.judge.machines import Machine, effective, machine_of, running
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.selection import Filter, Selection, pod_signal
from chaos.verdicts.judge.temporal import negate

Word = Literal["effective", "reported"]  # of availability: with the machines, or the API's alone
_READY = Filter(ready=True)


class Machines:
    """The machines of the nodes of one judgement. By the API's word alone, all run."""

    def __init__(self, timeline: Timeline, word: Word) -> None:
        self._timeline, self._word = timeline, word
        self._known: dict[str, Machine] = {}

    def of(self, history: History[Pod]) -> Machine:
        """The machine of a pod."""
        return self.on(node_of(history.peek_last().object))

    def on(self, node: str) -> Machine:
        if self._word == "reported" or not node:
            return Machine(node)
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = machine_of(self._timeline, node)
        return found

    def down(self) -> tuple[Machine, ...]:
        """The nodes that were, or may have been, down."""
        return tuple(found for node in self._timeline.nodes if (found := self.on(node)).downs)

    def signal(
        self, history: History[Pod], pod_filter: Filter, selection: Selection | None = None, *, leaves: bool = False
    ) -> Signal:
        """Like :func:`pod_signal`, but a pod is ``ready`` only while its machine runs."""
        versions: Iterable[Version[Pod]] = history.peek()
        machine = self.of(history)
        if not machine.downs or pod_filter.ready is None:
            return pod_signal(versions, pod_filter, selection, leaves=leaves)
        reported = pod_signal(versions, pod_filter, selection, leaves=leaves)
        if pod_filter.ready:
            return effective(reported, history, machine)
        others = pod_signal(versions, pod_filter.model_copy(update={"ready": None}), selection, leaves=leaves)
        lost = (Subject("", negate(running(history, machine))), Subject("", others))
        either = (Subject("", reported), Subject("", combine(SubjectSet("", lost))))
        return combine(SubjectSet("", either, Quantifier.ANY))

    def lost(self, histories: Iterable[History[Pod]]) -> list[Subject]:
        """For each pod on a machine that was down, a signal that is false while the pod is wrongly reported Ready."""
        found = []
        for history in histories:
            if (machine := self.of(history)).downs:
                reported = Subject("", negate(pod_signal(history.peek(), _READY, None)))
                either = (reported, Subject("", running(history, machine)))
                found.append(Subject("", combine(SubjectSet("", either, Quantifier.ANY))))
        return found
