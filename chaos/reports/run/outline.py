"""Parts of a result that all renderers show, in the same order and wording; and what its verdicts measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from chaos.core.duration import format_duration
from chaos.core.result import RunResult, Unnoticed
from chaos.core.text import on_node
from chaos.core.timeline import Entry, Timeline
from chaos.core.verdict import Status, ValueLimit, Verdict
from chaos.reports.run.describe import describe

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
    """Origin of offsets in epoch seconds: the start of the first step, or the start of the run without steps."""
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


def unnoticed_text(each: Unnoticed) -> str:
    """``unnoticed for 45s: worker-2 and 3 pods on it were reported Ready, but the machine was off``."""
    seconds = format_duration(round(each.seconds, 1))
    end = "" if each.is_over else ", until the end of the recording"
    verb = "was" if each.was_ready + each.pods == 1 else "were"
    where = f" on {each.node}" if not each.was_ready else " on it" if each.pods else ""
    return f"unnoticed for {seconds}{end}: {ready_names(each)}{where} {verb} reported Ready, but the machine was off"


def ready_names(each: Unnoticed) -> str:
    """What was reported Ready while the machine was off: ``worker-2 and 3 pods``."""
    pods = f"{each.pods} pod{'' if each.pods == 1 else 's'}" if each.pods else ""
    return " and ".join(filter(None, (each.node if each.was_ready else "", pods)))


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


def cited_seqs(result: RunResult) -> list[int]:
    """Sequence numbers of all entries that verdicts, proofs and unnoticed times cite, sorted."""
    proofs, wrong = (s.evidence for s in result.steps), (each.evidence for each in result.unnoticed)
    citations = chain((v.evidence for v in verdicts(result)), proofs, wrong)
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


_EPSILON = 1e-6  # seconds; sums of floats


@dataclass(frozen=True, slots=True)
class Duration:
    """``seconds`` until an expectation came true (``operator`` within) or failed (never, always).

    ``is_exceeded``: it had not come true after ``seconds``, its bound. ``bound``: seconds until the deadline.
    """

    operator: str
    seconds: float
    bound: float
    is_exceeded: bool = False


def measured_duration(verdict: Verdict) -> Duration | None:
    """The duration that a verdict measured; None for one that measured nothing.

    These measure nothing: an inconclusive verdict, one on a moment or an order, and a never or always that held to its
    end. With a deadline for each pod, it is the last pod's that came true, or the one's that did not.
    """
    if verdict.at is None or verdict.start is None or verdict.status not in (Status.HELD, Status.VIOLATED):
        return None
    operator, seconds = operator_of(verdict), max(0.0, verdict.at - verdict.start)
    bound = seconds if verdict.deadline is None else max(0.0, verdict.deadline - verdict.start)
    is_held = verdict.status is Status.HELD
    if not operator or (operator != "within" and is_held):
        return None
    return Duration(operator, seconds, bound, is_exceeded=operator == "within" and not is_held)


def operator_of(verdict: Verdict) -> str:
    """The temporal operator. Of a result of 0.1.0, which has none, what the times allow: only within holds early."""
    if verdict.operator or verdict.at is None or verdict.start is None or verdict.deadline is None:
        return verdict.operator
    if verdict.deadline <= verdict.start or verdict.assertion == "order":
        return ""
    is_early = verdict.at < verdict.deadline - _EPSILON
    return "within" if is_early == (verdict.status is Status.HELD) else "never"
