"""Headline of a result."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.model.verdict import Status, Verdict


def headline(status: Status, verdicts: Sequence[Verdict], invalidated_by: str, nodes: Sequence[str]) -> str:
    """One line: what failed, the observation and its time; or why the run is inconclusive; or that all held."""
    if status is Status.HELD:
        where = f" on {', '.join(nodes)}" if nodes else ""
        return f"held: all {len(verdicts)} expectations held{where}"
    if invalidated_by and status is Status.INCONCLUSIVE:
        return f"inconclusive: {invalidated_by}"
    failures = [v for v in verdicts if v.status is status]
    if not failures:
        return status.value
    first, others = failures[0], len(failures) - 1
    expected = f"; expected: {first.expected}" if first.expected else ""
    more = f" (and {others} more)" if others else ""
    return f"{status.value}: {first.name}: {first.because}{expected}{more}"
