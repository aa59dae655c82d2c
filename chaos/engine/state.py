"""What changes while a run goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.core.verdict import Status
from chaos.engine.stop import StopRequest

StepKey = tuple[str, str]  # step, node


@dataclass
class RunState:
    """``abandoned_steps`` are those whose response the run gave up waiting for: their effect may still come.

    ``taints_before`` are the taints that controllers had put on the targets before the first step.
    """

    stop: StopRequest = field(default_factory=StopRequest)
    proven_steps: set[StepKey] = field(default_factory=set)
    abandoned_steps: set[StepKey] = field(default_factory=set)
    reported_statuses: dict[int, Status] = field(default_factory=dict)  # by place among hypothesis and recovery
    noted: set[str] = field(default_factory=set)  # foreign faults and changed addresses that were reported
    taints_before: dict[str, frozenset[str]] = field(default_factory=dict)
    lock_given_up: bool = False  # another process keeps the lock: what is pending is left to it
