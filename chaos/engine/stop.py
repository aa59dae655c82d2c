"""Why a run ends early."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.errors import Aborted


class Interrupted(Exception):
    """A signal asked the run to stop; ``signum`` is its number."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


@dataclass
class StopRequest:
    """Set by signal handlers and by threads of the run; checked at every tick."""

    signum: int | None = None
    crash: BaseException | None = None
    reason: str = ""  # given by whoever runs nodefall abort
    loss: str = ""  # why the cluster's lock is lost

    def check(self) -> None:
        """Raises Interrupted, Aborted, or the exception that a thread of the run ended with."""
        if self.crash:
            raise self.crash
        if self.signum:
            raise Interrupted(self.signum)
        if self.loss:
            raise Aborted(self.loss, hint="see nodefall status")
        if self.reason:
            raise Aborted(f"asked to stop: {self.reason}")

    def request(self, why: str) -> None:
        """Stop the run as nodefall abort does."""
        self.reason = why

    def report_loss(self, why: str) -> None:
        """Stop the run because another process has taken or deleted the cluster's lock."""
        self.loss = why

    def report_crash(self, error: BaseException) -> None:
        """Stop the run because one of its threads crashed; the first crash counts."""
        if self.crash is None:
            self.crash = error
