"""Undo the pending entries of the journal, the last operation first. A failed undo does not stop the others."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from chaos.core.action import Undo, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Delivery, HostCommand, PowerCommand, PowerState, PowerVerb, is_success, refusal
from chaos.core.errors import NodefallError
from chaos.core.ports import Clock, Progress
from chaos.core.result import UndoResult
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import PendingUndo
from chaos.core.text import on_node
from chaos.engine.failsafe import disarm
from chaos.engine.guards import IdentityGuard
from chaos.machines.pool import Hosts

PROOF_SECONDS = 300.0  # for an undo to be proven
SETTLE_SECONDS = 5.0  # after an operation, whose effect may not be visible yet: no proof counts before
POLL_SECONDS = 2.0
RESEND_SECONDS = 30.0  # between two sends of a step that is still needed
IDENTIFY_SECONDS = 20.0  # of a wait between two looks at which machine is there
MISMATCH_SECONDS = 60.0  # in which another machine may go away, as one that has its address for a moment
NOTE_SECONDS = 10.0  # of a wait without a word, and between two notes of what an undo waits for
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UndoRules:
    """Rules of an undo: which entries are undone, and how.

    ``on_begin`` is called before each undo: from then on the effect is ended on purpose. An operation that
    ``is_uncertain`` may take effect as late as now. Nothing is sent for one that ``may_be_undone`` already if its proof
    holds. ``blocked`` returns why nothing more may be sent, or "". ``inventory``: of another file than the run's, which
    commands to run next must name.
    """

    select: Callable[[PendingUndo], bool] = lambda _: True
    on_begin: Callable[[PendingUndo], None] = lambda _: None
    is_uncertain: Callable[[PendingUndo], bool] = lambda _: False
    may_be_undone: Callable[[PendingUndo], bool] = lambda _: False
    blocked: Callable[[], str] = lambda: ""
    inventory: str = ""


_ALL = UndoRules()


def roll_back(
    journal: Journal, hosts: Hosts, clock: Clock, progress: Progress, rules: UndoRules = _ALL
) -> list[UndoResult]:
    """Undo the selected entries. An undo without proof stays pending. Each entry has a limit in cluster time.

    All entries are polled in turn, as one operation may be in the way of another's proof: a node is Ready only when
    both its kubelet and its runtime are running. Power comes first: nothing else is undone on a machine before it is
    on again. Equal steps of one node are merged: the second restart of a kubelet would end the first.
    """
    results: dict[int, UndoResult] = {}
    selected = [pending for pending in journal.pending() if rules.select(pending)]
    attempts: list[_Attempt] = []
    sends = _Sends()
    for pending in selected:
        rules.on_begin(pending)
        attempts.append(_Attempt(pending, rules, journal, hosts, clock, progress, sends))
    attempts.sort(key=lambda attempt: not attempt.powers_on)
    progressed = clock.now()
    while unfinished := [attempt for attempt in attempts if attempt.entry.id not in results]:
        is_last = clock.now() >= progressed + PROOF_SECONDS
        for attempt in unfinished:
            if why := rules.blocked():
                results[attempt.entry.id] = attempt.stop(why)
                continue
            is_off = any(other.needs_power(attempt) for other in unfinished)
            if result := attempt.poll_off(is_last) if is_off else attempt.poll(is_last):
                results[attempt.entry.id] = result
                progressed = clock.now()
        progress.tick(clock.now())
        if len(results) < len(attempts) and not clock.sleep(POLL_SECONDS):
            clock.resume()  # a signal that came late does not stop the undo
    return [results[pending.id] for pending in selected]


@dataclass(frozen=True, slots=True)
class _Sends:
    """The commands that were sent, by node. Entries of the same node share them, for steps that are sent only if
    needed.
    """

    tried_at: dict[Hashable, float] = field(default_factory=dict)
    counts: dict[Hashable, int] = field(default_factory=dict)
    succeeded: set[Hashable] = field(default_factory=set)


class _Attempt:
    """The undo of one entry: sends what is needed until every proof holds.

    A step is checked again after it was sent or found unnecessary: a machine that is still on may be going down.
    """

    def __init__(
        self,
        entry: PendingUndo,
        rules: UndoRules,
        journal: Journal,
        hosts: Hosts,
        clock: Clock,
        progress: Progress,
        sends: _Sends,
    ) -> None:
        self.entry = entry
        self._journal, self._hosts, self._clock, self._progress = journal, hosts, clock, progress
        self._start = clock.now()
        self._may_be_undone = rules.may_be_undone(entry)
        done = self._start if rules.is_uncertain(entry) else min(entry.t, self._start)  # a clock may have been set back
        self._settle_time = done + max(SETTLE_SECONDS, entry.undo.settle_seconds) if entry.undo.proof else 0.0
        self._sends = sends
        self._problems: list[str] = []
        self._noted, self._note_time = "", self._start + NOTE_SECONDS
        self._identity = IdentityGuard(hosts, entry.node, entry.identity)
        self._inventory = rules.inventory
        self._identified, self._mismatched_since, self._difference = self._start, math.inf, ""
        self.powers_on = any(_is_power_on(step) for step in entry.undo.steps)

    def needs_power(self, other: _Attempt) -> bool:
        """Whether this undo must still power on a machine that is off and that ``other`` needs."""
        if other is self or not self.powers_on or other.entry.node != self.entry.node:
            return False
        try:
            return bool(self._hosts.read(self.entry.node, PseudoFact.MACHINE) == PowerState.OFF)
        except NodefallError:
            return False  # the machine may be on
        except Exception:  # noqa: BLE001 - the other entries must still be undone
            _log.exception("power state of %s could not be read", self.entry.node)
            return False

    def poll_off(self, is_last: bool) -> UndoResult | None:
        """Send nothing because the machine is off. Returns a result only at the last poll."""
        return self._waiting("the machine is off", is_last)

    def poll(self, is_last: bool) -> UndoResult | None:
        """Send the commands that are needed. Returns the result once the undo is proven, or at the last poll."""
        self._identity.reset()
        try:
            unmet = self._unmet_proof() if self._may_be_undone else "unknown"
            if unmet:
                self._send_due()
                unmet = self._unmet_check()
            if is_last or not unmet or self._is_to_be_identified():
                unmet = "; ".join(filter(None, [unmet, self._identity.unmet_for_proof(self.entry.undo)]))
            if self._clock.now() < self._settle_time:
                return self._waiting(unmet or self._why_to_settle(), is_last=False)
            if unmet := unmet or self._stop_failsafe():
                why = "; ".join([unmet, *dict.fromkeys(self._problems)])
                return self._mismatched() or self._waiting(why, is_last)
            return self._mark_undone()
        except NodefallError as error:
            return self._still_pending(error.message)
        except Exception as error:  # noqa: BLE001 - the other entries must still be undone
            _log.exception("undo of %s failed", on_node(self.entry.step, self.entry.node))
            return self._still_pending(f"internal error: {type(error).__name__}: {error}")

    def _why_to_settle(self) -> str:
        seconds = max(SETTLE_SECONDS, self.entry.undo.settle_seconds)
        return f"no proof counts for {seconds:g} s by design, in which the operation may still take effect"

    def _is_to_be_identified(self) -> bool:
        """Whether the wait has been so long that a different machine may be the reason."""
        if is_due := self._clock.now() >= self._identified + IDENTIFY_SECONDS:
            self._identified = self._clock.now()
        return is_due

    def _mismatched(self) -> UndoResult | None:
        """Returns a result if a different machine has been in the node's place for a while: waiting would not help."""
        now = self._clock.now()
        if self._identity.is_evaluated:
            self._difference = self._identity.difference
            self._mismatched_since = min(self._mismatched_since, now) if self._difference else math.inf
        if now < self._mismatched_since + MISMATCH_SECONDS:
            return None
        inventory = ["--inventory", self._inventory] if self._inventory else []
        words = ["nodefall", "undo", str(self._journal.path.parent), *inventory, "--accept-machine", self.entry.node]
        command = shlex.join(words)
        settle = f"inspect {self.entry.node}, and if it is the right machine, run {command}"
        return self._still_pending(f"{self._difference}; {settle}")

    def stop(self, why: str) -> UndoResult:
        """Give up: the entry stays pending."""
        return self._still_pending(why)

    def _send_due(self) -> None:
        for step in self.entry.undo.steps:
            key = self._key(step)
            if self._is_due(key, step):
                self._send(key, step)

    def _key(self, step: UndoStep) -> Hashable:
        """The key by which entries share a step that is sent only once. Without ``unless``, each entry needs its own
        success.
        """
        command = step.command
        what = (command.argv, command.stdin) if isinstance(command, HostCommand) else repr(command)
        return (self.entry.node, what) if step.unless else (self.entry.node, what, self.entry.id)

    def _is_due(self, key: Hashable, step: UndoStep) -> bool:
        now, tried = self._clock.now(), self._sends.tried_at.get(key)
        if now < self._start + step.grace_seconds or self._sends.counts.get(key, 0) >= step.max_attempts:
            return False
        if tried is not None and now < tried + RESEND_SECONDS:
            return False
        node = self.entry.node
        if key in self._sends.succeeded if step.unless is None else self._hosts.check(node, step.unless)[0]:
            return False
        return all(self._hosts.check(node, check)[0] for check in step.when)

    def _send(self, key: Hashable, step: UndoStep) -> None:
        """Send the step's command. An attempt that was not sent does not count: the host may be booting."""
        self._sends.tried_at[key] = self._clock.now()
        if why := self._identity.unmet_for_command(step.command):
            self._problems.append(f"{step.command} was not sent: {why}")
            return
        self._progress.step(self.entry.step, self.entry.node, f"undo: {step.command}")
        try:
            outcome = self._hosts.send(self.entry.node, step.command)
        except NodefallError as error:
            self._problems.append(f"{step.command} was not sent: {error.message}")
            return
        if outcome.delivery is not Delivery.NOT_SENT:
            self._sends.counts[key] = self._sends.counts.get(key, 0) + 1
        if is_success(step.command, outcome):
            self._sends.succeeded.add(key)
        else:
            why = (
                refusal(step.command, outcome) or outcome.error or outcome.stderr.strip() or f"answered {outcome.exit}"
            )
            self._problems.append(f"{step.command}: {why}")

    def _unmet_check(self) -> str:
        """The observation for the first check that does not hold, or "". Without a check, the command must succeed."""
        for step in self.entry.undo.steps:
            if step.unless is None and self._key(step) not in self._sends.succeeded:
                return f"`{step.command}` has not succeeded"
        return self._unmet_proof()

    def _unmet_proof(self) -> str:
        """The observation for the first proof that does not hold, or ""."""
        for check in self.entry.undo.proof:
            holds, observed = self._hosts.check(self.entry.node, check)
            if not holds:
                self._hosts.invalidate(self.entry.node)
                return observed or f"it is unknown whether {check}"
        return ""

    def _stop_failsafe(self) -> str:
        """Stop the failsafe timer, which was the last resort until now. Returns why it may still exist, or ""."""
        if not self.entry.undo.disarm:
            return ""
        try:
            return disarm(self._hosts, self.entry.node, self.entry.undo.disarm)
        except NodefallError as error:
            return error.message

    def _mark_undone(self) -> UndoResult:
        entry = self.entry
        proof = ", ".join(str(check) for check in entry.undo.proof) or "nothing to undo"
        self._journal.mark_undone(entry, proof)
        if entry.undo != Undo():
            self._progress.step(entry.step, entry.node, f"undone: {proof}")
        return UndoResult(entry.step, entry.action, entry.node, proven=True, because=proof)

    def _waiting(self, why: str, is_last: bool) -> UndoResult | None:
        """Report the reason for a long wait, once for each reason. Returns a result only at the last poll."""
        if is_last:
            return self._still_pending(why)
        now = self._clock.now()
        if why != self._noted and now >= self._note_time:
            self._noted, self._note_time = why, now + NOTE_SECONDS
            self._progress.note(f"undo of {on_node(self.entry.step, self.entry.node)} waits: {why}")
        return None

    def _still_pending(self, why: str) -> UndoResult:
        entry = self.entry
        self._progress.note(f"undo still pending: {on_node(entry.step, entry.node)}: {why}")
        return UndoResult(entry.step, entry.action, entry.node, proven=False, because=why)


def _is_power_on(step: UndoStep) -> bool:
    return isinstance(step.command, PowerCommand) and step.command.verb is PowerVerb.ON
