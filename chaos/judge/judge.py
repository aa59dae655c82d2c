"""An experiment judged on a timeline: a recording, a finished run, or a run as far as it has come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chaos.judge.clocks import clock_notes
from chaos.judge.context import JudgeContext, Options, bind
from chaos.judge.evaluate import evaluate, evaluate_at, evaluate_recovery
from chaos.judge.headline import headline
from chaos.judge.phrasing import with_remedy
from chaos.judge.proof import prove, unproven_reason
from chaos.judge.requires import unmet_requirements
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit
from chaos.model.experiment import Experiment
from chaos.model.recording import OVERRIDDEN, TRUNCATED_RECORDING, WARNINGS, ActionPhase
from chaos.model.registry import PluginRegistry
from chaos.model.result import RESULT_VERSION, RunResult, StepResult
from chaos.model.timeline import Timeline
from chaos.model.verdict import Status, Verdict, worst

_EXIT = {Status.HELD: Exit.HELD, Status.VIOLATED: Exit.VIOLATED}


@dataclass(frozen=True, slots=True)
class _Verdicts:
    steps: list[StepResult]
    steady: tuple[Verdict, ...]
    hypothesis: tuple[Verdict, ...]
    abort: tuple[Verdict, ...]
    recovery: tuple[Verdict, ...]
    invalidated_by: str
    status: Status


def judge(
    experiment: Experiment,
    timeline: Timeline,
    catalogue: PluginRegistry,
    options: Options | None = None,
    live: bool = False,
    now: float | None = None,
) -> RunResult:
    """Judge everything. ``live``: the timeline still grows, and ``now`` is how far it reaches (default: its end).

    While live, what may still be decided is pending, and proofs may still come.
    """
    context = bind(experiment, timeline, catalogue, options or Options(), live)
    horizon = timeline.end if now is None else max(now, timeline.end)
    judged = _judge(context, horizon)
    nodes = tuple(dict.fromkeys(n for names in context.match_result.targets.values() for n in names))
    return RunResult(
        version=RESULT_VERSION,
        run=str(timeline.meta.get("run", "")),
        experiment=experiment.metadata.name,
        title=experiment.spec.title,
        status=judged.status,
        exit_code=int(_EXIT.get(judged.status, Exit.INCONCLUSIVE)),
        headline=headline(judged.status, (*judged.hypothesis, *judged.recovery), judged.invalidated_by, nodes),
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
        notes=tuple(_notes(context)),
        facts=dict(context.options.facts),
        started_by=str(timeline.meta.get("by", "")),
        nodefall_version=str(timeline.meta.get("nodefall", "")),
        plan_hash=str(timeline.meta.get("planHash", "")),
    )


def steady_state(context: JudgeContext, t: float) -> tuple[Verdict, ...]:
    """The steady state at one moment."""
    return tuple(evaluate_at(e, context, t) for e in context.experiment.spec.steady_state)


def _judge(context: JudgeContext, horizon: float) -> _Verdicts:
    spec = context.experiment.spec
    steps = [r for s in context.match_result.steps for r in prove(s, context.timeline, context.registry)]
    begin = context.match_result.steps[0].begin
    steady = _steady_before(context, begin) if begin is not None else ()
    hypothesis = tuple(evaluate(e, context, horizon) for e in spec.hypothesis)
    abort = tuple(evaluate(e, context, horizon) for e in spec.abort)
    recovery = _recovery(context, steps, horizon)
    spoiled = _invalidation_reason(context, steps, steady)
    if context.live:  # proofs may still come, so verdicts stand as they are; but the whole counts for nothing without
        undecided = Status.PENDING in [v.status for v in (*hypothesis, *recovery)]
        whole = Status.PENDING if undecided else Status.INCONCLUSIVE
        if spoiled:
            return _Verdicts(steps, steady, hypothesis, abort, recovery, spoiled, whole)
    elif spoiled:
        hypothesis = tuple(_invalidate(v, spoiled) for v in hypothesis)
        recovery = tuple(_invalidate(v, spoiled) for v in recovery)
    aborted = next((v for v in abort if v.status is Status.VIOLATED), None)
    statuses = [v.status for v in (*hypothesis, *recovery)]
    if spoiled or aborted:
        statuses.append(Status.INCONCLUSIVE)
    if aborted and not spoiled and worst(statuses) is not Status.VIOLATED:
        spoiled = f"the run should have been aborted: {aborted.name}: {aborted.because}"
    return _Verdicts(steps, steady, hypothesis, abort, recovery, spoiled, worst(statuses))


def _steady_before(context: JudgeContext, begin: float) -> tuple[Verdict, ...]:
    """Just before the first step: what was seen in the very instant of its begin counts by its order."""
    before = steady_state(context, math.nextafter(begin, -math.inf))
    then = steady_state(context, begin)
    first = min(entry.seq for entry, _ in context.timeline.actions if entry.t == begin)
    return tuple(
        t if b.status is not Status.HELD and t.status is Status.HELD and max(t.evidence, default=first) < first else b
        for b, t in zip(before, then, strict=True)
    )


def _invalidation_reason(context: JudgeContext, steps: list[StepResult], steady: Sequence[Verdict]) -> str:
    """Why nothing of what was seen after the fault says anything about the cluster, or ""."""
    if refused := _overridden_findings(context):
        return f"preflight refused, and --anyway set it aside: {refused[0]}"
    why = unproven_reason(steps)
    if why:
        return why
    requirements = unmet_requirements(context)
    if requirements:
        return requirements[0]
    not_steady = next((v for v in steady if v.status is not Status.HELD), None)
    if not_steady:
        return f"the steady state did not hold before the first step: {not_steady.name}: {not_steady.because}"
    return ""


def _overridden_findings(context: JudgeContext) -> list[str]:
    """Refusals of preflight that somebody set aside, as the run has recorded them."""
    return _meta_texts(context, OVERRIDDEN)


def _meta_texts(context: JudgeContext, key: str) -> list[str]:
    found = context.timeline.meta.get(key)
    return [str(text) for text in found] if isinstance(found, list | tuple) else []


def _invalidate(verdict: Verdict, why: str) -> Verdict:
    needs = "a run whose steps are proven, on nodes that fit its requires and in a steady state"
    return replace(verdict, status=Status.INCONCLUSIVE, because=with_remedy(f"not judged, because {why}", needs))


def _recovery(context: JudgeContext, steps: list[StepResult], horizon: float) -> tuple[Verdict, ...]:
    """Steady state again within ``recovery.within`` of the last return or undo.

    It is looked at from the moment of the last proof on: before that it may only not have been lost yet.
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
            status, because = Status.INCONCLUSIVE, with_remedy(because, "a timeline in which all steps were done")
        return tuple(Verdict(f"recovery: {n}", "recovery", status, because) for n in names)
    undone = [entry.t for entry, record in context.timeline.actions if record.phase == ActionPhase.UNDONE]
    base = max([*known, *undone])
    proofs = [context.timeline.entries[seq].t for s in steps for seq in s.evidence[-1:]]
    start = max([base, *proofs])
    deadline = max(base + parse_duration(spec.recovery.within), start)
    verdicts = (evaluate_recovery(e, context, start, deadline, horizon) for e in spec.steady_state)
    return tuple(replace(v, name=f"recovery: {v.name}") for v in verdicts)


def _notes(context: JudgeContext) -> list[str]:
    cut = [
        f"the recording is cut off: {b.reason}"
        for b in context.timeline.blind_windows
        if b.source == TRUNCATED_RECORDING
    ]
    mapped = [
        f"the step {s.step.name} is judged on the recorded action {s.action}"
        for s in context.match_result.steps
        if s.action != s.step.action
    ]
    aside = [f"preflight refused, and --anyway set it aside: {text}" for text in _overridden_findings(context)]
    warned = [f"preflight warned: {text}" for text in _meta_texts(context, WARNINGS)]
    return [*aside, *warned, *cut, *mapped, *context.match_result.unmatched_actions, *clock_notes(context.timeline)]
