"""An error that leaves an undo pending is reported as such."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.core.errors import NodefallError, UndoPending
from chaos.core.store.journal import read_pending
from chaos.core.text import on_node

logger = logging.getLogger(__name__)


@contextmanager
def guard_pending_undo(directory: Path) -> Iterator[None]:
    """Turn errors and interruptions into UndoPending if the journal in ``directory`` has a pending undo."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        pending = _describe_pending(directory)
        if not pending:
            raise
        logger.error("failed with a pending undo: %s", pending, exc_info=error)  # noqa: TRY400 - also for interruptions
        hint = f"nodefall undo {directory}"
        if isinstance(error, NodefallError):
            reason, hint = error.message, f"{error.hint + '; then' if error.hint else 'run'}: {hint}"
        else:
            reason = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        raise UndoPending(f"{reason}; pending undo: {pending}", hint=hint) from error


def _describe_pending(directory: Path) -> str:
    """The steps to be undone, comma-separated; entries with nothing to undo do not count."""
    try:
        steps = [on_node(entry.step, entry.node) for entry in read_pending(directory) if entry.undo.proof]
    except NodefallError:
        return "unknown: the journal is unreadable"
    return ", ".join(dict.fromkeys(steps))
