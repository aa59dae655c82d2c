"""Assertion ``pods-started``: a container starts on a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from pydantic import Field

from chaos.core.assertion import Claim, Names, View
from chaos.core.field_types import Model
from chaos.core.kube import ContainerStatus, Pod, full_name
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import History
from chaos.verdicts.judge.clocks import Bounds, Lists, moment_of, narrowed, seconds_ahead
from chaos.verdicts.judge.pods import node_of
from chaos.verdicts.judge.sequence import Happening, count_signal
from chaos.verdicts.judge.signals import mask_pods, mask_unproven, mask_unseen_pods, version_moments, watched_since

_STATUS_SYNC = 15.0  # seconds: in the worst case, a kubelet reports the start of a container after 10 s


class Params(Model):
    """Nodes."""

    node: str = Field(description="A target, or all.")


def _started_containers(pod: Pod) -> list[ContainerStatus]:
    """Containers that have started, including finished ones."""
    status = pod.status
    statuses = [*((status.init_container_statuses if status else None) or ())]
    statuses += (status.container_statuses if status else None) or ()
    return [c for c in statuses if c.container_id and _started_at(c) is not None]


def _started_at(container: ContainerStatus) -> str | None:
    """Start of a container by the clock of its node, in whole seconds; None before its start."""
    state = container.state
    current = (state.running or state.terminated) if state else None
    return current.started_at if current else None


@dataclass(frozen=True, slots=True)
class _Starts:
    """Starts of containers on nodes. ``ahead``: of their clocks; ``since``: from when on pods were watched."""

    ahead: Mapping[str, Bounds]
    since: float
    lists: Lists

    def of(self, history: History[Pod]) -> Iterator[Happening]:
        """The first version that has a container shows that it started: one is known by its ID and restart count."""
        known: set[tuple[str, int]] = set()
        created, before = float("-inf"), float("-inf")
        for version in history:
            since, until = version_moments(version)
            if version.seq == history.first_seq and version.t > self.since and version.t not in self.lists:
                created = since
            ahead = self.ahead.get(node_of(version.object))
            for container in _started_containers(version.object):
                identity = container.container_id or "", container.restart_count or 0
                if identity not in known and ahead is not None:
                    observed = max(created, before - _STATUS_SYNC), until
                    lo, hi = narrowed(observed, moment_of(_started_at(container), ahead))
                    yield Happening(lo, hi, version.seq, "a container started")
                known.add(identity)
            if version.final_state_unknown and ahead is not None:
                yield Happening(before, until, version.seq, "a container may have started", is_certain=False)
            before = float("-inf") if version.t in self.lists else since


class PodsStarted:
    """A container starts on the node after judging starts, in a new pod or as a restart. A pod that is rejected, or
    that is bound to a node that is down, starts no container.
    """

    name = "pods-started"
    summary = "a container starts on a node"
    example = "{assert: pods-started, with: {node: victim}, after: power-off, never: {until: power-on}}"
    needs = "the pods, watched without a gap, with the state of their containers"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    masks_itself = True
    sources = ("pods",)

    def claim(self, params: Params, names: Names) -> Claim:
        where = names.on(params.node)
        return Claim(f"a container started{where}", f"no container started{where}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        nodes = set(view.nodes(params.node))
        timeline, memo = view.timeline, view.memo(*sorted(nodes))
        ahead = {node: seconds_ahead(timeline, node) for node in nodes}
        starts = _Starts(ahead, watched_since(timeline, "pods"), Lists(timeline, "pods"))

        def signal(history: History[Pod]) -> Signal:
            found = count_signal(starts.of(history), view.since, 1, None, "no container started")
            return mask_unseen_pods(found, timeline)

        subjects = []
        for history in timeline.pods.on_nodes(nodes):
            found = memo.recall(timeline, history, partial(signal, history), ahead)
            subjects.append(Subject(full_name(history.last.object.metadata), mask_unproven(found, timeline, "pods")))
        no_other = Signal((Sample(float("-inf"), False, None, "no container of another pod started"),))
        subjects.append(Subject("", mask_pods(no_other, timeline)))
        expected = f"a container starts on {', '.join(sorted(nodes))}"
        return SubjectSet(expected, tuple(subjects), Quantifier.ANY)


ASSERTION = PodsStarted()
