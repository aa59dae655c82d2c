"""Why the work on a game day stops: a halt or an abort condition, which are watched, a signal, or another process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from chaos.app.day.store import DayStore
from chaos.cluster.observers.cluster import ClusterObservers
from chaos.core.decode import decode
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.experiment import Expectation, Experiment
from chaos.core.ports import Clock, Observer
from chaos.core.registry import PluginRegistry
from chaos.core.result import RunResult
from chaos.core.threads import ContextThread
from chaos.core.verdict import Status, Verdict
from chaos.engine.connection import ClusterConnection
from chaos.engine.recorder import Recorder
from chaos.engine.stop import Interrupted, StopRequest
from chaos.gameday.state import Halt
from chaos.verdicts.judge.context import Options, bind
from chaos.verdicts.judge.evaluate import evaluate_since
from chaos.verdicts.judge.notes import relevant_resources

_PERIOD = 0.8  # wall seconds between two reads: with the tick of a run, a halt has effect within 2 s
_log = logging.getLogger(__name__)


class DayHalted(Aborted):
    """Someone has halted the day; it continues after ``nodefall gameday resume``."""


@dataclass
class DayStop:
    """Set by signal handlers and threads, and checked by every wait. ``clock`` is that of the waits.

    A run that is active is stopped, too: by a halt and a loss immediately, by a signal in its own way.
    """

    clock: Clock
    signum: int | None = None
    halt: Halt | None = None
    loss: str = ""
    crash: BaseException | None = None
    _run: tuple[StopRequest, Clock] | None = None
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_set(self) -> bool:
        """Whether the work stops."""
        return bool(self.crash or self.signum or self.loss or self.halt)

    def check(self) -> None:
        """Raises DayHalted, Interrupted, Aborted if the day is no longer ours, or what a thread crashed with."""
        if self.crash:
            raise self.crash
        if self.signum:
            raise Interrupted(self.signum)
        if self.loss:
            raise Aborted(self.loss, hint="see nodefall gameday status")
        if self.halt:
            raise DayHalted(
                describe_halt(self.halt),
                hint="to continue, run nodefall gameday resume --reason WHY, then this command again",
            )

    def begin_run(self, stop: StopRequest, clock: Clock) -> None:
        """A run has begun: stop it if the day stops, or did so since the last check."""
        with self._mutex:
            self._run = stop, clock
        stop.signum = stop.signum or self.signum
        self._stop_run()

    def end_run(self) -> None:
        """The run has ended."""
        with self._mutex:
            self._run = None

    def on_signal(self, number: int) -> None:
        """A handler: takes no lock."""
        self.signum = self.signum or number
        self.clock.wake()

    def on_halt(self, halt: Halt) -> None:
        """The state of the day is halted."""
        self.halt = halt
        self._stop_run()
        self.clock.wake()

    def on_loss(self, why: str) -> None:
        """Another process works on the day, or its state is gone."""
        self.loss = self.loss or why
        self._stop_run()
        self.clock.wake()

    def on_crash(self, error: BaseException) -> None:
        """A thread has crashed."""
        self.crash = self.crash or error
        self.on_loss(f"a thread crashed: {error}")

    def _stop_run(self) -> None:
        why = self.loss or (describe_halt(self.halt) if self.halt else "")
        with self._mutex:
            if why and self._run:
                stop, clock = self._run
                stop.request(why)
                clock.wake()


def describe_halt(halt: Halt) -> str:
    """Who has halted the day, and why."""
    return f"game day halted by {halt.by}" + (f": {halt.reason}" if halt.reason else "")


@contextmanager
def watch_day(store: DayStore, epoch: int, stop: DayStop) -> Iterator[None]:
    """Report to ``stop`` for the block when the day is halted, deleted, damaged or taken over by another process.

    An API server that does not answer is no reason to stop: the locks of run and day see to that.
    """
    ended = threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(_PERIOD) and not stop.loss:
                _inspect(store, epoch, stop)
        except Exception as error:  # noqa: BLE001 - a watch that silently ends would miss a halt
            _log.exception("the watch of the game day crashed")
            stop.on_crash(error)

    thread = ContextThread(watch, "game day")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _inspect(store: DayStore, epoch: int, stop: DayStop) -> None:
    try:
        state = store.read()
    except Refused as error:
        stop.on_loss(error.message)
        return
    except NodefallError as error:
        _log.debug("cannot read the state of the game day: %s", error.message)
        return
    if state is None:
        stop.on_loss(f"the state of game day {store.name} was deleted")
    elif state.epoch != epoch:
        stop.on_loss(f"{state.day} of {store.name} was taken over by {state.holder}")
    elif state.halt and not stop.halt:
        stop.on_halt(state.halt)


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
