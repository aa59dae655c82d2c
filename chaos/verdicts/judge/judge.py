"""The judge: the result of an experiment on a timeline, of a recording, a finished run or a live run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from chaos.core.assertion import WatchingAssertion
from chaos.core.duration import parse_duration
from chaos.core.errors import Exit
from chaos.core.experiment import Expectation, Experiment
from chaos.core.number_types import in_range, parse_minor
from chaos.core.recording import OVERRIDDEN, TRUNCATED_RECORDING, WARNINGS, ActionPhase
from chaos.core.registry import PluginRegistry
from chaos.core.result import RESULT_VERSION, RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Known, Status, Verdict, worst
from chaos.verdicts.judge.context import JudgeContext, LiveState, Options, bind
from chaos.verdicts.judge.deadlines import recorded_slack
from chaos.verdicts.judge.evaluate import evaluate, evaluate_at, evaluate_recovery
from chaos.verdicts.judge.foreign_effect import ForeignEffect
from chaos.verdicts.judge.foreign_faults import foreign_faults
from chaos.verdicts.judge.headline import (
    NOT_JUDGED,
    PREFLIGHT_OVERRIDDEN,
    Headline,
    Invalidation,
    headline,
    interruption,
    invalidation,
    meta_texts,
    open_questions,
)
from chaos.verdicts.judge.late_steps import excuse_late_steps
from chaos.verdicts.judge.notes import address_changes, clock_notes, currency_notes, relevant_resources
from chaos.verdicts.judge.proof import prove
from chaos.verdicts.judge.sentences import Part, shorten, with_remedy, with_sentences
from chaos.verdicts.judge.unnoticed import unnoticed

_EXIT = {Status.HELD: Exit.HELD, Status.VIOLATED: Exit.VIOLATED}


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """All verdicts. ``invalidation``: why the run proves nothing about the cluster."""

    steps: list[StepResult]
    steady: tuple[Verdict, ...]
    hypothesis: tuple[Verdict, ...]
    abort: tuple[Verdict, ...]
    recovery: tuple[Verdict, ...]
    foreign: ForeignEffect
    invalidation: Invalidation | None
    status: Status


def judge(
    experiment: Experiment,
    timeline: Timeline,
    registry: PluginRegistry,
    options: Options | None = None,
    live: bool = False,
    now: float | None = None,
    state: LiveState | None = None,
) -> RunResult:
    """Judge an experiment on a timeline.

    ``live``: the timeline grows, up to ``now`` (default: its end); what later entries may decide is pending. ``state``:
    handed from one judgement of a run to the next.
    """
    state = state or LiveState()
    state.deadlines.clear()
    state.memos.begin_judgement()
    context = bind(experiment, timeline, registry, options or Options(), live, state)
    return _result(context, _judge(context, max(now or timeline.end, timeline.end), state))


def _result(context: JudgeContext, judged: _Verdicts) -> RunResult:
    experiment, timeline = context.experiment, context.timeline
    moved = address_changes(timeline, context.match_result.nodes)
    first_line = _headline(context, judged)
    return RunResult(
        version=RESULT_VERSION,
        run=str(timeline.meta.get("run", "")),
        experiment=experiment.metadata.name,
        title=experiment.spec.title,
        status=judged.status,
        exit_code=int(_EXIT.get(judged.status, Exit.INCONCLUSIVE)),
        headline=str(first_line),
        tally=first_line.tally,
        sentence=first_line.sentence,
        simulated=bool(timeline.meta.get("simulated")),
        kubernetes=str(timeline.meta.get("kubernetes", "")),
        cluster_uid=str(timeline.meta.get("clusterUID", "")),
        started=timeline.start,
        ended=timeline.end,
        targets=dict(context.match_result.targets),
        steps=tuple(judged.steps),
        steady_state=judged.steady,
        hypothesis=judged.hypothesis,
        abort=judged.abort,
        recovery=judged.recovery,
        notes=tuple(_notes(context, judged.foreign, moved)),
        foreign_faults=judged.foreign.faults,
        address_changes=moved,
        facts=dict(context.options.facts),
        started_by=str(timeline.meta.get("by", "")),
        nodefall_version=str(timeline.meta.get("nodefall", "")),
        plan_hash=str(timeline.meta.get("planHash", "")),
        unnoticed=() if context.live else unnoticed(timeline),
    )


def _foreign_effect(context: JudgeContext) -> ForeignEffect:
    nodes, namespace = context.match_result.nodes, context.namespace
    memo = context.memos.of("foreign faults")
    return ForeignEffect(context, foreign_faults(context.timeline, context.registry, nodes, namespace, memo), evaluate)


def _headline(context: JudgeContext, judged: _Verdicts) -> Headline:
    step, nodes = context.experiment.spec.method[0].name, context.match_result.nodes
    return headline(judged.status, (*judged.hypothesis, *judged.recovery), judged.invalidation, step, nodes)


def steady_state(context: JudgeContext, t: float) -> tuple[Verdict, ...]:
    """Verdicts on the steady state at one moment."""
    expectations = context.experiment.spec.steady_state
    return with_sentences(context, expectations, [evaluate_at(e, context, t) for e in expectations], Part.STEADY)


def violated_conditions(context: JudgeContext, t: float) -> tuple[Verdict, ...]:
    """Verdicts on the abort conditions that are violated at one moment."""
    verdicts = (evaluate_at(e, context, t) for e in context.experiment.spec.abort)
    return tuple(replace(v, name=f"abort condition {v.name}") for v in verdicts if v.status is Status.VIOLATED)


def _judge(context: JudgeContext, horizon: float, state: LiveState) -> _Verdicts:
    spec, foreign = context.experiment.spec, _foreign_effect(context)
    steps = [r for s in context.match_result.steps for r in prove(s, context.timeline, context.registry)]
    begin = context.match_result.steps[0].begin
    steady = state.steady if context.live else ()
    if begin is not None and not steady:
        steady = _steady_before(context, begin)
        if _is_received(context, begin):
            state.note_steady(steady)
    interrupted_at = interruption(context)
    then, horizon = (context, horizon) if interrupted_at is None else (replace(context, live=True), interrupted_at)
    hypothesis = excuse_late_steps(then, (evaluate(e, then, horizon) for e in spec.hypothesis))
    conditions = [evaluate(e, context, horizon, from_begin=True) for e in spec.abort]
    abort = with_sentences(context, spec.abort, conditions, Part.METHOD)
    recovery = _recovery(then, steps, horizon)
    invalid = invalidation(context, steps, steady)
    if invalid and not context.live:
        hypothesis = tuple(_invalidate(v, invalid.reason) for v in hypothesis)
        recovery = tuple(_invalidate(v, invalid.reason) for v in recovery)
    if interrupted_at is not None:
        hypothesis, recovery = (tuple(map(_leave_open, verdicts)) for verdicts in (hypothesis, recovery))
        invalid = invalid or open_questions((*hypothesis, *recovery))
    if foreign.faults:
        hypothesis, recovery = foreign.on_hypotheses(hypothesis), foreign.on_recovery(recovery)
        invalid = foreign.invalidation((*hypothesis, *recovery)) or invalid
    hypothesis = _as_known(context, with_sentences(context, spec.hypothesis, hypothesis, Part.METHOD))
    recovery = with_sentences(context, spec.steady_state, recovery, Part.RECOVERY)
    if context.live:  # proofs may still follow, so single verdicts stand; but without proofs the run is not held
        undecided = Status.PENDING in [v.status for v in (*hypothesis, *recovery)]
        overall = Status.PENDING if undecided else Status.INCONCLUSIVE
        if invalid:
            return _Verdicts(steps, steady, hypothesis, abort, recovery, foreign, invalid, overall)
    aborted = next((v for v in abort if v.status is Status.VIOLATED), None)
    statuses = [v.shown for v in (*hypothesis, *recovery)]
    if invalid or aborted:
        statuses.append(Status.INCONCLUSIVE)
    if aborted and not invalid and worst(statuses) is not Status.VIOLATED:
        sentence = shorten(f"Abort condition met: {aborted.sentence}")
        invalid = Invalidation(f"abort condition {aborted.name}: {aborted.because}", sentence)
    return _Verdicts(steps, steady, hypothesis, abort, recovery, foreign, invalid, worst(statuses))


def _is_received(context: JudgeContext, t: float) -> bool:
    """Whether nothing that is still to come is about the steady state before ``t``.

    Watches are proven current; an answer of Prometheus or of a slow probe may be about some time ago.
    """
    assertions = [each.bound and each.bound.assertion for each in context.experiment.spec.steady_state]
    sources = relevant_resources(context.experiment)
    proven = (t <= context.timeline.currency.until(source) < math.inf for source in sources)
    return all(isinstance(each, WatchingAssertion) for each in assertions) and all(proven)


def _steady_before(context: JudgeContext, begin: float) -> tuple[Verdict, ...]:
    """Steady state just before the first step. Entries at the moment of its start count by their order."""
    before = steady_state(context, math.nextafter(begin, -math.inf))
    then = steady_state(context, begin)
    first = min(entry.seq for entry, _ in context.timeline.actions if entry.t == begin)
    return tuple(
        t if b.status is not Status.HELD and t.status is Status.HELD and max(t.evidence, default=first) < first else b
        for b, t in zip(before, then, strict=True)
    )


def _as_known(context: JudgeContext, hypothesis: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts. Violations that are known for the version of the cluster are marked."""
    version = parse_minor(str(context.timeline.meta.get("kubernetes", "")))

    def marked(expectation: Expectation, verdict: Verdict) -> Verdict:
        known = expectation.known
        if not known or not version or verdict.status is not Status.VIOLATED or not in_range(version, known.versions):
            return verdict
        deviation = Known(known.versions, known.issue, known.instead)
        return replace(verdict, known=deviation, because=f"{verdict.because}; {deviation}")

    return tuple(map(marked, context.experiment.spec.hypothesis, hypothesis))


