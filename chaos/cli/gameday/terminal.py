"""A game day on the terminal: its lines, the progress of its runs, and its questions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from chaos.app.run.plan import ClusterInfo
from chaos.app.undo.replica_entries import ResolvedReplica
from chaos.cli.output import echo_progress
from chaos.cli.run.confirm import ask
from chaos.cli.run.progress import BestEffortProgress, make_progress
from chaos.cli.undo.confirm import confirm_entries
from chaos.cluster.replica import PendingRun
from chaos.core.plan import Plan
from chaos.core.text import escape_for_encoding, printable
from chaos.engine.stop import Interrupted, stop_on_signal


class DayTerminal:
    """Lines and questions on stderr. ``yes``: confirm without asking."""

    def __init__(self, *, force_plain: bool, yes: bool) -> None:
        self._force_plain, self._yes = force_plain, yes
        self._progress = BestEffortProgress(make_progress(sys.stderr, force_plain=True))

    def note(self, text: str) -> None:
        """Print one line; a closed stderr stops nothing."""
        echo_progress(escape_for_encoding(printable(text), sys.stderr.encoding))

    def open_progress(self) -> BestEffortProgress:
        """The progress of one run."""
        self._progress = BestEffortProgress(make_progress(sys.stderr, force_plain=self._force_plain))
        return self._progress

    def confirm(self, plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:
        """Confirm that machines of a real cluster go down. Raises Refused, Interrupted."""
        with _interruptible():
            ask(plan, cluster, nodes, progress=self._progress, yes=self._yes)

    def confirm_undo(self, replica: PendingRun, resolved: ResolvedReplica) -> None:
        """Confirm an undo that only the cluster describes. Raises Refused, Interrupted."""
        with _interruptible():
            confirm_entries(replica, resolved, progress=self._progress, yes=self._yes)

    def ask_approval(self, persons: Sequence[str], what: str, plan_hash: str) -> str:
        """Who approves, "" if no one does or there is no terminal. Raises Interrupted."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return ""
        question = f"{what} (plan {plan_hash[:12]}) must be approved by {' or '.join(persons)}. Who approves? [no one]"
        with _interruptible():
            name = str(click.prompt(printable(question), default="", show_default=False, err=True)).strip()
        if name and name not in persons:
            self.note(f"not approved: {name} is not among {', '.join(persons)}")
            return ""
        return name


@contextmanager
def _interruptible() -> Iterator[None]:
    """A signal ends a question at once. Raises Interrupted."""

    def stop(number: int) -> None:
        raise Interrupted(number)

    with stop_on_signal(stop):
        yield
