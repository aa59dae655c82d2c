"""What a run still owes beats whatever else ended a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.model.errors import NodefallError, UndoPending
from chaos.model.text import on_node
from chaos.store.journal import read_pending


@contextmanager
def guard_pending_undo(directory: Path) -> Iterator[None]:
    """Turn any error, and an interruption, into UndoOwed where the journal in ``directory`` owes something."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        owed = _describe_pending(directory)
        if not owed:
            raise
        hint = f"nodefall undo {directory}"
        if isinstance(error, NodefallError):
            why, hint = error.message, f"{error.hint + '; then' if error.hint else 'run'}: {hint}"
        else:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        raise UndoPending(f"{why}; still to be undone: {owed}", hint=hint) from error


def _describe_pending(directory: Path) -> str:
    """In words; what only stands in the journal, with nothing to take back, does not count."""
    try:
        found = [on_node(o.step, o.node) for o in read_pending(directory) if o.undo.proof]
    except NodefallError:
        return "nobody knows what, as the journal cannot be read"
    return ", ".join(dict.fromkeys(found))
