"""The headline of a result, and why a run proves nothing about the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.core.action import ProofStatus
from chaos.core.duration import format_duration, satisfies
from chaos.core.recording import INTERRUPTED_AT, LOCK_LOSS, OVERRIDDEN
from chaos.core.result import StepResult
from chaos.core.text import on_node
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.facts import Facts
from chaos.verdicts.judge.proof import unproven_step
from chaos.verdicts.judge.sentences import shorten

NOT_JUDGED = "not judged: the run was interrupted first"
PREFLIGHT_OVERRIDDEN = "preflight check failed and was overridden with --anyway"


@dataclass(frozen=True, slots=True)
class Headline:
    """``1 of 8 violated``, and what happened."""

    tally: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.tally}: {self.sentence}" if self.sentence else self.tally


def headline(
    status: Status, verdicts: Sequence[Verdict], invalidation: Invalidation | None, step: str, nodes: Sequence[str]
) -> Headline:
    """Headline of a result: why it is inconclusive, otherwise the first verdict with the status of the result.

    ``step``: the first step, which ran on ``nodes``.
    """
    if invalidation and status is Status.INCONCLUSIVE:
        return Headline(_tally(status, verdicts), invalidation.sentence)
    found = next((v.sentence for v in verdicts if v.shown is status), "")
    if status is Status.HELD and len(verdicts) > 1:
        start = "Apart from known deviations, the" if _number(verdicts, Status.KNOWN) else "The"
        found = shorten(f"{start} cluster behaved as expected after {step}{_where(nodes)}")
    return Headline(_tally(status, verdicts), found)


def _tally(status: Status, verdicts: Sequence[Verdict]) -> str:
    """``1 of 8 violated``. Violations that are known deviations are counted separately."""
    number, known = _number(verdicts, status), _number(verdicts, Status.KNOWN)
    apart = f", {known} violated as known" if known else ""
    if number or (status is Status.HELD and known):
        return f"{number} of {len(verdicts)} {status}{apart}"
    return f"{status}, with {_number(verdicts, Status.HELD)} of {len(verdicts)} held{apart}"


def _number(verdicts: Sequence[Verdict], status: Status) -> int:
    return sum(verdict.shown is status for verdict in verdicts)


def _where(nodes: Sequence[str]) -> str:
    return f" on {nodes[0]}" if len(nodes) == 1 else f" on {len(nodes)} nodes" if nodes else ""


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
        reason = f"{losses[0]}: another run may have interfered"
        return Invalidation(reason, "The run lost its lock, so another run may have interfered")
    begun = steps if interruption(context) is None else [step for step in steps if step.begin is not None]
    if step := unproven_step(begun):
        return _unproven(step)
    if requirements := unmet_requirements(context):
        node, reason = requirements[0]
        return Invalidation(reason, shorten(f"Node {node} does not meet the requirements of the experiment"))
    not_steady = next((v for v in steady if v.status is not Status.HELD), None)
    if not_steady:
        reason = f"the steady state did not hold before the first step: {not_steady.name}: {not_steady.because}"
        return Invalidation(reason, not_steady.sentence)
    return None


def interruption(context: JudgeContext) -> float | None:
    """When someone stopped the run, by the recording of a finished run; None if it went to its end."""
    at = context.timeline.meta.get(INTERRUPTED_AT)
    return None if at is None or context.live else float(at)


def open_questions(verdicts: Sequence[Verdict]) -> Invalidation | None:
    """Why an interrupted run is inconclusive as a whole, if anything was left open."""
    is_open = any(verdict.because == NOT_JUDGED for verdict in verdicts)
    return Invalidation(NOT_JUDGED, "The run was interrupted before every verdict was decided") if is_open else None


def meta_texts(timeline: Timeline, key: str) -> list[str]:
    """A list of texts that the run recorded about itself."""
    found = timeline.meta.get(key)
    return [str(text) for text in found] if isinstance(found, list | tuple) else []


def _unproven(step: StepResult) -> Invalidation:
    if step.begin is None:
        return Invalidation(
            f"step {step.step!r} is missing: {step.because}", shorten(f"Step {step.step} is not in the recording")
        )
    if step.proof_status is ProofStatus.DISPROVEN:
        reason = f"{on_node(f'{step.step!r} did not take effect', step.node)}: {step.because}"
        return Invalidation(reason, shorten(on_node(f"Step {step.step} did not take effect", step.node)))
    reason = f"nothing proves that {on_node(f'{step.step!r} took effect', step.node)}: {step.because}"
    return Invalidation(reason, shorten(f"No proof that step {on_node(f'{step.step} took effect', step.node)}"))


def unmet_requirements(context: JudgeContext) -> list[tuple[str, str]]:
    """The node and a description, for each requirement that is known not to be met; unknown values are no failure."""
    return [
        (node, text)
        for section, tests in context.experiment.spec.requires.items()
        for key, test in tests.items()
        for node in context.match_result.nodes
        if (text := _check_requirement(context, node, f"{section}.{key}", test))
    ]


def _check_requirement(context: JudgeContext, node: str, name: str, test: str) -> str:
    facts = Facts(context, (node,), context.timeline.end)
    value = facts.lookup(name)
    if value is None or satisfies(value, test):
        return ""
    return f"the experiment requires {name} {test}, but {node} has {format_duration(value)}"
