"""The judge of a run in progress."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from chaos.core.plan import Plan
from chaos.core.ports import RunWatcher
from chaos.core.result import RunResult, provisional
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import LoadedExperiment
from chaos.engine.observers import RunObservers
from chaos.engine.progress import Unwatched
from chaos.engine.session import WORKLOAD, EntryRecorder
from chaos.verdicts.judge.context import PLURALS, LiveState, Options, bind
from chaos.verdicts.judge.judge import judge, steady_state, violated_conditions
from chaos.verdicts.judge.notes import relevant_resources


def judge_options(plan: Plan, connection: ClusterConnection) -> Options:
    """The bindings and facts that the judge of a run need not derive from its timeline."""
    nodes: dict[str, tuple[str, ...]] = {}
    for target in plan.targets:
        nodes[target.target] = (*nodes.get(target.target, ()), target.node)
    cluster = connection.inventory.cluster
    return Options(bind=nodes, namespace=plan.namespace, inventory=cluster.facts if cluster else {})


@dataclass
class LiveJudge:
    """Implements ``chaos.engine.session.Judge`` for a run that is still being recorded."""

    loaded: LoadedExperiment
    recorder: EntryRecorder
    options: Options
    observers: RunObservers = field(default_factory=RunObservers)
    watcher: RunWatcher = field(default_factory=Unwatched)
    _state: LiveState = field(default_factory=LiveState)

    def judge(self, live: bool) -> RunResult:
        """All verdicts; with ``live``, those whose deadline is in the future are pending."""
        timeline = self.recorder.timeline()
        result = judge(
            self.loaded.experiment, timeline, self.loaded.registry, self.options, live=live, state=self._state
        )
        self.observers.prove_at(self._state.deadlines)
        self.watcher.judged(provisional(result) if live else result)
        return result

    @property
    def deadlines(self) -> Collection[float]:
        """The moments at which verdicts of the last judgement are decided."""
        return self._state.deadlines

    def violated_conditions(self) -> tuple[Verdict, ...]:
        """The verdicts on abort conditions that are currently violated."""
        timeline = self.recorder.timeline()
        context = bind(self.loaded.experiment, timeline, self.loaded.registry, self.options, live=True)
        return violated_conditions(context, timeline.end)

    def steady_state(self) -> tuple[Verdict, ...]:
        """The verdicts of the steady state now, and a pending one for each object that no observer has seen yet.

        Before a fault, also each abort condition that is already violated: it would abort the run after the fault.
        """
        timeline = self.recorder.timeline()
        context = bind(self.loaded.experiment, timeline, self.loaded.registry, self.options, live=True)
        missing = (*self._unobserved_objects(timeline), *self._targets_without_pod(timeline))
        violated = () if timeline.actions else violated_conditions(context, timeline.end)
        found = (*steady_state(context, timeline.end), *missing, *violated)
        self.watcher.steady(found)
        return found

    def late_watches(self, since: float) -> tuple[Verdict, ...]:
        """A pending verdict for each resource for which changes from before ``since`` may still arrive."""
        timeline = self.recorder.timeline()
        return tuple(
            Verdict(f"watch of {source}", "currency", Status.PENDING, f"not all changes of {source} are received")
            for source in sorted(relevant_resources(self.loaded.experiment))
            if timeline.currency.listed_until(source) < since
        )

    def _unobserved_objects(self, timeline: Timeline) -> Iterator[Verdict]:
        """Kinds of objects that no observer has seen yet: each has its own watch, and one may be late."""
        for manifest in self.loaded.manifests:
            kind, metadata = manifest["kind"], manifest["metadata"]
            name = metadata.get("name") or metadata["generateName"]
            if kind in PLURALS and not self._was_seen(timeline, PLURALS[kind], name, is_prefix="name" not in metadata):
                yield Verdict(f"{kind} {name}", WORKLOAD, Status.PENDING, "it was not seen yet")

    def _was_seen(self, timeline: Timeline, plural: str, name: str, *, is_prefix: bool) -> bool:
        namespace = self.options.namespace
        if not is_prefix:
            return (plural, namespace, name) in timeline.workloads
        return any(key[:2] == (plural, namespace) and key[2].startswith(name) for key in timeline.workloads)

    def _targets_without_pod(self, timeline: Timeline) -> Iterator[Verdict]:
        """Targets that must run certain pods, but run none of them."""
        for name, spec in self.loaded.experiment.spec.targets.items():
            if (wanted := spec.runs) is None:
                continue
            namespace = self.options.namespace if wanted.is_own else wanted.namespace
            pods = (history.last for history in timeline.pods.in_namespace(namespace))
            found = [pod.object for pod in pods if not pod.is_deleted and wanted.matches(pod.object, namespace)]
            running = {pod.spec.node_name for pod in found if pod.spec}
            for node in self.options.bind.get(name, ()):
                if node not in running:
                    because = f"there are no {wanted} on {node}"
                    yield Verdict(f"target {name} runs {wanted}", WORKLOAD, Status.PENDING, because)
