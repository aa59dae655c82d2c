"""Whether the steps of a method really took effect."""

from __future__ import annotations

from chaos.judge.step_matching import StepMatch
from chaos.model.action import Proof, ProofResult, ProofStatus, StepRun
from chaos.model.evidence import is_number
from chaos.model.recording import ActionPhase
from chaos.model.registry import PluginRegistry
from chaos.model.result import Phases, StepResult
from chaos.model.text import on_node
from chaos.model.timeline import Timeline


def prove(step: StepMatch, timeline: Timeline, catalogue: PluginRegistry) -> list[StepResult]:
    """One result per node; one without node or begin for a step that the timeline lacks."""
    if step.missing:
        because = f"the recording has {step.missing}"
        return [StepResult(step.step.name, step.action, "", None, None, "", "", ProofStatus.UNPROVEN, because)]
    return [
        _step_result(step, run, command, proof_result(step, run, timeline, catalogue), timeline)
        for run, command in zip(step.runs, step.commands, strict=True)
    ]


def proof_result(step: StepMatch, run: StepRun, timeline: Timeline, catalogue: PluginRegistry) -> ProofResult:
    """The strongest proof that shows anything decides.

    A recorded action that is not in the catalogue is judged by the proofs of the step's own action, then by what
    was recorded as proved.
    """
    known = catalogue.actions.get(run.action)
    action = known or catalogue.actions.get(step.step.action)
    silent = []
    for proof in action.proofs if action else ():
        found = _run_check(proof, timeline, run)
        if found.status is not ProofStatus.UNPROVEN:
            weak = found.weak or proof.weak
            return ProofResult(found.status, found.because, found.evidence, weak)
        silent.append(found.because)
    if known is None:
        recorded = _recorded_result(run, timeline)
        if recorded:
            return recorded
    return ProofResult(ProofStatus.UNPROVEN, "; ".join(dict.fromkeys(silent)) or "nothing was recorded that proves it")


def _run_check(proof: Proof, timeline: Timeline, run: StepRun) -> ProofResult:
    try:
        return proof.check(timeline, run)
    except Exception as error:  # noqa: BLE001 - a proof that fails has shown nothing; the step stays unproven
        return ProofResult(ProofStatus.UNPROVEN, f"the proof {proof.name} failed: {type(error).__name__}: {error}")


def _recorded_result(run: StepRun, timeline: Timeline) -> ProofResult | None:
    """What a "proved" line with evidence says of an action that nodefall does not know."""
    if not run.evidence:
        return None
    told = ", ".join(f"{name} = {value}" for name, value in run.evidence.items())
    seqs = (
        entry.seq
        for entry, record in timeline.actions
        if record.phase == ActionPhase.PROVED and entry.node == run.node and entry.type == run.action and entry.t >= run.begin
    )
    return ProofResult(ProofStatus.PROVEN, f"recorded as proved ({told})", tuple(seqs)[:1])


def _step_result(step: StepMatch, run: StepRun, command: str, found: ProofResult, timeline: Timeline) -> StepResult:
    return StepResult(
        step=step.step.name,
        action=run.action,
        node=run.node,
        begin=run.begin,
        returned=run.returned,
        delivery=run.outcome.delivery if run.outcome else "",
        command=command,
        proof_status=found.status,
        because=found.because,
        evidence=found.evidence,
        weak=found.weak,
        phases=_phases(run, found, timeline),
    )


def _phases(run: StepRun, found: ProofResult, timeline: Timeline) -> Phases:
    """What our engine recorded; others record what they like."""
    known = {name: run.phases.get(name) for name in ("armed", "fired", "began")}
    times = {name: t if is_number(t) else None for name, t in known.items()}
    seen = [timeline.entries[seq].t for seq in found.evidence if seq < len(timeline.entries)]
    return Phases(**times, proven=max(seen, default=None) if found.status is ProofStatus.PROVEN else None)


def unproven_reason(steps: list[StepResult]) -> str:
    """Why the hypotheses cannot be judged, in one clause; "" if every step is proven."""
    for step in steps:
        if step.begin is None:
            return f"the step {step.step!r} is missing: {step.because}"
    for step in steps:
        if step.proof_status is ProofStatus.DISPROVEN:
            return f"{on_node(f'{step.step!r} did not take effect', step.node)}: {step.because}"
    for step in steps:
        if step.proof_status is ProofStatus.UNPROVEN:
            return f"nothing proves that {on_node(f'{step.step!r} took effect', step.node)}: {step.because}"
    return ""
