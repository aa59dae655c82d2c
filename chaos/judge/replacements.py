"""Whether pods were replaced: by as many others of the same controller, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field

from chaos.judge.pods import node_of
from chaos.judge.quantifiers import combine
from chaos.judge.signals import Observation, from_history
from chaos.model.experiment import Model
from chaos.model.kube import Pod, controller_of, full_name, is_finished, pod_condition
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import History, Timeline, Version

ZONE = "topology.kubernetes.io/zone"


class Replacement(Model):
    """What the pod that takes another's place must be like."""

    ready: bool = True
    node: Literal["same", "other"] | None = Field(None, description="the node of the pod that it replaces, or another")
    zone: str | None = Field(None, description="a zone's name; same or other, as the pod that it replaces")


class Replacements:
    """The pods that came after the set was frozen, and take the places of its pods one for one.

    A StatefulSet's pod is replaced by the one of its name; others by any of the same controller.
    """

    def __init__(self, timeline: Timeline, frozen: Iterable[History[Pod]], moment: float) -> None:
        self.timeline = timeline
        self.moment = moment
        self.frozen_uids = {history.last.object.metadata.uid for history in frozen}
        self.ranks: dict[tuple[str, str], int] = {}

    def signal(self, history: History[Pod], wanted: Replacement) -> Signal:
        """Whether the place of this pod is taken; the n-th of a controller's pods needs the n-th replacement."""
        place = _controller_key(history.last.object)
        if place is None:
            return Signal((Sample(float("-inf"), False, None, "it has no controller that replaces it"),))
        rank = self.ranks[place] = self.ranks.get(place, 0) + 1
        nobody = Subject("", Signal((Sample(float("-inf"), False, None, "it was not replaced"),)))
        new = (
            Subject(full_name(h.last.object.metadata), self._candidate_signal(h, history, wanted))
            for h in self._candidates(place)
        )
        number = combine(SubjectSet("", (nobody, *new), Quantifier.COUNT, rank))
        return Signal(
            tuple(
                replace(s, observation="it was not replaced" if s.value is False else s.observation)
                for s in number.samples
            )
        )

    def _candidates(self, place: tuple[str, str]) -> Iterator[History[Pod]]:
        for uid, history in self.timeline.pods.items():
            if (
                uid not in self.frozen_uids
                and history.times[0] > self.moment
                and _controller_key(history.last.object) == place
            ):
                yield history

    def _candidate_signal(self, history: History[Pod], old: History[Pod], wanted: Replacement) -> Signal:
        before = node_of(old.last.object)

        def tell(version: Version[Pod]) -> Observation:
            pod, node = version.object, node_of(version.object)
            ready = pod_condition(pod, "Ready")
            lives = not version.is_deleted and pod.metadata.deletion_timestamp is None and not is_finished(pod)
            is_ready = ready is not None and ready.status == "True"
            fits = (
                lives
                and (is_ready or not wanted.ready)
                and (wanted.node is None or (bool(node) and (node == before) is (wanted.node == "same")))
                and (wanted.zone is None or self._in_zone(node, before, wanted.zone))
            )
            return fits, f"its replacement is {'' if is_ready and lives else 'not '}ready on {node or 'no node'}"

        absent = Sample(float("-inf"), False, None, "it was not replaced")
        return Signal((absent, *from_history(history, tell).samples))

    def _in_zone(self, node: str, before: str, wanted: str) -> bool:
        zone, old = self._zone(node), self._zone(before)
        if wanted in ("same", "other"):
            return bool(zone and old) and (zone == old) is (wanted == "same")
        return zone == wanted

    def _zone(self, node: str) -> str:
        history = self.timeline.nodes.get(node)
        return (history.last.object.metadata.labels or {}).get(ZONE, "") if history else ""


def _controller_key(pod: Pod) -> tuple[str, str] | None:
    """What its replacement has in common with it: the controller, and in a StatefulSet the name."""
    owner = controller_of(pod)
    if owner is None:
        return None
    name = pod.metadata.name if owner.kind == "StatefulSet" else ""
    return owner.uid or f"{pod.metadata.namespace}/{owner.name}", name
