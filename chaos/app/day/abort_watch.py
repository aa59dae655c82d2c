"""The abort conditions of a game day, judged between its runs. During a run, its own judge has them, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from chaos.cluster.observers.cluster import ClusterObservers
from chaos.core.decode import decode
from chaos.core.experiment import Expectation, Experiment
from chaos.core.ports import Observer
from chaos.core.registry import PluginRegistry
from chaos.core.result import RunResult
from chaos.core.verdict import Status, Verdict
from chaos.engine.connection import ClusterConnection
from chaos.engine.recorder import Recorder
from chaos.verdicts.judge.context import Options, bind
from chaos.verdicts.judge.evaluate import evaluate_since
from chaos.verdicts.judge.notes import relevant_resources

_MAX_ENTRIES = 50_000  # in memory, besides the first lists; then the watch begins again
_NOTHING_DONE = {"name": "none", "action": "none"}


@dataclass
class AbortWatch:
    """Judges ``conditions`` on what the observers see of the cluster from :meth:`start` on, in cluster time.

    ``note`` describes, once each, a condition that cannot be judged.
    """

    conditions: Sequence[Expectation]
    connection: ClusterConnection
    registry: PluginRegistry
    note: Callable[[str], object]
    _noted: set[str] = field(default_factory=set)  # names of conditions
    _watches: Sequence[Observer] = ()
    _since: float | None = None
    _limit: int = _MAX_ENTRIES

    def start(self) -> None:
        """Start the observers. They are synced some time later; until then nothing is known."""
        experiment = self.registry.bind(_experiment(self.conditions))
        relevant = relevant_resources(experiment)
        cluster = ClusterObservers(self.connection.kube, self.connection.clock, relevant)
        self._experiment, self._currency = experiment, cluster.currency
        self._recorder = Recorder(decode, self.connection.clock)
        self._watches, self._since = cluster.watches, None
        for observer in self._watches:
            observer.start(self._recorder.emit)

    def stop(self) -> None:
        watches, self._watches = self._watches, ()
        for observer in watches:
            observer.stop()

    def violated(self) -> str:
        """Which condition is violated, and why; "" as long as none is known to be.

        From one thread, about once a second. Raises NodefallError.
        """
        if self._since is None:
            if not all(observer.has_synced() for observer in self._watches):
                return ""
            self._since = self.connection.clock.now()
            self._limit = len(self._recorder.timeline().entries) + _MAX_ENTRIES
        verdicts = list(self._judge(self._since))
        for verdict in verdicts:
            if verdict.status is Status.VIOLATED:
                return f"abort condition {verdict.name}: {verdict.because}"
            self._note_unknown(verdict)
        return ""

    def _judge(self, since: float) -> Iterator[Verdict]:
        timeline = self._recorder.timeline()
        if len(timeline.entries) > self._limit:
            self.stop()
            self.start()
            return
        context = bind(self._experiment, timeline, self.registry, Options(), live=True)
        for condition in self.conditions:
            yield evaluate_since(condition, context, since, timeline.end)
        self._currency.prove_at(context.deadlines)

    def _note_unknown(self, verdict: Verdict) -> None:
        if verdict.status is Status.INCONCLUSIVE and verdict.name not in self._noted:
            self._noted.add(verdict.name)
            self.note(f"abort condition {verdict.name} cannot be judged now: {verdict.because}")


@contextmanager
def abort_watch(
    conditions: Sequence[Expectation],
    connection: ClusterConnection,
    registry: PluginRegistry,
    note: Callable[[str], object],
) -> Iterator[Callable[[], str]]:
    """Watch the cluster for the block: :meth:`AbortWatch.violated`. Without conditions nothing is watched."""
    if not conditions:
        yield lambda: ""
        return
    watch = AbortWatch(conditions, connection, registry, note)
    try:
        watch.start()
        yield watch.violated
    finally:
        watch.stop()


def violated_in_run(conditions: Sequence[Expectation], result: RunResult) -> str:
    """Which of the day's ``conditions`` was violated during a run, and why, "" if none was."""
    titles = {(condition.title, condition.assert_) for condition in conditions}
    found = (each for each in result.abort if each.status is Status.VIOLATED and (each.name, each.assertion) in titles)
    return next((f"abort condition {verdict.name}: {verdict.because}" for verdict in found), "")


def _experiment(conditions: Sequence[Expectation]) -> Experiment:
    """What the judge is bound to: the conditions, and a step that never begins."""
    spec = {
        "title": "between runs",
        "steadyState": [conditions[0]],
        "method": [_NOTHING_DONE],
        "hypothesis": [conditions[0]],
        "abort": list(conditions),
    }
    document = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "day"}, "spec": spec}
    return Experiment.model_validate(document, by_alias=True)
