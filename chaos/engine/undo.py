"""Taking back what the journal owes, last deed first; going on after a failure."""

from __future__ import annotations

from collections.abc import Callable

from chaos.engine.hosts import Hosts
from chaos.engine.selfheal import disarm
from chaos.model.action import Undo, UndoStep
from chaos.model.command import succeeded
from chaos.model.errors import NodefallError
from chaos.model.ports import Clock, Progress
from chaos.model.result import UndoResult
from chaos.model.text import on_node
from chaos.store.journal import Journal, Owed

PROOF_SECONDS = 300.0  # until the node must be as it was
SETTLE_SECONDS = 5.0  # after a deed, in which its effect may not show yet: no proof counts before
POLL_SECONDS = 2.0
RESEND_SECONDS = 30.0  # between two sends of a step that is still needed


def roll_back(
    journal: Journal,
    hosts: Hosts,
    clock: Clock,
    progress: Progress,
    choose: Callable[[Owed], bool] = lambda _: True,
    begun: Callable[[Owed], None] = lambda _: None,
) -> list[UndoResult]:
    """Undo everything owed that is chosen; what cannot be proven stays owed. Bounded in cluster time per entry.

    ``begun`` is called before each: from then on the effect is being ended on purpose.
    """
    results = []
    for owed in journal.owed():
        if choose(owed):
            begun(owed)
            results.append(_undo(owed, journal, hosts, clock, progress))
    return results


class _Attempt:
    """One entry's undo: sends what is needed until every proof holds, or the deadline is over.

    A step is looked at again after it was sent or found unnecessary: a machine that is still on may be going down.
    """

    def __init__(self, owed: Owed, hosts: Hosts, clock: Clock, progress: Progress) -> None:
        self._owed, self._hosts, self._clock, self._progress = owed, hosts, clock, progress
        self._start = clock.now()
        self._sent: dict[int, list[float]] = {}
        self.problems: list[str] = []

    def prove(self) -> str:
        """Empty once every check holds, else what was seen last."""
        settled = self._owed.t + SETTLE_SECONDS if self._owed.undo.proof else 0.0
        while True:
            for number, step in enumerate(self._owed.undo.steps):
                if self._due(number, step):
                    self._send(number, step)
            seen = self._missing()
            now = self._clock.now()
            if (not seen and now >= settled) or now >= self._start + PROOF_SECONDS:
                return seen
            if not self._clock.sleep(POLL_SECONDS):
                self._clock.resume()  # a signal that came late: undoing goes on all the same

    def _due(self, number: int, step: UndoStep) -> bool:
        now, sent = self._clock.now(), self._sent.get(number, [])
        if now < self._start + step.patience or len(sent) >= step.sends or (sent and now < sent[-1] + RESEND_SECONDS):
            return False
        return step.unless is None or not self._hosts.holds(self._owed.node, step.unless)[0]

    def _send(self, number: int, step: UndoStep) -> None:
        self._sent.setdefault(number, []).append(self._clock.now())
        self._progress.step(self._owed.step, self._owed.node, f"undo: {step.command}")
        try:
            outcome = self._hosts.send(self._owed.node, step.command)
        except NodefallError as error:
            self.problems.append(f"{step.command} was not sent: {error.message}")
            return
        if not succeeded(step.command, outcome):
            why = outcome.error or outcome.stderr.strip() or f"answered {outcome.exit}"
            self.problems.append(f"{step.command}: {why}")

    def _missing(self) -> str:
        """What was seen of the first check that does not hold, or ""."""
        for check in self._owed.undo.proof:
            holds, seen = self._hosts.holds(self._owed.node, check)
            if not holds:
                return seen or f"it is not known whether {check}"
        return ""


def _undo(owed: Owed, journal: Journal, hosts: Hosts, clock: Clock, progress: Progress) -> UndoResult:
    try:
        attempt = _Attempt(owed, hosts, clock, progress)
        because = attempt.prove()
        if not because and owed.undo.disarm:  # only now: until then the timer was the last resort
            because = disarm(hosts, owed.node, owed.undo.disarm)
        if because:
            return _left(owed, progress, "; ".join([because, *dict.fromkeys(attempt.problems)]))
        proof = ", ".join(str(check) for check in owed.undo.proof) or "nothing to take back"
        journal.strike(owed, proof)
    except NodefallError as error:
        return _left(owed, progress, error.message)
    except Exception as error:  # noqa: BLE001 - whatever failed here, the other deeds must still be taken back
        return _left(owed, progress, f"a bug of nodefall: {type(error).__name__}: {error}")
    if owed.undo != Undo():
        progress.step(owed.step, owed.node, f"undone: {proof}")
    return UndoResult(owed.step, owed.action, owed.node, proven=True, because=proof)


def _left(owed: Owed, progress: Progress, why: str) -> UndoResult:
    progress.note(f"still owed: undo of {on_node(owed.step, owed.node)}: {why}")
    return UndoResult(owed.step, owed.action, owed.node, proven=False, because=why)
