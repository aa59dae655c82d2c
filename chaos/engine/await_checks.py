"""Wait before a step for what it needs, as a machine that still goes down before it is powered on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chaos.core.errors import Aborted
from chaos.core.plan import PlannedStep
from chaos.engine.context import TICK, RunContext
from chaos.engine.recording_entries import fact_entry

AWAIT_SECONDS = 240.0  # systemd stops a container's scopes for 90 s, and kills for 90 s more
Check = Callable[[PlannedStep], str]


OnEach = Callable[[Sequence[PlannedStep], Check], list[str]]


def await_any(context: RunContext, group: Sequence[PlannedStep], on_each: OnEach) -> None:
    """Wait until one of the awaited checks of each step holds; what holds is recorded.

    ``on_each`` runs a function of each step at the same time, and returns its results in order. Raises Aborted after
    ``AWAIT_SECONDS``, naming what was observed.
    """
    clock = context.services.clock
    waiting = [planned for planned in group if planned.awaits]
    deadline, is_announced = clock.now() + AWAIT_SECONDS, False
    while waiting:
        observed = on_each(waiting, lambda planned: _observe(context, planned))
        waiting, observed = _unmet(waiting, observed)
        if not waiting:
            return
        if clock.now() > deadline:
            awaited = " or ".join(str(check) for check in waiting[0].awaits)
            raise Aborted(
                f"step {waiting[0].label} was not done: waited {AWAIT_SECONDS:g} s until {awaited}, but {observed[0]}"
            )
        if not is_announced:
            context.services.progress.step(waiting[0].step, waiting[0].node, f"waits, as {observed[0]}")
            is_announced = True
        context.tick()
        clock.sleep(TICK)


def _unmet(group: Sequence[PlannedStep], observed: Sequence[str]) -> tuple[list[PlannedStep], list[str]]:
    pairs = [(planned, why) for planned, why in zip(group, observed, strict=True) if why]
    return [planned for planned, _ in pairs], [why for _, why in pairs]


def _observe(context: RunContext, planned: PlannedStep) -> str:
    """ "" if one of the checks holds, else what was observed instead."""
    observed = []
    for check in planned.awaits:
        holds, what = context.services.hosts.check(planned.node, check)
        if holds:
            context.services.emit(fact_entry(context.services.clock.now(), planned.node, check.fact, check.value))
            return ""
        observed.append(what)
    return "; ".join(observed)
