"""Parts of a result that all renderers show, in the same order and wording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from chaos.core.action import ProofStatus
from chaos.core.duration import format_duration
from chaos.core.result import RunResult, StepResult
from chaos.core.text import on_node
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import ValueLimit, Verdict
from chaos.reports.run.describe import describe

STEP_SYMBOLS = {ProofStatus.PROVEN: "✓", ProofStatus.DISPROVEN: "✗", ProofStatus.UNPROVEN: "?"}
SIMULATED = "This was a simulated cluster: it shows what the lab models, not what your cluster does."


@dataclass(frozen=True, slots=True)
class Section:
    """Verdicts of one part of the experiment; ``key`` is a single word."""

    key: str
    title: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One entry that a verdict or a proof cites; ``t`` in epoch seconds, None if the timeline lacks the entry."""

    seq: int
    t: float | None
    kind: str
    node: str
    what: str


def sections(result: RunResult) -> tuple[Section, ...]:
    """Parts of the experiment that have verdicts, in the order of a run."""
    parts = (
        Section("steady", "Steady state", result.steady_state),
        Section("hypothesis", "Hypothesis", result.hypothesis),
        Section("abort", "Abort conditions", result.abort),
        Section("recovery", "Recovery", result.recovery),
    )
    return tuple(section for section in parts if section.verdicts)


def verdicts(result: RunResult) -> Iterator[Verdict]:
    """All verdicts, in the order of a run."""
    return chain.from_iterable(section.verdicts for section in sections(result))


def value_limits(result: RunResult) -> tuple[ValueLimit, ...]:
    """The limits of measured values, of all verdicts in their order."""
    return tuple(limit for verdict in verdicts(result) for limit in verdict.limits)


def name_of(result: RunResult) -> str:
    """Name of the experiment, with a note if the cluster was simulated."""
    return result.experiment + (" (simulated)" if result.simulated else "")


def origin(result: RunResult) -> float:
    """Origin of offsets in epoch seconds: the begin of the first step, or the start of the run without steps."""
    return min((s.begin for s in result.steps if s.begin is not None), default=result.started)


def format_offset(t: float | None, start: float) -> str:
    """Format ``t`` relative to ``start``, like ``+12.3s``; "" for an unknown time."""
    if t is None:
        return ""
    offset = round(t - start, 1)
    return f"-{format_duration(-offset)}" if offset < 0 else f"+{format_duration(offset)}"


def format_utc(t: float) -> str:
    """Format epoch seconds like ``2026-11-21 03:35:37 UTC``; "unknown" outside the calendar."""
    try:
        return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def assumed_facts(result: RunResult) -> tuple[str, ...]:
    """Facts taken from a default, as ``name=value``, without duplicates."""
    return tuple(dict.fromkeys(fact for verdict in verdicts(result) for fact in verdict.assumed_facts))


def pending_undo(result: RunResult) -> tuple[str, ...]:
    """Undos without proof, one sentence each."""
    return tuple(f"{u.step} ({on_node(u.action, u.node)}): {u.because}" for u in result.undo if not u.proven)


def run_details(result: RunResult) -> list[tuple[str, str]]:
    """Circumstances of the run, as (name, value)."""
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
    """Describe whether the step is proven to have taken effect."""
    return f"{step.proof_status}{' (weakly)' if step.weak else ''}: {step.because}"


PHASES = ("step", "node", "armed", "fired", "began on the host", "returned", "proven")


def phases(result: RunResult, start: float) -> list[tuple[str, ...]]:
    """A row of :data:`PHASES` for each node of the steps on several nodes, with milliseconds."""
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
    """Sequence numbers of all entries that verdicts and proofs cite, sorted."""
    citations = chain((v.evidence for v in verdicts(result)), (s.evidence for s in result.steps))
    return sorted(set(chain.from_iterable(citations)))


def evidence(result: RunResult, timeline: Timeline) -> dict[int, Evidence]:
    """All cited entries, by sequence number."""
    seqs = cited_seqs(result)
    entries = {entry.seq: entry for entry in timeline.entries.select(seqs)}
    return {seq: _evidence(seq, entries.get(seq)) for seq in seqs}


def _evidence(seq: int, entry: Entry | None) -> Evidence:
    if entry is None:
        return Evidence(seq, None, "", "", "not part of this timeline")
    return Evidence(seq, entry.t, entry.kind, entry.node, describe(entry))
