"""What one run of a rehearsal gives, and what no run can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


ALWAYS = (
    "what containers do: they start and end in the measured time, and do not fail because another workload is gone",
    "how long machines boot: the lab's take 5 to 10 s, real ones up to minutes; what waits for one is as much later",
    "networks, load balancers and DNS: traffic is not routed, so how long clients notice is not in the answer",
    "autoscalers of nodes and machine health checks: no node is added, removed, repaired or replaced",
    "CSI drivers: volumes are attached and detached without the errors and limits of a driver",
)


def limits_of(missing: Iterable[str], samples: Sequence[Sample]) -> list[str]:
    """What the snapshot lacks, what the lab left out of it, and what no lab has; without duplicates."""
    left_out = [line for sample in samples for line in sample.not_modelled]
    return list(dict.fromkeys([*missing, *left_out, *ALWAYS]))
