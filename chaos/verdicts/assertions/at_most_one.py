"""Assertion ``at-most-one``: at most one pod of each StatefulSet identity runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs
from pydantic import Field

from chaos.core.assertion import Claim, Names, View, namespace_text
from chaos.core.field_types import Model
from chaos.core.kube import Node, Pod, controller_of, is_ready
from chaos.core.machine_evidence import believed_offs
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.time_bounds import source_time
from chaos.core.timeline import Fact, History, Timeline
from chaos.verdicts.judge.pods import end_of, finished_version, node_of
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.signals import mask_pods

_INF = float("inf")


class Params(Model):
    """The StatefulSet, or all StatefulSets of the namespace."""

    namespace: str = Field(description="A namespace, or workload for the namespace of the experiment's workload.")
    name: str | None = Field(None, description="The name of the StatefulSet.")


class _Incarnation:
    """One pod (by UID) of an identity on its node, and the time during which its containers ran."""

    def __init__(self, timeline: Timeline, history: History[Pod]) -> None:
        self.timeline, self.history = timeline, history
        self.uid = history.last.object.metadata.uid
        self.node = next((node for v in history if (node := node_of(v.object))), "")

    def signal(self) -> Signal:
        """Signal that is true while the pod certainly ran, false while it certainly did not, and unknown in between.

        A pod that ran at two moments ran between them; a pod that ended runs again only with new evidence.
        """
        samples = [Sample(-_INF, False, None, "not started yet")]
        ended = finished_version(self.history)
        for sample in sorted((*self._run_samples(), *self._unknown_samples(), *self._end_samples()), key=lambda s: s.t):
            before = samples[-1]
            if sample.value is True:
                if before.value is None:
                    samples.pop()
                if samples[-1].value is not True:
                    samples.append(sample)
            elif sample.value is False and before.value is None and ended:
                # The end is certain now, and the container statuses of the kubelet have its time.
                since = max(before.t, min(sample.t, end_of(ended).hi, ended.t))
                samples.append(Sample(since, False, sample.seq, sample.observation))
            elif before.value is not False and sample.value is not before.value:
                samples.append(sample)
        return Signal(tuple(samples))

    def _run_samples(self) -> Iterator[Sample]:
        """Samples at which a container of the pod began to run, or was observed to run."""
        observation, begun = f"running on {self.node}", set()
        for version in self.history:
            for started in _start_times(version.object):
                if started is not None and started not in begun and not version.final_state_unknown:
                    begun.add(started)
                    yield Sample(max(self.history.first_time, started), True, version.seq, observation)
        for reading, uids in self._readings():
            if self.uid in uids:
                yield Sample(reading.t, True, reading.seq, observation)

    def _unknown_samples(self) -> Iterator[Sample]:
        """Samples since which no kubelet reports a running pod, because it ended, is deleted, or its node is not
        Ready.
        """
        observation = f"no report from {self.node} on whether it still runs"
        ended = finished_version(self.history)
        if ended:
            yield Sample(end_of(ended).lo, None, ended.seq, observation)
        for version in self.history:
            if version.is_deleted:
                yield Sample(min(version.t, version.earliest), None, version.seq, observation)
        nodes: History[Node] | tuple[()] = self.timeline.nodes.get(self.node) or ()
        for node in nodes:
            if node.is_deleted or not is_ready(node.object):
                yield Sample(min(node.t, node.earliest), None, node.seq, observation)

    def _end_samples(self) -> Iterator[Sample]:
        """Samples at which the node itself shows that the pod does not run."""
        observation = f"not running on {self.node}"
        for reading, uids in self._readings():
            if self.uid not in uids:
                yield Sample(reading.t, False, reading.seq, observation)
        for readings in believed_offs(self.timeline, self.node):
            yield from (Sample(power.t, False, power.seq, observation) for power in readings)

    def _readings(self) -> Iterator[tuple[Fact, set[str]]]:
        for reading in self.timeline.readings(self.node, "containers"):
            uids = _running_uids(reading.value)
            if uids is not None:
                yield reading, uids


def _running_uids(value: Any) -> set[str] | None:
    """UIDs of the pods that run a container; None for an unknown format."""
    listed = value.get("running") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return None
    return {str(item.get("uid", "")) for item in listed}


def _start_times(pod: Pod) -> Iterator[float | None]:
    for container in (pod.status.container_statuses if pod.status else None) or ():
        for state in (container.state, container.last_state):
            current = (state.running or state.terminated) if state else None
            yield source_time(current.started_at if current else None)


def _with_pod_names(sample: Sample, pods: list[Subject]) -> Sample:
    """Name all pods that run, or may run, at the same time."""
    if sample.value is True:
        return sample
    states = [(pod.name, pod.signal.at(sample.t)) for pod in pods]
    running = [f"{name}: {state.observation}" for name, state in states if state.value is not False]
    return structs.replace(sample, observation="; ".join(running))


class AtMostOne:
    """No two pods with the same StatefulSet identity run at the same time.

    A pod counts as running while its kubelet reports so and its node is Ready, or while its containers run on the
    node (host fact ``containers``). A pod counts as ended only if its node proves this: by that fact, or because the
    machine is off. The API alone is not a proof, because the API server removes a force-deleted pod while its
    containers may keep running.
    """

    name = "at-most-one"
    summary = "no two pods of one StatefulSet identity run at the same time, as the nodes themselves show"
    example = "{assert: at-most-one, with: {namespace: workload, name: db}, after: force-delete, always: {for: 2m}}"
    needs = (
        "the running containers of each node that a pod of the identity has left, read after that (host fact "
        "containers), or proof that the machine is off"
    )
    host_facts = ("containers",)
    params = Params
    node_fields = ()
    moment_fields = ()
    masks_itself = True
    sources = ("pods", "nodes")

    def claim(self, params: Params, names: Names) -> Claim:
        owner = f" of StatefulSet {params.name}" if params.name else namespace_text(params.namespace)
        pod = names.one_affected()
        return Claim(
            f"each pod{owner} ran once at a time",
            f"{f'pod {pod}' if pod else f'a pod{owner}'} ran twice at the same time",
        )

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace = view.namespace(params.namespace)
        identities: dict[str, list[Subject]] = {}
        for history in view.timeline.pods.in_namespace(namespace):
            pod = history.last.object
            owner = controller_of(pod)
            if owner is None or owner.kind != "StatefulSet":
                continue
            if params.name in (None, owner.name):
                incarnation = _Incarnation(view.timeline, history)
                own = Subject(f"pod {pod.metadata.uid} on {incarnation.node or 'no node'}", incarnation.signal())
                identities.setdefault(pod.metadata.name, []).append(own)
        subjects = []
        for name, pods in sorted(identities.items()):
            count = combine(SubjectSet("", tuple(pods), Quantifier.COUNT, 0, 1))
            at_most_one = Signal(tuple(_with_pod_names(sample, pods) for sample in count.samples))
            subjects.append(Subject(f"{namespace}/{name}", mask_pods(at_most_one, view.timeline)))
        expected = "at most one pod of each name runs"
        return SubjectSet(
            expected, tuple(subjects), empty_reason=f"no pod of such a StatefulSet was observed in {namespace}"
        )


ASSERTION = AtMostOne()
