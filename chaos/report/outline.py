"""What all renderers say about a result, in the same order and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from chaos.model.action import ProofStatus
from chaos.model.duration import format_duration
from chaos.model.result import RunResult, StepResult
from chaos.model.text import on_node
from chaos.model.timeline import Entry, Timeline
from chaos.model.verdict import Verdict
from chaos.report.describe import describe

STEP_SYMBOLS = {ProofStatus.PROVEN: "✓", ProofStatus.DISPROVEN: "✗", ProofStatus.UNPROVEN: "?"}
SIMULATED = "This was a simulated cluster: it shows what the lab models, not what your cluster does."


@dataclass(frozen=True, slots=True)
class Section:
    """Verdicts of one part of the experiment; ``key`` is a word without spaces."""

    key: str
    title: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One entry that a verdict or a proof points to; ``t`` in epoch seconds, None if the timeline lacks it."""

    seq: int
    t: float | None
    kind: str
    node: str
    what: str


def sections(result: RunResult) -> tuple[Section, ...]:
    """The parts that have verdicts, in the order of a run."""
    every = (
        Section("steady", "Steady state", result.steady_state),
        Section("hypothesis", "Hypothesis", result.hypothesis),
        Section("abort", "Abort conditions", result.abort),
        Section("recovery", "Recovery", result.recovery),
    )
    return tuple(section for section in every if section.verdicts)


def verdicts(result: RunResult) -> Iterator[Verdict]:
    """All verdicts, in the order of a run."""
    return chain.from_iterable(section.verdicts for section in sections(result))


def name_of(result: RunResult) -> str:
    """The experiment's name; says so if the cluster was simulated."""
    return result.experiment + (" (simulated)" if result.simulated else "")


def origin(result: RunResult) -> float:
    """The moment that offsets count from: the first step's begin, or the start without one."""
    return min((s.begin for s in result.steps if s.begin is not None), default=result.started)


def format_offset(t: float | None, start: float) -> str:
    """``+12.3s`` after ``start``, "" for an unknown time."""
    if t is None:
        return ""
    shift = round(t - start, 1)
    return f"-{format_duration(-shift)}" if shift < 0 else f"+{format_duration(shift)}"


def format_utc(t: float) -> str:
    """``2026-11-21 03:35:37 UTC``; "unknown" outside the calendar."""
    try:
        return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def assumed_facts(result: RunResult) -> tuple[str, ...]:
    """Facts that were taken from a default, as ``name=value``, each once."""
    return tuple(dict.fromkeys(fact for verdict in verdicts(result) for fact in verdict.assumed_facts))


def pending_undo(result: RunResult) -> tuple[str, ...]:
    """Undos that are not proven, one sentence each."""
    return tuple(f"{u.step} ({on_node(u.action, u.node)}): {u.because}" for u in result.undo if not u.proven)


def run_details(result: RunResult) -> list[tuple[str, str]]:
    """How it was run, as (name, value)."""
    targets = "; ".join(f"{name}: {', '.join(nodes)}" for name, nodes in sorted(result.targets.items()))
    return [
        ("Run", result.run or "judged from a recording"),
        ("Run by", result.started_by or "unknown"),
        ("With", f"nodefall {result.nodefall_version}" if result.nodefall_version else "unknown"),
        ("Plan", f"sha256 {result.plan_hash}" if result.plan_hash else "unknown"),
        ("Cluster", ("simulated, " if result.simulated else "") + f"Kubernetes {result.kubernetes or 'unknown'}"),
        ("Cluster UID", result.cluster_uid or "unknown"),
        ("Targets", targets or "none"),
        ("Started", format_utc(result.started)),
        ("Lasted", format_duration(max(0.0, round(result.ended - result.started, 1)))),
        ("Exit code", str(result.exit_code)),
    ]


def step_text(step: StepResult) -> str:
    """What is known of whether the step took effect."""
    return f"{step.proof_status}{' (weakly)' if step.weak else ''}: {step.because}"


PHASES = ("step", "node", "armed", "fired", "began on the host", "returned", "proven")


def phases(result: RunResult, start: float) -> list[tuple[str, ...]]:
    """A row of :data:`PHASES` for each node of the steps that have more than one; milliseconds tell them apart."""
    nodes = Counter(step.step for step in result.steps)
    return [
        (
            step.step,
            step.node,
            *(
                _format_precise(t, start)
                for t in (step.phases.armed, step.phases.fired, step.phases.began, step.returned, step.phases.proven)
            ),
        )
        for step in result.steps
        if nodes[step.step] > 1
    ]


def _format_precise(t: float | None, start: float) -> str:
    return "" if t is None else f"{t - start:+.3f}s"


def cited_seqs(result: RunResult) -> list[int]:
    """Numbers of all entries that verdicts and proofs point to, sorted."""
    pointing = chain((v.evidence for v in verdicts(result)), (s.evidence for s in result.steps))
    return sorted(set(chain.from_iterable(pointing)))


def evidence(result: RunResult, timeline: Timeline) -> dict[int, Evidence]:
    """Everything that is pointed to, by number."""
    wanted = cited_seqs(result)
    chosen = set(wanted)
    entries = {entry.seq: entry for entry in timeline.entries if entry.seq in chosen}
    return {seq: _evidence(seq, entries.get(seq)) for seq in wanted}


def _evidence(seq: int, entry: Entry | None) -> Evidence:
    if entry is None:
        return Evidence(seq, None, "", "", "not part of this timeline")
    return Evidence(seq, entry.t, entry.kind, entry.node, describe(entry))
