"""Taking back what the journal owes, last deed first; going on after a failure."""

from __future__ import annotations

from collections.abc import Callable

from chaos.engine.failsafe import disarm
from chaos.hosts.pool import Hosts
from chaos.model.action import Undo, UndoStep
from chaos.model.command import NOT_SENT, is_success
from chaos.model.errors import NodefallError
from chaos.model.ports import Clock, Progress
from chaos.model.result import UndoResult
from chaos.model.text import on_node
from chaos.store.journal import Journal, PendingUndo

PROOF_SECONDS = 300.0  # until the node must be as it was
SETTLE_SECONDS = 5.0  # after a deed, in which its effect may not show yet: no proof counts before
POLL_SECONDS = 2.0
RESEND_SECONDS = 30.0  # between two sends of a step that is still needed


def roll_back(
    journal: Journal,
    hosts: Hosts,
    clock: Clock,
    progress: Progress,
    select: Callable[[PendingUndo], bool] = lambda _: True,
    on_begin: Callable[[PendingUndo], None] = lambda _: None,
    is_uncertain: Callable[[PendingUndo], bool] = lambda _: False,
) -> list[UndoResult]:
    """Undo everything owed that is chosen; what cannot be proven stays owed. Bounded in cluster time per entry.

    All of them are looked at in turn, as one deed may be in the way of another's proof: a node is Ready only when
    neither its kubelet nor its runtime is stopped, and nothing is sent to a machine before it is on again.
    ``begun`` is called before each: from then on the effect is being ended on purpose. A deed of which somebody is
    ``unsure`` may only be done now.
    """
    results: dict[int, UndoResult] = {}
    chosen = [owed for owed in journal.pending() if select(owed)]
    attempts = []
    for owed in chosen:
        on_begin(owed)
        done = clock.now() if is_uncertain(owed) else owed.t
        attempts.append(_Attempt(owed, done, journal, hosts, clock, progress))
    progressed = clock.now()
    while open_ := [attempt for attempt in attempts if attempt.entry.id not in results]:
        over = clock.now() >= progressed + PROOF_SECONDS
        for attempt in open_:
            if result := attempt.poll(over):
                results[attempt.entry.id] = result
                progressed = clock.now()
        if len(results) < len(attempts) and not clock.sleep(POLL_SECONDS):
            clock.resume()  # a signal that came late: undoing goes on all the same
    return [results[owed.id] for owed in chosen]


class _Attempt:
    """One entry's undo: sends what is needed until every proof holds.

    A step is looked at again after it was sent or found unnecessary: a machine that is still on may be going down.
    """

    def __init__(
        self, owed: PendingUndo, done: float, journal: Journal, hosts: Hosts, clock: Clock, progress: Progress
    ) -> None:
        self.entry = owed
        self._journal, self._hosts, self._clock, self._progress = journal, hosts, clock, progress
        self._start = clock.now()
        self._settle_time = done + SETTLE_SECONDS if owed.undo.proof else 0.0
        self._tried_at: dict[int, float] = {}
        self._send_counts: dict[int, int] = {}
        self._problems: list[str] = []

    def poll(self, over: bool) -> UndoResult | None:
        """Send what is needed; the result once it is proven or time is ``over``."""
        try:
            self._send_due()
            seen = self._unmet_check()
            if self._clock.now() < self._settle_time:
                return None
            if seen := seen or self._stop_failsafe():
                return self._still_pending("; ".join([seen, *dict.fromkeys(self._problems)])) if over else None
            return self._mark_undone()
        except NodefallError as error:
            return self._still_pending(error.message)
        except Exception as error:  # noqa: BLE001 - whatever failed here, the other deeds must still be taken back
            return self._still_pending(f"a bug of nodefall: {type(error).__name__}: {error}")

    def _send_due(self) -> None:
        commands = [step.command for step in self.entry.undo.steps]
        for step in self.entry.undo.steps:
            number = commands.index(step.command)  # what two steps need is sent for both
            if self._is_due(number, step):
                self._send(number, step)

    def _is_due(self, number: int, step: UndoStep) -> bool:
        now, tried = self._clock.now(), self._tried_at.get(number)
        if now < self._start + step.grace_seconds or self._send_counts.get(number, 0) >= step.max_attempts:
            return False
        if tried is not None and now < tried + RESEND_SECONDS:
            return False
        if step.unless is not None and self._hosts.check(self.entry.node, step.unless)[0]:
            return False
        return all(self._hosts.check(self.entry.node, check)[0] for check in step.when)

    def _send(self, number: int, step: UndoStep) -> None:
        """What was surely not sent does not count: the host may be booting."""
        self._tried_at[number] = self._clock.now()
        self._progress.step(self.entry.step, self.entry.node, f"undo: {step.command}")
        try:
            outcome = self._hosts.send(self.entry.node, step.command)
        except NodefallError as error:
            self._problems.append(f"{step.command} was not sent: {error.message}")
            return
        if outcome.delivery != NOT_SENT:
            self._send_counts[number] = self._send_counts.get(number, 0) + 1
        if not is_success(step.command, outcome):
            why = outcome.error or outcome.stderr.strip() or f"answered {outcome.exit}"
            self._problems.append(f"{step.command}: {why}")

    def _unmet_check(self) -> str:
        """What was seen of the first check that does not hold, or ""."""
        for check in self.entry.undo.proof:
            holds, seen = self._hosts.check(self.entry.node, check)
            if not holds:
                self._hosts.invalidate(self.entry.node)
                return seen or f"it is not known whether {check}"
        return ""

    def _stop_failsafe(self) -> str:
        """Stop the timer, only now: until then it was the last resort. Why it is not known to be gone, or ""."""
        if not self.entry.undo.disarm:
            return ""
        try:
            return disarm(self._hosts, self.entry.node, self.entry.undo.disarm)
        except NodefallError as error:
            return error.message

    def _mark_undone(self) -> UndoResult:
        owed = self.entry
        proof = ", ".join(str(check) for check in owed.undo.proof) or "nothing to take back"
        self._journal.mark_undone(owed, proof)
        if owed.undo != Undo():
            self._progress.step(owed.step, owed.node, f"undone: {proof}")
        return UndoResult(owed.step, owed.action, owed.node, proven=True, because=proof)

    def _still_pending(self, why: str) -> UndoResult:
        owed = self.entry
        self._progress.note(f"still owed: undo of {on_node(owed.step, owed.node)}: {why}")
        return UndoResult(owed.step, owed.action, owed.node, proven=False, because=why)
