"""The gates before a run are evaluated on the cluster of the day."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.app.day.session import DaySession
from chaos.app.gate_sources import Deadlines, GateSources
from chaos.gameday.document import Gate
from chaos.gameday.gate_check import GateResult, check_gates
from chaos.gameday.state import DayRun


class GateEvaluator:
    """Evaluates gates; what has not answered in time is not asked again before it ends. A GateChecker."""

    def __init__(self) -> None:
        self._deadlines: Deadlines | None = None

    def __call__(self, session: DaySession, gates: Sequence[Gate], run: DayRun) -> list[GateResult]:
        """The answers of ``gates`` before ``run``. Raises DayHalted and Interrupted."""
        deadlines = self._deadlines = self._deadlines or Deadlines(session.connection.clock, session.stop.check)
        entry = run.key.entry
        sources = GateSources(
            connection=session.connection,
            registry=session.request.registry,
            reports=session.request.reports,
            experiments=[session.entries[entry].loaded],
            plan_hash=session.state.plan_hash,
            is_approved=lambda persons: session.state.is_approved(persons, entry),
            deadlines=deadlines,
        )
        return check_gates(gates, sources)
