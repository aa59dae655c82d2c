"""What the answer does not cover, one line each: what, and what that means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chaos.rehearsal.forecast.sample import Sample

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
