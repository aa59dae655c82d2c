"""What a disturbed run has shown, beside an undisturbed one."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from chaos.core.result import RunResult
from chaos.core.verdict import Status, Verdict
from tests.kit.disturbance import DisturbancePlan

NAMES = ("graceful-poweroff", "cordon", "no-execute-tolerated-for-a-time", "drain-blocked", "power-cut", "lease-stops")
LATE, STARVED = KINDS = ("late", "starved")
Statuses = Mapping[str, Status]  # of the expectations, by name


@dataclass
class Row:
    """One run. ``statuses`` and those of the run that is ``undisturbed``, by the expectation's name.

    ``refused``: why it ended before the fault. ``because``: of each verdict that differs, by name. ``reversed``: those
    of them that contradict the undisturbed run. ``unexcused``: late watches did not make these inconclusive, as all
    that happened by the deadline was delivered by then. ``cpu``, ``wall``: seconds, the lab's included.
    """

    kind: str
    seed: int
    experiment: str
    statuses: dict[str, str] = field(default_factory=dict)
    undisturbed: dict[str, str] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)
    reversed: list[str] = field(default_factory=list)
    unexcused: list[str] = field(default_factory=list)
    refused: str = ""
    cpu: float = 0.0
    wall: float = 0.0

    @property
    def wrong(self) -> list[str]:
        return [*self.reversed, *self.unexcused]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measured(
    kind: str, seed: int, expected: Statuses, run: Callable[[], tuple[RunResult, DisturbancePlan | None]]
) -> Row:
    """The row of a run of the experiment of this seed. ``expected``: the statuses of the undisturbed one."""
    row = Row(kind, seed, name_of(seed))
    row.undisturbed = {name: str(status) for name, status in expected.items()}
    begin = _seconds()
    result, plan = run()
    row.cpu, row.wall = (round(now - then, 1) for now, then in zip(_seconds(), begin, strict=True))
    if result.status is Status.INCONCLUSIVE and not result.steps:
        row.refused = result.headline
        return row
    for verdict in verdicts(result):
        _compare(row, verdict, expected[verdict.name])
        if verdict.status is Status.INCONCLUSIVE and plan:
            deadline = verdict.deadline or min(step.begin or 0.0 for step in result.steps)
            if plan.latest(deadline) <= deadline:
                row.unexcused.append(verdict.name)
    return row


def name_of(seed: int) -> str:
    """The experiment of a seed."""
    return NAMES[seed % len(NAMES)]


def statuses(result: RunResult) -> Statuses:
    return {verdict.name: verdict.status for verdict in verdicts(result)}


def _compare(row: Row, verdict: Verdict, expected: Status) -> None:
    row.statuses[verdict.name] = str(verdict.status)
    if verdict.status is not expected:
        row.because[verdict.name] = verdict.because
        if verdict.status is not Status.INCONCLUSIVE:
            row.reversed.append(verdict.name)


def verdicts(result: RunResult) -> tuple[Verdict, ...]:
    return (*result.hypothesis, *result.recovery)


def _seconds() -> tuple[float, float]:
    """CPU of this process and its children that have ended, and wall."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used), time.monotonic()
