"""The state of a run, as shown by progress views.

Offsets are relative to the first step, as in the reports; there are none before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.model.duration import format_duration
from chaos.model.text import on_node, printable
from chaos.model.verdict import SYMBOLS, Status, Verdict


@dataclass
class ProgressState:
    """The state of a run as reported so far. Each method returns the line to print, "" if there is no news."""

    now: float | None = None
    first_step: float | None = None
    phase_name: str = ""
    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    def phase(self, name: str) -> str:
        self.phase_name = printable(name)
        return f"phase: {self.phase_name}"

    def step(self, name: str, node: str, what: str) -> str:
        if self.first_step is None:
            self.first_step = self.now
        return printable(f"{on_node(f'step {name}', node)}: {what}")

    def verdict(self, verdict: Verdict) -> str:
        """The line of a verdict whose status has changed; a pending one with the time when it is due."""
        key = (verdict.name, verdict.assertion)
        before = self.verdicts.get(key)
        self.verdicts[key] = verdict
        if before and before.status is verdict.status:
            return ""
        if verdict.status is Status.PENDING:
            reason = f"due {self.offset(verdict.deadline)}".strip() if verdict.deadline is not None else verdict.because
        else:
            reason = verdict.because
        return f"{SYMBOLS[verdict.status]} {verdict.status}: {printable(verdict.name)}: {printable(reason)}"

    def offset(self, t: float | None) -> str:
        """The offset of ``t`` from the first step, as ``+1m30s``; "" before that."""
        if t is None or self.first_step is None:
            return ""
        shift = round(t - self.first_step, 1)
        return f"-{format_duration(-shift)}" if shift < 0 else f"+{format_duration(shift)}"

    def remaining(self, verdict: Verdict) -> str:
        """The time until a pending verdict's deadline, "" if there is none."""
        if verdict.status is not Status.PENDING or verdict.deadline is None or self.now is None:
            return ""
        return format_duration(max(0.0, round(verdict.deadline - self.now)))
