"""The wait for the steady state, before the first step."""

from __future__ import annotations

import math

from chaos.core.errors import Refused
from chaos.core.result import pending_if
from chaos.core.verdict import Status
from chaos.engine.context import TICK, RunContext

_SECONDS = 180.0  # for the workload to become available
_MOMENT = 0.001  # seconds


def await_steady_state(context: RunContext) -> None:
    """Wait until the steady state holds, and all that led to it is received. Raises Refused, naming what is missing."""
    services = context.services
    services.progress.phase("steady state")
    deadline = services.clock.now() + _SECONDS
    since = math.inf  # when it was first seen to hold
    while True:
        context.stop.check()
        verdicts = services.judge_steady_state()
        unmet = [verdict for verdict in verdicts if verdict.status is not Status.HELD]
        if not unmet and math.isinf(since):
            since = services.clock.now()
            services.prove_at([since])
            services.clock.settle()
        if not unmet and not (unmet := list(services.late_watches(since))):
            if services.clock.now() <= since:  # simulated time; what was seen when a step begins was not seen before it
                services.clock.sleep(_MOMENT)
            return
        if services.clock.now() > deadline:
            raise Refused(f"no steady state: {unmet[0].name}: {unmet[0].because}")
        services.progress.tick(services.clock.now())
        services.on_judged(pending_if(verdicts, {Status.VIOLATED, Status.INCONCLUSIVE}), ())
        services.clock.sleep(TICK)
