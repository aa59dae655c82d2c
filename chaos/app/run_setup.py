"""The inputs and the context with which the engine executes a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from chaos import __version__
from chaos.app.connect import ClusterConnection
from chaos.app.injection_limits import InjectionLimits
from chaos.app.load import LoadedExperiment
from chaos.app.null_progress import Unwatched
from chaos.app.observer_setup import ObserveFunc, ObserverSet, build_observers, observe_cluster
from chaos.cluster.journal_mirror import JournalMirror
from chaos.cluster.lease_lock import Identity
from chaos.cluster.node_events import NodeEvents, random_suffix
from chaos.cluster.replica import RunIdentity, Signer
from chaos.cluster.workload import create_commands
from chaos.core.cluster_view import ClusterView
from chaos.core.duration import parse_duration
from chaos.core.judgement import Judgement, provisional
from chaos.core.plan import Plan
from chaos.core.ports import JudgementDisplay, LockGuard, Progress, RunWatcher
from chaos.core.recording import OVERRIDDEN, SLACK, WARNINGS
from chaos.core.registry import PluginRegistry
from chaos.core.result import RunResult
from chaos.core.store.journal import Journal
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.engine.context import RunContext
from chaos.engine.inputs import RunInputs
from chaos.engine.recorder import Recorder
from chaos.engine.run import WORKLOAD
from chaos.engine.services import RunServices
from chaos.verdicts.judge.context import PLURALS, LiveState, Options, bind
from chaos.verdicts.judge.judge import judge, steady_state, violated_conditions
from chaos.verdicts.judge.notes import relevant_resources


@dataclass(frozen=True, slots=True)
class LiveJudge:
    """Judges the timeline of a run that is still being recorded."""

    loaded: LoadedExperiment
    registry: PluginRegistry
    recorder: Recorder
    options: Options
    prove_at: Callable[[Iterable[float]], None] = lambda _: None
    watcher: RunWatcher = field(default_factory=Unwatched)
    _state: LiveState = field(default_factory=LiveState)

    def judge(self, live: bool) -> RunResult:
        """All verdicts; with ``live``, those whose deadline is in the future are pending."""
        timeline = self.recorder.timeline()
        result = judge(self.loaded.experiment, timeline, self.registry, self.options, live=live, state=self._state)
        self.prove_at(self._state.deadlines)
        self.watcher.judged(provisional(result) if live else result)
        return result

    @property
    def deadlines(self) -> Collection[float]:
        """The moments that decide a verdict, of the last judgement."""
        return self._state.deadlines

    def violated_conditions(self) -> tuple[Verdict, ...]:
        """The verdicts on the abort conditions that are violated now."""
        timeline = self.recorder.timeline()
        context = bind(self.loaded.experiment, timeline, self.registry, self.options, live=True)
        return violated_conditions(context, timeline.end)

    def steady_state(self) -> tuple[Verdict, ...]:
        """The verdicts of the steady state now, and a pending one for each object that no observer has seen yet.

        Before a fault, also an abort condition that is violated already: the run would be aborted right after it.
        """
        timeline = self.recorder.timeline()
        context = bind(self.loaded.experiment, timeline, self.registry, self.options, live=True)
        missing = (*self._unobserved_objects(timeline), *self._targets_without_pod(timeline))
        violated = () if timeline.actions else violated_conditions(context, timeline.end)
        found = (*steady_state(context, timeline.end), *missing, *violated)
        self.watcher.steady(found)
        return found

    def late_watches(self, since: float) -> tuple[Verdict, ...]:
        """A pending verdict for each resource of which something from before ``since`` may not be received yet."""
        timeline = self.recorder.timeline()
        return tuple(
            Verdict(f"watch of {source}", "currency", Status.PENDING, f"not all changes of {source} are received")
            for source in sorted(relevant_resources(self.loaded.experiment, self.registry))
            if timeline.currency.listed_until(source) < since
        )

    def _unobserved_objects(self, timeline: Timeline) -> Iterator[Verdict]:
        """Each kind of object has a separate watch, and one may be late."""
        for manifest in self.loaded.manifests:
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            if kind in PLURALS and (PLURALS[kind], self.options.namespace, name) not in timeline.workloads:
                yield Verdict(f"{kind} {name}", WORKLOAD, Status.PENDING, "it was not seen yet")

    def _targets_without_pod(self, timeline: Timeline) -> Iterator[Verdict]:
        """Targets that must run a pod of the workload, and do not."""
        pods = (history.last for history in timeline.pods.in_namespace(self.options.namespace))
        running = {pod.object.spec.node_name for pod in pods if not pod.is_deleted and pod.object.spec}
        for name, spec in self.loaded.experiment.spec.targets.items():
            for node in self.options.bind.get(name, ()) if spec.runs else ():
                if node not in running:
                    because = f"no pod of the workload is on {node}"
                    yield Verdict(f"target {name} runs the workload", WORKLOAD, Status.PENDING, because)


JudgeFunc = Callable[[bool], RunResult]  # with True, of a live run


class HeldLock(LockGuard, Protocol):
    """The cluster's lock, held in the name of ``identity``; journals are in ``namespace``, too."""

    identity: Identity
    namespace: str


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Everything that is known of a run before its first side effect.

    ``observe`` makes the observers of the cluster; ``suffix`` returns the end of a new Event's name; ``judge`` is how
    often the run is judged while it goes on, which is at every tick.
    """

    loaded: LoadedExperiment
    registry: PluginRegistry
    connection: ClusterConnection
    plan: Plan
    view: ClusterView
    lock: HeldLock
    signer: Signer
    before_fault: Callable[[], None] = lambda: None
    watcher: RunWatcher = field(default_factory=Unwatched)
    observe: ObserveFunc = observe_cluster
    suffix: Callable[[], str] = random_suffix
    judge: Callable[[LiveJudge], JudgeFunc] = lambda live: live.judge

    def context(self, journal: Journal, recorder: Recorder, progress: Progress) -> RunContext:
        """The context that the phases of the run share."""
        loaded, connection = self.loaded, self.connection
        observers = build_observers(
            loaded.experiment, self.registry, connection, self.plan, progress.note, self.observe
        )
        inputs = self._inputs(observers)
        services = self._services(journal, recorder, progress, observers)
        if isinstance(progress, JudgementDisplay):
            services = replace(services, on_judged=partial(_show, progress, recorder, inputs.deadline))
        return RunContext(inputs, services)

    def _inputs(self, observers: ObserverSet) -> RunInputs:
        experiment, namespace = self.loaded.experiment, self.plan.namespace
        return RunInputs(
            experiment=experiment,
            plan=self.plan,
            deadline=self.connection.clock.now() + parse_duration(experiment.spec.max_duration),
            observers=observers.stages,
            workload=create_commands(self.loaded.manifests, namespace, self.plan.run, self.plan.workload_nodes)
            if namespace
            else (),
            meta=self._meta(),
            final_samples=observers.final_samples,
            helper_namespaces=self.connection.helpers.namespaces if self.connection.helpers else (),
        )

    def _services(
        self, journal: Journal, recorder: Recorder, progress: Progress, observers: ObserverSet
    ) -> RunServices:
        connection, plan, holder = self.connection, self.plan, self.lock.identity.holder
        nodes = tuple(sorted({step.node for step in plan.steps if step.node}))
        identity = RunIdentity(plan.run, plan.experiment, plan.created, holder, nodes)
        mirror = JournalMirror(connection.kube, self.lock.namespace, identity, journal, self.signer)
        live = LiveJudge(self.loaded, self.registry, recorder, self._judge_options(), observers.prove_at, self.watcher)
        return RunServices(
            clock=connection.clock,
            kube=connection.kube,
            hosts=connection.hosts,
            journal=journal,
            progress=progress,
            emit=recorder.emit,
            judge=self.judge(live),
            judge_steady_state=live.steady_state,
            late_watches=live.late_watches,
            guard=self.lock,
            publish=mirror.publish,
            reconcile=mirror.reconcile,
            check_limits=InjectionLimits(plan, connection, self.registry).check,
            before_fault=self.before_fault,
            published=mirror.published,
            events=self._node_events(),
            prove_at=observers.prove_at,
            watch_closely=observers.watch_closely,
        )

    def _judge_options(self) -> Options:
        """The bindings and facts that the judge need not derive from the timeline."""
        nodes: dict[str, tuple[str, ...]] = {}
        for target in self.plan.targets:
            nodes[target.target] = (*nodes.get(target.target, ()), target.node)
        cluster = self.connection.inventory.cluster
        return Options(bind=nodes, namespace=self.plan.namespace, inventory=cluster.facts if cluster else {})

    def _node_events(self) -> NodeEvents | None:
        cluster = self.connection.inventory.cluster
        if cluster is None or not cluster.events:
            return None
        uids = {target.node: target.uid for target in self.plan.targets}
        return NodeEvents(self.connection.kube, self.plan.run, self.lock.identity.holder, uids, self.suffix)

    def _meta(self) -> dict[str, object]:
        cluster, plan = self.connection.inventory.cluster, self.plan
        return {
            "run": plan.run,
            "experiment": plan.experiment,
            "planHash": plan.hash,
            "experimentHash": plan.experiment_hash,
            "seed": plan.seed,
            "kubernetes": self.connection.version,
            "clusterUID": self.connection.uid,
            "simulated": bool(cluster and cluster.simulated),
            "targets": {target.node: target.target for target in plan.targets},
            "workload": plan.namespace,
            "nodes": len(self.view.nodes),
            "by": self.lock.identity.holder,
            "nodefall": __version__,
            **({SLACK: plan.slack} if plan.slack > 1 else {}),
            **({OVERRIDDEN: plan.overridden} if plan.overridden else {}),
            **({WARNINGS: plan.warnings} if plan.warnings else {}),
        }


def _show(
    display: JudgementDisplay,
    recorder: Recorder,
    ends: float,
    expectations: Sequence[Verdict],
    recovery: Sequence[Verdict],
) -> None:
    """Hand a tick's judgement to the display."""
    display.judged(Judgement(tuple(expectations), tuple(recovery), recorder.timeline(), ends))
