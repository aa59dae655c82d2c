"""Order of the steps on one node: what a step needs to know of those before it."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.core.errors import Unsupported
from chaos.core.experiment import Step, moment_of
from chaos.core.plan import PlannedStep


def least_delay(method: Sequence[Step], first: str, second: str) -> float:
    """Seconds that pass at least between the begins of two steps, by what their ``after`` says; 0 if it says nothing.

    ``first`` comes before ``second`` in the method.
    """
    index = {step.name: number for number, step in enumerate(method)}
    seconds, name = 0.0, second
    while name != first:
        step = method[index[name]]
        moment = moment_of(step)
        seconds += moment.offset
        name = moment.step or method[index[name] - 1].name
        if index[name] < index[first]:
            return 0.0
    return seconds


def check_order(method: Sequence[Step], steps: Sequence[PlannedStep], system: str) -> None:
    """Check each step against those before it; ``steps`` are those on one node, in order. Raises Unsupported."""
    bound = {step.name: step.bound for step in method}
    for number, step in enumerate(steps):
        check = bound[step.step].on(system).check_order
        if check is None:
            continue
        for earlier in steps[:number]:
            try:
                check(earlier.action, earlier.params, least_delay(method, earlier.step, step.step))
            except Unsupported as error:
                raise Unsupported(f"step {step.step} on {step.node}: {error.message}", hint=error.hint) from error
