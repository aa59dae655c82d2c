"""Does at most one pod of each StatefulSet identity really run?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import Field

from chaos.judge.container_termination import end_of, finished_version
from chaos.judge.pods import node_of
from chaos.judge.quantifiers import combine
from chaos.judge.signals import mask_pods, source_time
from chaos.model.api_fact import PseudoFact
from chaos.model.assertion import View
from chaos.model.evidence import all_readings
from chaos.model.experiment import Model
from chaos.model.kube import Node, Pod, controller_of, is_ready
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import Fact, History, Timeline

_INF = float("inf")


class Params(Model):
    """Whose pods: of all StatefulSets of the namespace, or of one."""

    namespace: str = Field(description="a namespace, or workload: the one of the experiment's workload")
    name: str | None = Field(None, description="of the StatefulSet")


class _Incarnation:
    """One pod (by uid) of an identity on its node: from when to when its containers ran."""

    def __init__(self, timeline: Timeline, history: History[Pod]) -> None:
        self.timeline, self.history = timeline, history
        self.uid = history.last.object.metadata.uid
        self.node = next((node for v in history if (node := node_of(v.object))), "")

    def signal(self) -> Signal:
        """True while it certainly ran, false when it certainly did not, unknown between.

        What ran at two moments ran between them; what did not run any more begins only with new evidence that it runs.
        """
        samples = [Sample(-_INF, False, None, "it had not begun to run")]
        ended = finished_version(self.history)
        for told in sorted((*self._run_samples(), *self._unknown_samples(), *self._end_samples()), key=lambda s: s.t):
            before = samples[-1]
            if told.value is True:
                if before.value is None:
                    samples.pop()
                if samples[-1].value is not True:
                    samples.append(told)
            elif told.value is False and before.value is None and ended:
                # That it is over is certain now, and then the kubelet's word tells since when.
                since = max(before.t, min(told.t, end_of(ended).hi, ended.t))
                samples.append(Sample(since, False, told.seq, told.observation))
            elif before.value is not False and told.value is not before.value:
                samples.append(told)
        return Signal(tuple(samples))

    def _run_samples(self) -> Iterator[Sample]:
        """When a container of it began to run, and when one was seen to run."""
        seen, begun = f"it runs on {self.node}", set()
        for version in self.history:
            for started in _start_times(version.object):
                if started is not None and started not in begun and not version.final_state_unknown:
                    begun.add(started)
                    yield Sample(max(self.history.times[0], started), True, version.seq, seen)
        for reading, uids in self._readings():
            if self.uid in uids:
                yield Sample(reading.t, True, reading.seq, seen)

    def _unknown_samples(self) -> Iterator[Sample]:
        """From when on its kubelet does not say any more that it runs: it ended, it is gone, the node is not Ready."""
        seen = f"nothing on {self.node} tells whether it still runs"
        ended = finished_version(self.history)
        if ended:
            yield Sample(end_of(ended).lo, None, ended.seq, seen)
        for version in self.history:
            if version.is_deleted:
                yield Sample(version.t, None, version.seq, seen)
        nodes: History[Node] | tuple[()] = self.timeline.nodes.get(self.node) or ()
        for look in nodes:
            if look.is_deleted or not is_ready(look.object):
                yield Sample(look.t, None, look.seq, seen)

    def _end_samples(self) -> Iterator[Sample]:
        """When the node itself shows that it does not run."""
        seen = f"{self.node} shows that it does not run there"
        for reading, uids in self._readings():
            if self.uid not in uids:
                yield Sample(reading.t, False, reading.seq, seen)
        for power in all_readings(self.timeline, self.node, PseudoFact.MACHINE):
            if power.value == "off":
                yield Sample(power.t, False, power.seq, seen)

    def _readings(self) -> Iterator[tuple[Fact, set[str]]]:
        for reading in self.timeline.readings(self.node, "containers"):
            uids = _running_uids(reading.value)
            if uids is not None:
                yield reading, uids


def _running_uids(value: Any) -> set[str] | None:
    """Uids of the pods that run a container; None if the reading is not understood."""
    listed = value.get("running") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return None
    return {str(one.get("uid", "")) for one in listed}


def _start_times(pod: Pod) -> Iterator[float | None]:
    for container in (pod.status.container_statuses if pod.status else None) or ():
        for state in (container.state, container.last_state):
            told = (state.running or state.terminated) if state else None
            yield source_time(told.started_at if told else None)


def _with_pod_names(sample: Sample, pods: list[Subject]) -> Sample:
    """Where several run at the same time, or may, all of them are named."""
    if sample.value is True:
        return sample
    now = [(pod.name, pod.signal.at(sample.t)) for pod in pods]
    told = [f"{name}: {state.observation}" for name, state in now if state.value is not False]
    return replace(sample, observation="; ".join(told))


class AtMostOne:
    """No two pods of one name of a StatefulSet run at the same time.

    That a pod runs is told by its kubelet, as long as its node is Ready, or by the containers that run on the node
    (host fact ``containers``). That it has ended counts only if its node shows it, by that fact or by being off: the
    API server forgets a pod that is force deleted, while its containers run on. So the API alone proves nothing here.
    """

    name = "at-most-one"
    summary = "no two pods of one StatefulSet identity run at the same time, as the nodes themselves show"
    example = "{assert: at-most-one, with: {namespace: workload, name: db}, after: force-delete, always: {for: 2m}}"
    needs = (
        "the containers that run on each node that a pod of the identity has left, read after that (host fact "
        "containers), or the machine off"
    )
    host_facts = ("containers",)
    params = Params
    node_fields = ()
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace = view.namespace(params.namespace)
        identities: dict[str, list[Subject]] = {}
        for history in view.timeline.pods.values():
            pod = history.last.object
            owner = controller_of(pod)
            if pod.metadata.namespace != namespace or owner is None or owner.kind != "StatefulSet":
                continue
            if params.name in (None, owner.name):
                incarnation = _Incarnation(view.timeline, history)
                own = Subject(f"pod {pod.metadata.uid} on {incarnation.node or 'no node'}", incarnation.signal())
                identities.setdefault(pod.metadata.name, []).append(own)
        subjects = []
        for name, pods in sorted(identities.items()):
            number = combine(SubjectSet("", tuple(pods), Quantifier.COUNT, 0, 1))
            at_most_one = Signal(tuple(_with_pod_names(sample, pods) for sample in number.samples))
            subjects.append(Subject(f"{namespace}/{name}", mask_pods(at_most_one, view.timeline)))
        expected = "at most one pod of each name runs"
        return SubjectSet(
            expected, tuple(subjects), empty_reason=f"no pod of such a StatefulSet was seen in {namespace}"
        )


ASSERTION = AtMostOne()
