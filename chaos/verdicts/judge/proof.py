"""Proofs that the steps of a method took effect."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from chaos.core.action import AnyAction, Proof, ProofResult, ProofStatus, StepRun
from chaos.core.evidence import is_number
from chaos.core.kube import operating_system
from chaos.core.recording import ActionPhase
from chaos.core.registry import PluginRegistry
from chaos.core.result import Phases, StepResult
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.step_matching import StepMatch

_log = logging.getLogger(__name__)


def prove(step: StepMatch, timeline: Timeline, registry: PluginRegistry) -> list[StepResult]:
    """One result per node; a single one without node and begin if the timeline lacks the step."""
    if step.missing:
        because = f"the recording has {step.missing}"
        return [StepResult(step.step.name, step.action, "", None, None, "", "", ProofStatus.UNPROVEN, because)]
    return [
        _step_result(step, run, command, proof_result(step, run, timeline, registry), timeline)
        for run, command in zip(step.runs, step.commands, strict=True)
    ]


def proof_result(step: StepMatch, run: StepRun, timeline: Timeline, registry: PluginRegistry) -> ProofResult:
    """Result of the first proof, strongest first, that proves or disproves the effect.

    A recorded action that is not in the registry is judged by the proofs of the step's action, then by the evidence
    recorded with phase "proved".
    """
    known = _form(run.action, run.node, timeline, registry)
    action = known or _form(step.step.action, run.node, timeline, registry)
    undecided = []
    for proof in action.proofs if action else ():
        result = _run_check(proof, timeline, run)
        if result.status is not ProofStatus.UNPROVEN:
            return ProofResult(result.status, result.because, result.evidence, result.weak or proof.weak)
        undecided.append(result.because)
    if known is None:
        recorded = _recorded_result(run, timeline)
        if recorded:
            return recorded
    return ProofResult(ProofStatus.UNPROVEN, "; ".join(dict.fromkeys(undecided)) or "no proof was recorded")


def _form(name: str, node: str, timeline: Timeline, registry: PluginRegistry) -> AnyAction | None:
    """The action's form for the operating system that the recorded Node reports; None if it is not installed."""
    if name not in registry.actions:
        return None
    versions = timeline.nodes.get(node)
    return registry.action_on(name, operating_system(versions.last.object) if versions else "linux")


def _run_check(proof: Proof, timeline: Timeline, run: StepRun) -> ProofResult:
    try:
        return proof.check(timeline, run)
    except Exception as error:  # noqa: BLE001 - a bug in a proof proves nothing: the step stays unproven
        _log.exception("proof %s of step %s failed", proof.name, run.step)
        return ProofResult(ProofStatus.UNPROVEN, f"the proof {proof.name} failed: {type(error).__name__}: {error}")


def _recorded_result(run: StepRun, timeline: Timeline) -> ProofResult | None:
    """Result from a recorded entry of phase "proved" with evidence, for an action that is not in the registry."""
    if not run.evidence:
        return None
    evidence = ", ".join(f"{name} = {value}" for name, value in run.evidence.items())
    seqs = (
        entry.seq
        for entry, record in timeline.actions
        if record.phase == ActionPhase.PROVED
        and entry.node == run.node
        and entry.type == run.action
        and entry.t >= run.begin
    )
    return ProofResult(ProofStatus.PROVEN, f"recorded as proved ({evidence})", tuple(seqs)[:1])


def _step_result(step: StepMatch, run: StepRun, command: str, result: ProofResult, timeline: Timeline) -> StepResult:
    return StepResult(
        step=step.step.name,
        action=run.action,
        node=run.node,
        begin=run.begin,
        returned=run.returned,
        delivery=run.outcome.delivery if run.outcome else "",
        command=command,
        proof_status=result.status,
        because=result.because,
        evidence=result.evidence,
        weak=result.weak,
        phases=_phases(run, result, timeline),
    )


def _phases(run: StepRun, result: ProofResult, timeline: Timeline) -> Phases:
    """Times of the phases; None where another recorder wrote something else than a number."""
    known = {name: run.phases.get(name) for name in ("armed", "fired", "began")}
    times = {name: t if is_number(t) else None for name, t in known.items()}
    proven = [timeline.entries.time(seq) for seq in result.evidence if seq < len(timeline.entries)]
    return Phases(**times, proven=max(proven, default=None) if result.status is ProofStatus.PROVEN else None)


def unproven_step(steps: Sequence[StepResult]) -> StepResult | None:
    """The step because of which the hypotheses cannot be judged: a missing, disproven or unproven step, in this
    order.
    """
    missing = [step for step in steps if step.begin is None]
    disproven = [step for step in steps if step.proof_status is ProofStatus.DISPROVEN]
    unproven = [step for step in steps if step.proof_status is ProofStatus.UNPROVEN]
    return next(iter([*missing, *disproven, *unproven]), None)
