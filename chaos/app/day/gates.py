"""Gates before a run of a day: wait for them, skip the run or stop the day, each as the document has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from chaos.app.day.session import DaySession
from chaos.app.day.waits import Wait, wait_until
from chaos.core.duration import parse_duration
from chaos.gameday.document import ApprovalGate, Gate
from chaos.gameday.gate_check import GateResult
from chaos.gameday.state import Approval, DayRun
from chaos.gameday.transitions import approve, pass_gates, skip, skip_rest

_POLL = 10.0  # seconds


GateChecker = Callable[[DaySession, Sequence[Gate], DayRun], Sequence[GateResult]]
"""The answers of gates before a run, in their order. Never raises for a gate that cannot be evaluated."""


@dataclass
class _Gates:
    """The gates of one run. ``decision``: what the first gate that fails for good asks for, "" for none."""

    session: DaySession
    run: DayRun
    gates: Sequence[Gate]
    checker: GateChecker
    begun: float
    decision: str = ""
    reason: str = ""

    def check(self) -> str:
        """Why the run must wait; "" if all gates hold, or one has decided otherwise."""
        self.session.refresh(patience=0.0)  # approvals of others
        waiting = []
        now = self.session.now()
        for gate, answer in zip(self.gates, self.checker(self.session, self.gates, self.run), strict=True):
            if answer.holds is True:
                continue
            reason = f"gate {answer.gate}: {answer.reason}"
            is_over = gate.on_failure == "wait" and now >= self.deadline(gate)
            if gate.on_failure != "wait" or is_over:
                self.decision = "stop" if is_over else gate.on_failure
                self.reason = reason
                return ""
            waiting.append(reason)
        return "; ".join(waiting)

    def deadline(self, gate: Gate) -> float:
        """When a gate that the day waits for has failed."""
        return self.begun + parse_duration(gate.wait or "0s")

    @property
    def first_deadline(self) -> float | None:
        return min((self.deadline(gate) for gate in self.gates if gate.on_failure == "wait"), default=None)


def await_gates(session: DaySession, run: DayRun, checker: GateChecker) -> bool:
    """Wait until all gates hold; one that does not skips the run, or the rest of the day. Whether all hold."""
    entry = session.entries[run.key.entry]
    of_day = session.request.day.document.spec.gates
    gates = [*of_day, *entry.entry.gates]
    if not gates:
        return True
    _ask_approvals(session, of_day, "")
    _ask_approvals(session, entry.entry.gates, run.key.entry)
    watched = _Gates(session, run, gates, checker, session.now())
    wait_until(session, Wait(f"the gates of {run.key}", watched.check, _POLL, expected=watched.first_deadline))
    if watched.decision == "skip":
        session.note(f"skipping {run.key}: {watched.reason}")
        session.update(lambda state: skip(state, run.key, watched.reason, session.epoch, session.now()))
    elif watched.decision == "stop":
        session.note(f"stopping the day: {watched.reason}")
        session.update(lambda state: skip_rest(state, watched.reason, session.epoch, session.now()))
    else:
        session.update(partial(pass_gates, key=run.key, epoch=session.epoch, now=session.now()))
    return not watched.decision


def _ask_approvals(session: DaySession, gates: Sequence[Gate], entry: str) -> None:
    """Ask on the terminal for the approvals that are missing."""
    plan_hash = session.state.plan_hash
    for gate in gates:
        if not isinstance(gate, ApprovalGate) or session.state.is_approved(gate.by, entry):
            continue
        what = f"entry {entry}" if entry else f"day {session.state.day}"
        person = session.request.ask_approval(gate.by, f"{what} of {session.state.gameday}", plan_hash)
        if person:
            approval = Approval(person, session.now(), plan_hash, entry, session.request.by)
            session.update(partial(approve, approval=approval))