def _invalidate(verdict: Verdict, reason: str) -> Verdict:
    remedy = "a run that starts from a steady state, on nodes that meet the requirements, with every step proven"
    return replace(verdict, status=Status.INCONCLUSIVE, because=with_remedy(f"not judged: {reason}", remedy))


def _leave_open(verdict: Verdict) -> Verdict:
    """The verdict, if it was decided when the run was interrupted."""
    is_open = verdict.status is Status.PENDING
    return replace(verdict, status=Status.INCONCLUSIVE, because=NOT_JUDGED) if is_open else verdict


def _recovery(context: JudgeContext, steps: list[StepResult], horizon: float) -> tuple[Verdict, ...]:
    """Verdicts on the steady state within ``recovery.within`` after the last return or undo.

    They count from the last proof on: before it, the steady state may not have been lost yet.
    """
    spec = context.experiment.spec
    if spec.recovery is None:
        return ()
    names = [e.title for e in spec.steady_state]
    ends = [s.returned if s.returned is not None else s.begin for s in context.match_result.steps]
    known = [t for t in ends if t is not None]
    if len(known) < len(ends):
        status, because = Status.PENDING, "a step has not happened"
        if not context.live:
            status, because = Status.INCONCLUSIVE, with_remedy(because, "a timeline that has all steps")
        return tuple(Verdict(f"recovery: {n}", "recovery", status, because) for n in names)
    undone = [entry.t for entry, record in context.timeline.actions if record.phase == ActionPhase.UNDONE]
    base = max([*known, *undone])
    proofs = [context.timeline.entries.time(seq) for s in steps for seq in s.evidence[-1:]]
    start = max([base, *proofs])
    seconds = parse_duration(spec.recovery.within)
    slack = recorded_slack(context.timeline) if spec.recovery.timing == "loose" else 1.0
    deadlines = sorted({max(base + seconds, start), max(base + seconds * slack, start)})
    verdicts = (_recovered(e, context, start, deadlines, horizon) for e in spec.steady_state)
    return tuple(replace(v, name=f"recovery: {v.name}", bound=(v.deadline or deadlines[-1]) - base) for v in verdicts)


