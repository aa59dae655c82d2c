"""The worker of one host: the only thread that uses its connection, its shells and the commands in them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic

from chaos.core.errors import Unreachable
from chaos.core.threads import ContextThread
from chaos.machines.winrm.client import WinRmClient
from chaos.machines.winrm.endpoint import MAX_COMMANDS
from chaos.machines.winrm.faults import GONE, OPERATIONS_QUOTA, RequestFailure
from chaos.machines.winrm.jobs import Job, Phase

_log = logging.getLogger(__name__)
POLL = 2.0  # seconds that one Receive waits for output: longer would delay the next command
MAX_IDLE = 60.0  # seconds after which connection and shell are not used again: the host ends them after some time
CLEANUP_TIMEOUT = 5.0  # seconds for operations that no one waits for
STDIN_PIECE = 1 << 16  # bytes: its base64 fits into an envelope of 150 KiB


@dataclass(slots=True)
class RemoteShell:
    """A shell on the host: ``commands`` were started in it, and ``running`` of them may still be running."""

    id: str
    commands: int = 0
    running: int = 0


@dataclass(slots=True)
class RunningCommand:
    job: Job
    shell: RemoteShell
    id: str


class WinRmWorker:
    """Runs jobs side by side, each by its own operations, one operation at a time.

    ``connect`` makes a client. Shells are replaced before a quota is reached; a shell with a command whose end is
    unknown is left to the host, which deletes it when it is idle: deleting it would end the command.
    """

    def __init__(self, connect: Callable[[], WinRmClient], label: str) -> None:
        self._connect, self._label = connect, label
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._running: list[RunningCommand] = []
        self._client: WinRmClient | None = None
        self._shell: RemoteShell | None = None
        self._last_used = monotonic()
        self._is_stopping = False
        self._thread = ContextThread(self._run, f"winrm-{label}")
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job; the job itself reports its end."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Stop the worker after the current operation; running commands are lost."""
        self._jobs.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end, at most so long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._is_stopping:
            self._take_jobs()
            for command in list(self._running):
                self._poll(command)
        self._disconnect()

    def _take_jobs(self) -> None:
        """Start the waiting jobs; wait for one if no command runs."""
        try:
            while True:
                job = self._jobs.get(block=not self._running and not self._is_stopping)
                if job is None:
                    self._is_stopping = True
                elif self._is_stopping:
                    job.fail(Unreachable(f"the session to {self._label} is closed"))
                else:
                    self._start(job)
        except Empty:
            return

    def _start(self, job: Job, is_retry: bool = False) -> None:
        if job.seconds_left <= 0:
            job.give_up(Unreachable(f"{self._label} did not take the command within {job.timeout:g} s"))
        if job.is_over:
            return
        try:
            shell = self._open_shell(job)
        except RequestFailure as failure:
            self._note(failure)
            job.fail(failure.error)
            return
        if job.line is None:
            self._ask(job)
        elif job.advance(Phase.SENT):
            self._send(job, shell, is_retry)

    def _ask(self, job: Job) -> None:
        """Answer the question of a job without a command, if it has one."""
        try:
            if job.question:
                job.question(self._connected(), job.seconds_left)
        except RequestFailure as failure:
            self._note(failure)
            job.fail(failure.error)
        else:
            job.answer(0)

    def _open_shell(self, job: Job) -> RemoteShell:
        """The present shell, or a new one if it is idle, used up or gone. Raises RequestFailure."""
        if monotonic() - self._last_used > MAX_IDLE and not self._running:
            self._drop()
        if self._shell and self._shell.commands >= MAX_COMMANDS:
            self._replace_shell()
        if self._shell is None:
            self._shell = RemoteShell(self._connected().create_shell(job.seconds_left))
        self._last_used = monotonic()
        return self._shell

    def _send(self, job: Job, shell: RemoteShell, is_retry: bool) -> None:
        assert job.line is not None  # noqa: S101 - jobs without one end before
        shell.commands += 1
        try:
            command = self._connected().start(shell.id, job.line, bool(job.stdin), job.seconds_left)
        except RequestFailure as failure:
            self._reject(job, failure, is_retry)
            return
        shell.running += 1
        job.advance(Phase.STARTED)
        running = RunningCommand(job, shell, command)
        self._running.append(running)
        self._send_stdin(running)

    def _reject(self, job: Job, failure: RequestFailure, is_retry: bool) -> None:
        """End a job whose command was not started, or may have been: then its shell is not used any more."""
        self._note(failure)
        if failure.code == OPERATIONS_QUOTA:
            self._replace_shell()
        elif failure.code == GONE or not failure.had_no_effect:
            self._shell = None
        if failure.code in (OPERATIONS_QUOTA, GONE) and not is_retry and job.advance(Phase.WAITING):
            self._start(job, is_retry=True)
        elif failure.had_no_effect:
            job.fail(failure.error)
        else:
            job.lose(f"{failure.error.message}; the command may have run")

    def _send_stdin(self, running: RunningCommand) -> None:
        """Send all of stdin, unless the host refuses a piece because the program has ended."""
        job = running.job
        for begin in range(0, len(job.stdin), STDIN_PIECE):
            piece, is_last = job.stdin[begin : begin + STDIN_PIECE], begin + STDIN_PIECE >= len(job.stdin)
            try:
                self._connected().send(running.shell.id, running.id, piece, is_last, job.seconds_left)
            except RequestFailure as failure:
                self._note(failure)
                if failure.breaks_connection:
                    self._lose(running, f"{failure.error.message}; the command may still be running")
                else:
                    job.notes.append(f"stdin was not taken as a whole: {failure.error.message}")
                return

    def _poll(self, running: RunningCommand) -> None:
        job = running.job
        if job.is_over or job.seconds_left <= 0 or self._is_stopping:
            reason = f"no answer within {job.timeout:g} s" if job.seconds_left <= 0 else "the session was closed"
            self._lose(running, f"{reason}; the command may still be running")
            return
        try:
            received = self._connected().receive(running.shell.id, running.id, min(POLL, job.seconds_left))
        except RequestFailure as failure:
            self._note(failure)
            self._lose(running, f"{failure.error.message}; the command was started, and its end is unknown")
            return
        self._last_used = monotonic()
        job.stdout.append(received.stdout)
        job.stderr.append(received.stderr)
        if received.exit is not None:
            job.answer(received.exit)
            self._finish(running)

    def _lose(self, running: RunningCommand, why: str) -> None:
        """End a job as lost. Its shell is no longer used, and never deleted."""
        self._running.remove(running)
        running.job.lose(why)
        if self._shell is running.shell:
            self._shell = None

    def _finish(self, running: RunningCommand) -> None:
        self._running.remove(running)
        running.shell.running -= 1
        self._clean_up(lambda client: client.end_command(running.shell.id, running.id, CLEANUP_TIMEOUT))
        if running.shell is not self._shell:
            self._delete_if_unused(running.shell)

    def _replace_shell(self) -> None:
        shell, self._shell = self._shell, None
        if shell:
            self._delete_if_unused(shell)

    def _delete_if_unused(self, shell: RemoteShell) -> None:
        if not shell.running:
            self._clean_up(lambda client: client.delete_shell(shell.id, CLEANUP_TIMEOUT))

    def _clean_up(self, do: Callable[[WinRmClient], None]) -> None:
        """Clean up a command. If that fails, the host cleans up when the shell is idle."""
        if self._client is None:
            return
        try:
            do(self._client)
        except RequestFailure as failure:
            self._note(failure)

    def _note(self, failure: RequestFailure) -> None:
        """Log a failure, and drop what cannot be used any more."""
        _log.debug("%s", failure.error.message, exc_info=failure)
        if failure.breaks_connection:
            self._drop()

    def _drop(self) -> None:
        """Forget the connection and the shell, without notifying the host."""
        client, self._client, self._shell = self._client, None, None
        if client:
            client.close()

    def _connected(self) -> WinRmClient:
        self._client = self._client or self._connect()
        return self._client

    def _disconnect(self) -> None:
        self._replace_shell()
        self._drop()
