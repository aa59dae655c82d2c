"""Runs with plug-ins that fail at every hook of a run: they are named, what was done is undone, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from itertools import count
from typing import Any

import msgspec
import pytest

import tests.rehearsal
from chaos.app.run.results import JudgedRun
from chaos.core import outside
from chaos.core.binding import BoundAssertion
from chaos.core.experiment import Expectation
from chaos.core.field_types import Model
from chaos.core.result import RunResult
from chaos.core.verdict import Status
from chaos.engine.load import LoadedExperiment
from chaos.extend.assertion import Sample, Signal, Subject, SubjectSet, View, sample_source
from chaos.extend.observer import EntryKind, ObserverContext, RecordingEntry, Sampler, Sink, ThreadedObserver
from chaos.rehearsal.run import RehearsalOptions, rehearse_once
from tests.kit.rehearsals import loaded, settings_of, spec_of

EXPERIMENT = "graceful-poweroff"
BLAME = "an unknown distribution, observer queue, in"
HERE = "tests.rehearsal.test_faulty_plugins"


class NoParams(Model):
    """None."""


class QueueShort:
    """Three lines that know nothing of time."""

    name, summary, needs = "queue-short", "the queue is short", "samples of queue"
    example = "{assert: queue-short, always: {for: 30s}}"
    params = NoParams
    node_fields: tuple[str, ...] = ()
    moment_fields: tuple[str, ...] = ()
    sources = (sample_source("queue"),)

    def subjects(self, params: NoParams, view: View) -> SubjectSet:
        samples = (Sample(s.t, s.value < 5, s.seq, f"{s.value} jobs") for s in view.timeline.samples("queue"))
        return SubjectSet("it is short", (Subject("queue", Signal(tuple(samples))),))


class Plugin:
    """An observer plug-in with one observer."""

    name = "queue"

    def __init__(self, make: Callable[[ObserverContext], Any]) -> None:
        self.make = make

    def build(self, context: ObserverContext) -> list[Any]:
        return [self.make(context)]


def fails_after(calls: int) -> Callable[[], int]:
    done = count()

    def read() -> int:
        if next(done) >= calls:
            raise ConnectionError("the queue is gone")
        return 3

    return read


class Faulty(Sampler):
    """Fails in the methods that it names."""

    def __init__(self, context: ObserverContext, *wrong: str) -> None:
        super().__init__("queue", context.clock, 2.0, lambda: 3)
        self._wrong = wrong

    def start(self, sink: Sink) -> None:
        self._fail("start")
        super().start(sink)

    def final_sample(self) -> None:
        self._fail("final_sample")
        super().final_sample()

    def stop(self) -> None:
        super().stop()
        self._fail("stop")

    def _fail(self, method: str) -> None:
        if method in self._wrong:
            raise ZeroDivisionError(method)


class Dying(ThreadedObserver):
    """Its thread ends by an exception."""

    def __init__(self, context: ObserverContext) -> None:
        super().__init__("queue", sample_source("queue"), context.clock)

    def _run(self) -> None:
        self._emit(RecordingEntry(self._clock.now(), EntryKind.SAMPLE, "queue", msgspec.Raw(b"3")))
        self._has_synced = True
        self._thread.pause(20)
        raise ZeroDivisionError("in the thread")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[ObserverContext], Any]], JudgedRun]:
    """Rehearses the experiment, with one more question, beside an observer."""

    def of(make: Callable[[ObserverContext], Any]) -> JudgedRun:
        monkeypatch.setattr(tests.rehearsal, "PLUGIN", Plugin(make), raising=False)
        points = {"nodefall.observers": [EntryPoint("queue", "tests.rehearsal:PLUGIN", "nodefall.observers")]}
        monkeypatch.setattr(outside, "entry_points", lambda group: points.get(group, []))
        return rehearse_once(_with_question(), spec_of(EXPERIMENT), 1, RehearsalOptions(settings_of(EXPERIMENT)))

    return of


def _with_question() -> LoadedExperiment:
    found = loaded(EXPERIMENT)
    given = {"name": "the queue", "assert": "queue-short", "always": {"for": "30s"}}
    added = Expectation.model_validate(given)
    added.bind(BoundAssertion(QueueShort(), NoParams()))  # type: ignore[arg-type]
    spec = found.experiment.spec
    spec = spec.model_copy(update={"hypothesis": [*spec.hypothesis, added]})
    return replace(found, experiment=found.experiment.model_copy(update={"spec": spec}))


def _is_undone(result: RunResult) -> bool:
    return bool(result.undo) and all(undo.proven for undo in result.undo) and not result.leftovers


def _answer(result: RunResult) -> tuple[Status, str]:
    verdict = result.hypothesis[-1]
    return verdict.status, verdict.because


def test_an_observer_that_works_answers_the_question(run: Any) -> None:
    result = run(lambda context: Sampler("queue", context.clock, 2.0, lambda: 3)).result
    assert _answer(result)[0] is Status.HELD, (result.headline, list(result.steady_state))
    assert result.status is Status.HELD


@pytest.mark.parametrize("wrong", [("stop",), ("final_sample",), ("stop", "final_sample")], ids=str)
def test_an_observer_that_fails_at_the_end_costs_nothing(
    run: Any, wrong: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    result = run(lambda context: Faulty(context, *wrong)).result
    assert (result.status, _is_undone(result)) == (Status.HELD, True), result.headline
    assert all(f"{BLAME} {method}: ZeroDivisionError: {method}" in caplog.text for method in wrong)


def test_an_observer_that_fails_at_the_start_ends_the_run(run: Any) -> None:
    result = run(lambda context: Faulty(context, "start")).result
    assert f"{BLAME} start: ZeroDivisionError: start" in result.headline
    assert (result.exit_code, result.leftovers) != (70, ())


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda context: Sampler("queue", context.clock, 2.0, fails_after(12)), "observer queue: ConnectionError"),
        (Dying, "queue crashed: ZeroDivisionError: in the thread"),
    ],
)
def test_what_depends_on_an_observer_that_died_is_inconclusive(run: Any, make: Any, why: str) -> None:
    """It is named; all other questions are answered, and the run is undone."""
    result = run(make).result
    status, because = _answer(result)
    assert (status, why in because) == (Status.INCONCLUSIVE, True), because
    assert {verdict.status for verdict in result.hypothesis[:-1]} == {Status.HELD}
    assert _is_undone(result)
