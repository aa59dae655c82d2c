"""What one run of a rehearsal gives."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.result import RunResult
from chaos.rehearsal.forecast.finding import Finding
from chaos.rehearsal.forecast.serving import Outage
from chaos.verdicts.outcome.measure import Outcome


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. ``victim``: a node or zone with --each-node or --each-zone, else "".

    ``refused``: why there was no fault, "" if there was one. ``not_modelled``: what the lab left out, one line each.
    ``outages``: of replicated workloads that had fewer serving pods than before. ``outcome``: None if no step was sent.
    """

    seed: int
    victim: str
    result: RunResult | None
    findings: tuple[Finding, ...] = ()
    outages: tuple[Outage, ...] = ()
    not_modelled: tuple[str, ...] = ()
    refused: str = ""
    outcome: Outcome | None = None

    @property
    def ending(self) -> str:
        """held, violated, inconclusive, aborted, refused."""
        return self.result.ending if self.result else "refused"
