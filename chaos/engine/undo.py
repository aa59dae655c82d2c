"""Taking back what the journal owes, last deed first; going on after a failure."""

from __future__ import annotations

from collections.abc import Callable

from chaos.engine.hosts import Hosts
from chaos.model.action import Check, UndoStep
from chaos.model.command import succeeded
from chaos.model.errors import NodefallError
from chaos.model.ports import Clock, Progress
from chaos.model.result import UndoResult
from chaos.store.journal import Journal, Owed

PROOF_SECONDS = 300.0  # until the node must be as it was
POLL_SECONDS = 2.0


def roll_back(
    journal: Journal, hosts: Hosts, clock: Clock, progress: Progress, choose: Callable[[Owed], bool] = lambda _: True
) -> list[UndoResult]:
    """Undo everything owed that is chosen; what cannot be proven stays owed. Bounded in cluster time per entry."""
    return [_undo(owed, journal, hosts, clock, progress) for owed in journal.owed() if choose(owed)]


def _undo(owed: Owed, journal: Journal, hosts: Hosts, clock: Clock, progress: Progress) -> UndoResult:
    problems = [text for step in owed.undo.steps if (text := _send(owed, step, hosts, clock, progress))]
    because = _prove(owed, hosts, clock)
    if because:
        why = "; ".join([because, *problems])
        progress.note(f"still owed: undo of {owed.step} on {owed.node}: {why}")
        return UndoResult(owed.step, owed.action, owed.node, proven=False, because=why)
    proof = ", ".join(str(check) for check in owed.undo.proof) or "nothing to take back"
    journal.strike(owed, proof)
    if owed.undo.steps or owed.undo.proof:
        progress.step(owed.step, owed.node, f"undone: {proof}")
    return UndoResult(owed.step, owed.action, owed.node, proven=True, because=proof)


def _send(owed: Owed, step: UndoStep, hosts: Hosts, clock: Clock, progress: Progress) -> str:
    """Send one undo step unless it is not needed; what went wrong, or ""."""
    if step.unless and not _wait(owed.node, (step.unless,), hosts, clock, step.patience):
        return ""
    progress.step(owed.step, owed.node, f"undo: {step.command}")
    try:
        outcome = hosts.send(owed.node, step.command)
    except NodefallError as error:
        return f"{step.command} was not sent: {error.message}"
    if succeeded(step.command, outcome):
        return ""
    return f"{step.command}: {outcome.error or outcome.stderr.strip() or f'answered {outcome.exit}'}"


def _prove(owed: Owed, hosts: Hosts, clock: Clock) -> str:
    """Empty once every check holds, else what was seen last."""
    return _wait(owed.node, owed.undo.proof, hosts, clock, PROOF_SECONDS)


def _wait(node: str, checks: tuple[Check, ...], hosts: Hosts, clock: Clock, seconds: float) -> str:
    """Wait until all checks hold; what was seen of the first that does not, or ""."""
    deadline = clock.now() + seconds
    while True:
        seen = next((seen for check in checks if not (found := hosts.holds(node, check))[0] and (seen := found[1])), "")
        if not seen or clock.now() >= deadline:
            return seen
        clock.sleep(POLL_SECONDS)
