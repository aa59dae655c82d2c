"""Why a run proves nothing about the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.core.action import ProofStatus
from chaos.core.recording import LOCK_LOSS, OVERRIDDEN
from chaos.core.result import StepResult
from chaos.core.text import on_node
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.proof import unproven_step
from chaos.verdicts.judge.requires import unmet_requirements
from chaos.verdicts.judge.sentences import shorten

PREFLIGHT_OVERRIDDEN = "preflight check failed and was overridden with --anyway"


@dataclass(frozen=True, slots=True)
class Invalidation:
    """Why the observations after the fault prove nothing: precisely, and in a sentence for people."""

    reason: str
    sentence: str


def invalidation(context: JudgeContext, steps: Sequence[StepResult], steady: Sequence[Verdict]) -> Invalidation | None:
    """Why the observations after the fault prove nothing about the cluster, or None."""
    if overridden := meta_texts(context.timeline, OVERRIDDEN):
        sentence = f"A failed preflight check was overridden with --anyway: {overridden[0].partition(':')[0]}"
        return Invalidation(f"{PREFLIGHT_OVERRIDDEN}: {overridden[0]}", shorten(sentence))
    if losses := meta_texts(context.timeline, LOCK_LOSS):
        return Invalidation(f"{losses[0]}: the run was not alone", "The run lost its lock, so it was not alone")
    if step := unproven_step(steps):
        return _unproven(step)
    if requirements := unmet_requirements(context):
        node, reason = requirements[0]
        return Invalidation(reason, shorten(f"Node {node} does not have what the experiment requires"))
    not_steady = next((v for v in steady if v.status is not Status.HELD), None)
    if not_steady:
        reason = f"the steady state did not hold before the first step: {not_steady.name}: {not_steady.because}"
        return Invalidation(reason, not_steady.sentence)
    return None


def meta_texts(timeline: Timeline, key: str) -> list[str]:
    """A list of texts that the run recorded about itself."""
    found = timeline.meta.get(key)
    return [str(text) for text in found] if isinstance(found, list | tuple) else []


def _unproven(step: StepResult) -> Invalidation:
    if step.begin is None:
        return Invalidation(
            f"the step {step.step!r} is missing: {step.because}", shorten(f"Step {step.step} is not in the recording")
        )
    if step.proof_status is ProofStatus.DISPROVEN:
        reason = f"{on_node(f'{step.step!r} did not take effect', step.node)}: {step.because}"
        return Invalidation(reason, shorten(on_node(f"Step {step.step} did not take effect", step.node)))
    reason = f"nothing proves that {on_node(f'{step.step!r} took effect', step.node)}: {step.because}"
    return Invalidation(reason, shorten(f"No proof that step {on_node(f'{step.step} took effect', step.node)}"))
