"""Assertion ``pods-started``: a container starts on a node."""

from __future__ import annotations

from functools import partial

from pydantic import Field

from chaos.core.assertion import Claim, Names, View
from chaos.core.field_types import Model
from chaos.core.kube import ContainerStatus, Pod, full_name
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.time_bounds import source_time
from chaos.core.timeline import History, Timeline, Version
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.signals import mask_pods, mask_unproven, mask_unseen_pods, version_sample

_STATUS_SYNC = 15.0  # seconds: in the worst case, a kubelet reports the start of a container after 10 s


class Params(Model):
    """Nodes."""

    node: str = Field(description="a target, a node's name, or all")


def _started_containers(pod: Pod) -> list[ContainerStatus]:
    """Containers that have started, including finished ones."""
    status = pod.status
    statuses = [*((status.init_container_statuses if status else None) or ())]
    statuses += (status.container_statuses if status else None) or ()
    return [c for c in statuses if c.container_id and _started_at(c) is not None]


def _started_at(container: ContainerStatus) -> float | None:
    """Start of a container by the clock of its node, in whole seconds; None before its start."""
    state = container.state
    current = (state.running or state.terminated) if state else None
    return source_time(current.started_at) if current else None


def _identity(container: ContainerStatus) -> tuple[str, int]:
    return container.container_id or "", container.restart_count or 0


class _Starts:
    """Starts of containers after the anchor."""

    def __init__(self, timeline: Timeline, anchor: float) -> None:
        self.anchor = anchor
        self.blinds = [b for b in timeline.uncertain_windows("pods") if b.end is None or b.end > anchor]

    def signal(self, history: History[Pod], nodes: set[str]) -> Signal:
        """Signal that is false until the start of a container of the pod is observed, and true from then on."""
        before = history.at(self.anchor)
        known = {_identity(c) for c in _started_containers(before.object)} if before else set()
        new_pod = before is None and self._is_new(history.first)
        samples = [Sample(float("-inf"), False, before.seq if before else None, "no container started")]
        value: bool | None = False
        for version in history:
            if version.t <= self.anchor or node_of(version.object) not in nodes:
                continue
            begun = [c for c in _started_containers(version.object) if _identity(c) not in known]
            found = [new_pod or self._is_new_start(version, c) for c in begun]
            new: bool | None = (
                True if True in found else None if None in found or version.final_state_unknown else False
            )
            if new is not False and value is not True:
                value = new
                text = "a container started" if new else "a container may have started"
                samples.append(version_sample(version, new, text))
        return Signal(tuple(samples))

    def _is_new(self, first: Version[Pod]) -> bool:
        """Whether the pod was created after the anchor, by its first observation and its creationTimestamp."""
        created = source_time(first.object.metadata.creation_timestamp)
        hidden = any(b.start <= first.t for b in self.blinds)
        return not hidden and created is not None and created + 1.0 > self.anchor

    def _is_new_start(self, version: Version[Pod], container: ContainerStatus) -> bool | None:
        """Whether a container that was not known at the anchor started after it; None if unknown.

        A status may be late (by the sync period of the kubelet, or after a blind window). Only then its start time
        decides, which is in whole seconds, so that a start in the second of the anchor is unknown.
        """
        is_late = version.t - self.anchor <= _STATUS_SYNC or any(b.start <= version.t for b in self.blinds)
        started = _started_at(container)
        if not is_late or started is None or started >= self.anchor:
            return True
        return False if started + 1.0 <= self.anchor else None


class PodsStarted:
    """A container starts on the node after judging starts: of a new pod, or as a restart in place.

    A pod that is rejected, or bound to a node that is down, starts no container.
    """

    name = "pods-started"
    summary = "a container starts on a node"
    example = "{assert: pods-started, with: {node: victim}, after: power-off, never: {until: power-on}}"
    needs = "the pods, watched without a gap, with the state of their containers"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    sources = ("pods",)

    def claim(self, params: Params, names: Names) -> Claim:
        where = names.on(params.node)
        return Claim(f"a container started{where}", f"no container started{where}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        nodes = set(view.nodes(params.node))
        timeline, memo = view.timeline, view.memo(*sorted(nodes))
        starts = _Starts(timeline, view.anchor)

        def signal(history: History[Pod]) -> Signal:
            return mask_unseen_pods(starts.signal(history, nodes), timeline)

        subjects = []
        for history in timeline.pods.on_nodes(nodes):
            found = memo.recall(timeline, history, partial(signal, history), starts.blinds)
            subjects.append(Subject(full_name(history.last.object.metadata), mask_unproven(found, timeline, "pods")))
        no_other = Signal((Sample(float("-inf"), False, None, "no container of another pod started"),))
        subjects.append(Subject("", mask_pods(no_other, timeline)))
        expected = f"a container starts on {', '.join(sorted(nodes))}"
        return SubjectSet(expected, tuple(subjects), Quantifier.ANY)


ASSERTION = PodsStarted()