def _recovered(
    expectation: Expectation, context: JudgeContext, start: float, deadlines: Sequence[float], horizon: float
) -> Verdict:
    """The verdict at the first of ``deadlines`` at which it held, else at the last."""
    *earlier, last = deadlines
    verdicts = (evaluate_recovery(expectation, context, start, deadline, horizon) for deadline in earlier)
    held = next((verdict for verdict in verdicts if verdict.status is Status.HELD), None)
    return held or evaluate_recovery(expectation, context, start, last, horizon)


def _notes(context: JudgeContext, foreign: ForeignEffect, moved: Sequence[str]) -> list[str]:
    truncated = [
        f"the recording is truncated: {b.reason}"
        for b in context.timeline.blind_windows
        if b.source == TRUNCATED_RECORDING
    ]
    mapped = [
        f"step {s.step.name} is judged on the recorded action {s.action}"
        for s in context.match_result.steps
        if s.action != s.step.action
    ]
    overridden = [f"{PREFLIGHT_OVERRIDDEN}: {text}" for text in meta_texts(context.timeline, OVERRIDDEN)]
    warnings = [f"preflight warning: {text}" for text in meta_texts(context.timeline, WARNINGS)]
    unmatched = context.match_result.unmatched_actions
    others = map(foreign.describe, foreign.faults)
    slack = recorded_slack(context.timeline)
    slow = [f"slack {slack:g}: deadlines with timing: loose are that much longer"] if slack > 1 else []
    clocks = clock_notes(context.timeline)
    late = currency_notes(context.experiment, context.timeline)
    return [*others, *moved, *overridden, *slow, *warnings, *truncated, *late, *mapped, *unmatched, *clocks]
