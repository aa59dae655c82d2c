"""A series of runs of one experiment: seeds, when it ends, its exit code, and the distribution of its verdicts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaos.core.errors import Exit
from chaos.core.result import RunResult, StoredRun
from chaos.core.text import printable
from chaos.reports.history.trend import expectation_trends
from chaos.reports.history.trend_text import expectations_table
from chaos.reports.run.outline import SIMULATED

# From the gravest on: what needs someone, what cut the series short, then the verdicts.
_GRAVITY = (Exit.UNDO_PENDING, Exit.SIGTERM, Exit.SIGINT, Exit.VIOLATED, Exit.REFUSED, Exit.INCONCLUSIVE, Exit.HELD)


@dataclass(frozen=True, slots=True)
class SeriesRun:
    """One run of a series."""

    seed: int
    stored: StoredRun
    result: RunResult


@dataclass(frozen=True, slots=True)
class Series:
    """The runs so far, the oldest first. ``stopped``: why there are fewer than ``requested``, "" if there are not."""

    experiment: str
    requested: int
    seed: int
    runs: tuple[SeriesRun, ...]
    exit_code: int
    stopped: str = ""


def derived_seed(first: int, index: int) -> int:
    """The seed of the run at ``index`` (from 0) of a series: ``first`` itself, then 32 bits of its SHA-256."""
    if index == 0:
        return first
    return int.from_bytes(hashlib.sha256(f"{first}/{index}".encode()).digest()[:4], "big")


def stop_reason(result: RunResult) -> str:
    """Why no further run follows this one, "" if one may: another run would meet what this one left."""
    if result.exit_code == Exit.UNDO_PENDING:
        return "an undo is pending"
    if result.ending in ("aborted", "refused", "interrupted"):
        return result.headline
    return ""


def gravest(codes: Iterable[int]) -> int:
    """The gravest exit code; one that is not of a run beats all but a pending undo."""
    order = {int(code): place for place, code in enumerate(_GRAVITY)}
    return min(codes, key=lambda code: order.get(code, 0.5), default=int(Exit.HELD))


def series_text(series: Series, encoding: str) -> str:
    """The distribution of verdicts, the durations of each expectation, and each run that did not hold."""
    endings = Counter(run.result.ending for run in series.runs)
    counts = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    lines = [
        f"series: {len(series.runs)} of {series.requested} runs of {printable(series.experiment)}: {counts or 'none'}"
    ]
    if series.runs:
        results = [run.result for run in series.runs]
        lines += ["", *expectations_table(expectation_trends(results), encoding), ""]
    lines += [
        f"{run.result.ending}: {run.stored.name}, seed {run.seed}: {printable(run.result.headline)}"
        for run in series.runs
        if run.result.exit_code
    ]
    if series.stopped:
        lines.append(f"stopped: {printable(series.stopped)}")
    lines.append(f"seed of the series: {series.seed}")
    if any(run.result.simulated for run in series.runs):
        lines.append(SIMULATED)
    return "\n".join(lines) + "\n"


def endings(runs: Sequence[SeriesRun]) -> dict[str, int]:
    """Number of runs by how they ended, sorted by name."""
    return dict(sorted(Counter(run.result.ending for run in runs).items()))
