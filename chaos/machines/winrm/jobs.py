"""Jobs of a host's worker: their phases, and the outcome of a job that is given up."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from threading import Event, RLock
from time import monotonic

from chaos.core.command import Delivery, Outcome
from chaos.core.errors import NodefallError
from chaos.machines.sessions.arming import with_hint
from chaos.machines.sessions.process import Output, truncation_note
from chaos.machines.windows_command_line import CommandLine, normalize_line_ends
from chaos.machines.winrm.client import WinRmClient


class Phase(Enum):
    """WAITING: certainly not sent. SENT: the request is on its way. STARTED: the host has started it."""

    WAITING = "waiting"
    SENT = "sent"
    STARTED = "started"


class Job:
    """A command, or with no ``line`` only the opening of a shell. Thread safe; the first end counts.

    ``timeout`` in seconds from now. ``question`` is asked once the shell is open, by the worker with its client.
    """

    def __init__(
        self,
        line: CommandLine | None,
        timeout: float,
        stdin: bytes = b"",
        question: Callable[[WinRmClient, float], None] | None = None,
    ) -> None:
        self.line, self.stdin, self.timeout, self.question = line, stdin, timeout, question
        self.stdout, self.stderr = Output("stdout"), Output("stderr")
        self.notes: list[str] = []
        self.error: NodefallError | None = None  # why nothing was sent
        self._deadline = monotonic() + timeout
        self._phase = Phase.WAITING
        self._lock, self._ended = RLock(), Event()
        self._outcome: Outcome | None = None

    @property
    def seconds_left(self) -> float:
        return self._deadline - monotonic()

    @property
    def is_over(self) -> bool:
        return self._ended.is_set()

    def advance(self, phase: Phase) -> bool:
        """Enter a phase; returns False if the job is over and must not be sent."""
        with self._lock:
            if self._outcome is None:
                self._phase = phase
            return self._outcome is None

    def wait(self, grace: float) -> Outcome | None:
        """The outcome, None if there is none ``grace`` seconds after the deadline."""
        self._ended.wait(max(self.seconds_left, 0) + grace)
        return self._outcome

    def answer(self, exit_code: int) -> None:
        """End the job with the command's outcome."""
        self._end(Delivery.ANSWERED, exit_code, "")

    def fail(self, error: NodefallError) -> None:
        """End the job: the command certainly never ran."""
        self.error = error
        self._end(Delivery.NOT_SENT, None, with_hint(error))

    def lose(self, why: str) -> None:
        """End the job: the command may have run, or may still be running."""
        self._end(Delivery.LOST, None, why)

    def give_up(self, why_not_sent: NodefallError) -> None:
        """End a job at its deadline, with the outcome that its phase allows."""
        with self._lock:  # until the end is set, so that no worker sends it meanwhile
            if self._phase is Phase.WAITING:
                self.fail(why_not_sent)
            else:
                self.lose(f"no answer within {self.timeout:g} s; the command may still be running")

    def _end(self, delivery: Delivery, exit_code: int | None, error: str) -> None:
        notes = [error, *self.notes, truncation_note(self.stdout, self.stderr)]
        with self._lock:
            if self._outcome is None:
                self._outcome = Outcome(
                    delivery,
                    exit=exit_code,
                    stdout=normalize_line_ends(self.stdout.text),
                    stderr=normalize_line_ends(self.stderr.text),
                    error="; ".join(filter(None, notes)),
                )
        self._ended.set()
