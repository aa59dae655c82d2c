"""The judge: the result of an experiment on a timeline, of a recording, a finished run or a live run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chaos.judge.addresses import address_changes
from chaos.judge.clocks import clock_notes
from chaos.judge.context import JudgeContext, Options, bind
from chaos.judge.currency_notes import currency_notes, relevant_resources
from chaos.judge.deadlines import recorded_slack
from chaos.judge.evaluate import evaluate, evaluate_at, evaluate_recovery
from chaos.judge.foreign_effect import ForeignEffect
from chaos.judge.foreign_faults import foreign_faults
from chaos.judge.headline import headline
from chaos.judge.live_state import LiveState
from chaos.judge.phrasing import with_remedy
from chaos.judge.proof import prove, unproven_reason
from chaos.judge.requires import unmet_requirements
from chaos.model.assertion import WatchingAssertion
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit
from chaos.model.experiment import Expectation, Experiment
from chaos.model.recording import LOCK_LOSS, OVERRIDDEN, TRUNCATED_RECORDING, WARNINGS, ActionPhase
from chaos.model.registry import PluginRegistry
from chaos.model.result import RESULT_VERSION, RunResult, StepResult
from chaos.model.timeline import Timeline
from chaos.model.verdict import Status, Verdict, worst

_OVERRIDDEN = "preflight check failed and was overridden with --anyway"
_EXIT = {Status.HELD: Exit.HELD, Status.VIOLATED: Exit.VIOLATED}


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """All verdicts. ``invalidated_by``: why the run proves nothing about the cluster, or ""."""

    steps: list[StepResult]
    steady: tuple[Verdict, ...]
    hypothesis: tuple[Verdict, ...]
    abort: tuple[Verdict, ...]
    recovery: tuple[Verdict, ...]
    foreign: ForeignEffect
    invalidated_by: str
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
    context = bind(experiment, timeline, registry, options or Options(), live, state.deadlines)
    return _result(context, _judge(context, max(now or timeline.end, timeline.end), state))


def _result(context: JudgeContext, judged: _Verdicts) -> RunResult:
    experiment, timeline = context.experiment, context.timeline
    moved = address_changes(timeline, context.match_result.nodes)
    return RunResult(
        version=RESULT_VERSION,
        run=str(timeline.meta.get("run", "")),
        experiment=experiment.metadata.name,
        title=experiment.spec.title,
        status=judged.status,
        exit_code=int(_EXIT.get(judged.status, Exit.INCONCLUSIVE)),
        headline=_headline(judged, context.match_result.nodes),
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
    )


def _foreign_effect(context: JudgeContext) -> ForeignEffect:
    nodes, namespace = context.match_result.nodes, context.namespace
    return ForeignEffect(context, foreign_faults(context.timeline, context.registry, nodes, namespace), evaluate)


def _headline(judged: _Verdicts, nodes: tuple[str, ...]) -> str:
    return headline(judged.status, (*judged.hypothesis, *judged.recovery), judged.invalidated_by, nodes)


def steady_state(context: JudgeContext, t: float) -> tuple[Verdict, ...]:
    """Verdicts on the steady state at one moment."""
    return tuple(evaluate_at(e, context, t) for e in context.experiment.spec.steady_state)


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
    hypothesis = tuple(evaluate(e, context, horizon) for e in spec.hypothesis)
    abort = tuple(evaluate(e, context, horizon, from_begin=True) for e in spec.abort)
    recovery = _recovery(context, steps, horizon)
    invalidated_by = _invalidation_reason(context, steps, steady)
    if invalidated_by and not context.live:
        hypothesis = tuple(_invalidate(v, invalidated_by) for v in hypothesis)
        recovery = tuple(_invalidate(v, invalidated_by) for v in recovery)
    if foreign.faults:
        hypothesis, recovery = foreign.on_hypotheses(hypothesis), foreign.on_recovery(recovery)
        invalidated_by = foreign.reason((*hypothesis, *recovery)) or invalidated_by
    if context.live:  # proofs may still follow, so single verdicts stand; but without proofs the run is not held
        undecided = Status.PENDING in [v.status for v in (*hypothesis, *recovery)]
        overall = Status.PENDING if undecided else Status.INCONCLUSIVE
        if invalidated_by:
            return _Verdicts(steps, steady, hypothesis, abort, recovery, foreign, invalidated_by, overall)
    aborted = next((v for v in abort if v.status is Status.VIOLATED), None)
    statuses = [v.status for v in (*hypothesis, *recovery)]
    if invalidated_by or aborted:
        statuses.append(Status.INCONCLUSIVE)
    if aborted and not invalidated_by and worst(statuses) is not Status.VIOLATED:
        invalidated_by = f"the run should have been aborted: {aborted.name}: {aborted.because}"
    return _Verdicts(steps, steady, hypothesis, abort, recovery, foreign, invalidated_by, worst(statuses))


def _is_received(context: JudgeContext, t: float) -> bool:
    """Whether nothing that is still to come is about the steady state before ``t``.

    Watches are proven current; an answer of Prometheus or of a slow probe may be about some time ago.
    """
    assertions = [context.registry.assertions.get(e.assert_ or "") for e in context.experiment.spec.steady_state]
    sources = relevant_resources(context.experiment, context.registry)
    proven = (t <= context.timeline.currency.until(source) < math.inf for source in sources)
    return all(isinstance(each, WatchingAssertion) for each in assertions) and all(proven)


def _steady_before(context: JudgeContext, begin: float) -> tuple[Verdict, ...]:
    """Steady state just before the first step. Entries at the moment of its begin count by their order."""
    before = steady_state(context, math.nextafter(begin, -math.inf))
    then = steady_state(context, begin)
    first = min(entry.seq for entry, _ in context.timeline.actions if entry.t == begin)
    return tuple(
        t if b.status is not Status.HELD and t.status is Status.HELD and max(t.evidence, default=first) < first else b
        for b, t in zip(before, then, strict=True)
    )


def _invalidation_reason(context: JudgeContext, steps: list[StepResult], steady: Sequence[Verdict]) -> str:
    """Why the observations after the fault prove nothing about the cluster, or ""."""
    if overridden := _overridden_findings(context):
        return f"{_OVERRIDDEN}: {overridden[0]}"
    if losses := _meta_texts(context, LOCK_LOSS):
        return f"{losses[0]}: the run was not alone"
    reason = unproven_reason(steps)
    if reason:
        return reason
    requirements = unmet_requirements(context)
    if requirements:
        return requirements[0]
    not_steady = next((v for v in steady if v.status is not Status.HELD), None)
    if not_steady:
        return f"the steady state did not hold before the first step: {not_steady.name}: {not_steady.because}"
    return ""


def _overridden_findings(context: JudgeContext) -> list[str]:
    """Failed preflight checks that were overridden with --anyway, as recorded by the run."""
    return _meta_texts(context, OVERRIDDEN)


def _meta_texts(context: JudgeContext, key: str) -> list[str]:
    found = context.timeline.meta.get(key)
    return [str(text) for text in found] if isinstance(found, list | tuple) else []


def _invalidate(verdict: Verdict, reason: str) -> Verdict:
    remedy = "a run whose steps are proven, on nodes that meet its requires, from a steady state"
    return replace(verdict, status=Status.INCONCLUSIVE, because=with_remedy(f"not judged, because {reason}", remedy))


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
    proofs = [context.timeline.entries[seq].t for s in steps for seq in s.evidence[-1:]]
    start = max([base, *proofs])
    seconds = parse_duration(spec.recovery.within)
    slack = recorded_slack(context.timeline) if spec.recovery.timing == "loose" else 1.0
    deadlines = sorted({max(base + seconds, start), max(base + seconds * slack, start)})
    verdicts = (_recovered(e, context, start, deadlines, horizon) for e in spec.steady_state)
    return tuple(replace(v, name=f"recovery: {v.name}") for v in verdicts)


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
    overridden = [f"{_OVERRIDDEN}: {text}" for text in _overridden_findings(context)]
    warnings = [f"preflight warning: {text}" for text in _meta_texts(context, WARNINGS)]
    unmatched = context.match_result.unmatched_actions
    others = map(foreign.describe, foreign.faults)
    slack = recorded_slack(context.timeline)
    slow = [f"slack {slack:g}: deadlines with timing: loose are that much longer"] if slack > 1 else []
    clocks = clock_notes(context.timeline)
    late = currency_notes(context.experiment, context.registry, context.timeline)
    return [*others, *moved, *overridden, *slow, *warnings, *truncated, *late, *mapped, *unmatched, *clocks]
