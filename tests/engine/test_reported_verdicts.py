"""What a run reports at its ticks: what is said is not taken back, nor said twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chaos.core.action import ProofStatus, Undo
from chaos.core.plan import PlannedStep
from chaos.core.result import Judgement, RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.engine import live_judge
from chaos.engine.live_judge import LiveJudge
from chaos.engine.progress import Unwatched
from chaos.verdicts.judge.context import Options
from tests.engine.test_inject import EMPTY, context_of
from tests.kit.fakes import FakeClock, FakeKube, FakeProgress, FakeSession
from tests.kit.sessions import FakeJudge

H, V, U, P = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING
READY = "recovery: ready"


def result(hypothesis: Status, recovery: Sequence[Status], *, is_proven: bool = True) -> RunResult:
    proof = ProofStatus.PROVEN if is_proven else ProofStatus.UNPROVEN
    return structs.replace(
        EMPTY,
        steps=(StepResult("do", "power-on", "n1", 1.0, 2.0, "answered", "c", proof, ""),),
        hypothesis=(
            Verdict("pods end", "pods", hypothesis, "x"),
            Verdict("pods end", "pods", P, "another of the name"),
        ),
        recovery=tuple(Verdict(READY, "nodes-ready", status, "x") for status in recovery),
    )


def reports(folder: Path, ticks: Sequence[RunResult], final: RunResult | None = None) -> list[str]:
    """What a run reports whose judge says this at its ticks, and at the end."""
    left: Iterator[RunResult] = iter(ticks)
    progress = FakeProgress()
    step = PlannedStep("other", "power-on", "n1", {}, {}, (), Undo(), ())
    context = context_of(folder, step, FakeClock(), FakeSession({}), FakeKube({}))
    context.progress, context.judge = progress, FakeJudge(lambda _live: next(left))
    for _ in ticks:
        context.tick()
    if final:
        context.report_final(final)
    return [report for report in progress.reports if not report.endswith("pending")]


def test_a_recovery_is_reported_once_the_run_is_over(tmp_path: Path) -> None:
    """It may be lost again: once it was reported as held after 0 s, then as violated, then as held."""
    ticks = [result(H, [status]) for status in (H, P, H, P, H)]
    assert reports(tmp_path, ticks) == ["pods end: held"]
    assert reports(tmp_path, ticks, result(H, [H])) == ["pods end: held", f"{READY}: held"]
    assert reports(tmp_path, ticks, result(H, [V])) == ["pods end: held", f"{READY}: violated"]


def test_a_recovery_that_failed_is_reported_at_once(tmp_path: Path) -> None:
    assert reports(tmp_path, [result(H, [P]), result(H, [V]), result(H, [V])]) == [
        "pods end: held",
        f"{READY}: violated",
    ]


def test_inconclusive_waits_for_proofs(tmp_path: Path) -> None:
    unproven = result(U, [U], is_proven=False)
    assert reports(tmp_path, [unproven, unproven, result(H, [P])]) == ["pods end: held"]
    assert reports(tmp_path, [unproven, result(U, [P])]) == ["pods end: inconclusive"]


def test_two_of_one_name_are_not_confused(tmp_path: Path) -> None:
    """The second stays pending: each tick once reported both again."""
    assert reports(tmp_path, [result(H, [P])] * 5) == ["pods end: held"]


@given(st.lists(st.sampled_from([H, P, U]), max_size=12), st.sampled_from([H, V, U]))
def test_no_recovery_is_said_twice(tmp_path_factory: pytest.TempPathFactory, lives: list[Status], end: Status) -> None:
    folder = tmp_path_factory.mktemp("run")
    said = reports(folder, [result(P, [status], is_proven=False) for status in lives], result(P, [end]))
    assert said == [f"{READY}: {end}"]


def test_every_tick_has_all_verdicts_for_a_view(tmp_path: Path) -> None:
    step = PlannedStep("other", "power-on", "n1", {}, {}, (), Undo(), ())
    context = context_of(tmp_path, step, FakeClock(), FakeSession({}), FakeKube({}))
    seen: list[tuple[list[Status], list[Status]]] = []

    class Display(FakeProgress):
        def judged(self, judgement: Judgement) -> None:
            seen.append(([v.status for v in judgement.expectations], [v.status for v in judgement.recovery]))

    context.progress, context.judge = Display(), FakeJudge(lambda _: result(H, [H]))
    context.tick()
    context.report_final(result(H, [H]))
    assert seen == [([H, P], [P]), ([H, P], [H])]


def test_a_watcher_of_the_run_is_shown_no_more_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live page once had a recovery as held that was lost again."""

    class Watcher(Unwatched):
        def judged(self, result: RunResult) -> None:
            seen.append([verdict.status for verdict in result.recovery])

    seen: list[list[Status]] = []
    monkeypatch.setattr(live_judge, "judge", lambda *_args, **_named: result(H, [H]))
    recorder = SimpleNamespace(timeline=Timeline)
    loaded: Any = SimpleNamespace(experiment=None, registry=None)
    live = LiveJudge(loaded, recorder, Options(), watcher=Watcher())
    assert live.judge(True).recovery[0].status is H, "the run itself decides by what is so now"
    live.judge(False)
    assert seen == [[P], [H]]


THERE = "n1 is now at 172.18.0.5 (was 172.18.0.3)"
BACK = "n1 is now at 172.18.0.3 (was 172.18.0.5)"


def test_each_change_is_reported_once(tmp_path: Path) -> None:
    step = PlannedStep("do", "power-on", "n1", {}, {}, (), Undo(), ())
    context = context_of(tmp_path, step, FakeClock(), FakeSession({}), FakeKube({}))
    progress, seen = FakeProgress(), list[str]()
    context.progress = progress
    context.judge = FakeJudge(lambda _: structs.replace(EMPTY, address_changes=tuple(seen)))
    context.tick()
    assert progress.reports == []
    for change, reports in ((THERE, [THERE]), (BACK, [THERE, BACK])):
        seen.append(change)
        context.tick()
        context.tick()
        assert progress.reports == reports
