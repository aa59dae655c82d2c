"""The one line that says it all."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.model.verdict import Status, Verdict


def headline(
    status: Status, experiment: str, verdicts: Sequence[Verdict], spoiled: str, nodes: Sequence[str], simulated: bool
) -> str:
    """What failed, what was seen instead, and when; or why nothing can be said; or that all held."""
    line = f"{status.value}: {_rest(status, experiment, verdicts, spoiled, nodes)}"
    return f"{line} (simulated cluster)" if simulated else line


def _rest(status: Status, experiment: str, verdicts: Sequence[Verdict], spoiled: str, nodes: Sequence[str]) -> str:
    if status is Status.HELD:
        where = f" on {', '.join(nodes)}" if nodes else ""
        return f"{experiment}{where}: all {len(verdicts)} expectations held"
    if status is Status.INCONCLUSIVE and spoiled:
        return f"{experiment}: {spoiled}"
    bad = [v for v in verdicts if v.status is status]
    if not bad:
        return experiment
    first, others = bad[0], len(bad) - 1
    more = f" (and {others} more)" if others else ""
    wanted = f"; expected: {first.expected}" if first.expected else ""
    return f"{first.name}: {first.because}{wanted}{more}"
