"""The one line that says it all."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.model.verdict import Status, Verdict


def headline(status: Status, verdicts: Sequence[Verdict], spoiled: str, nodes: Sequence[str]) -> str:
    """What failed, what was seen instead, and when; or why nothing can be said; or that all held."""
    if status is Status.HELD:
        where = f" on {', '.join(nodes)}" if nodes else ""
        return f"held: all {len(verdicts)} expectations held{where}"
    if spoiled and status is Status.INCONCLUSIVE:
        return f"inconclusive: {spoiled}"
    bad = [v for v in verdicts if v.status is status]
    if not bad:
        return status.value
    first, others = bad[0], len(bad) - 1
    wanted = f"; expected: {first.expected}" if first.expected else ""
    more = f" (and {others} more)" if others else ""
    return f"{status.value}: {first.name}: {first.because}{wanted}{more}"
