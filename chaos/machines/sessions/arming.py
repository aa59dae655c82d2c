"""Shared parts of sessions: commands that are armed, released with one line and awaited, deferred or retried."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from threading import Lock
from time import monotonic

from msgspec import structs

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.ports import Armed, Clock, RelayedSession, ServiceSession, Session
from chaos.core.text import printable
from chaos.core.threads import ContextThread
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.process import ExitReason, Process
from chaos.machines.sessions.script import CALIBRATION_TIMEOUT, HostClock
from chaos.machines.sessions.settings import HostSettings

_NO_LONGER_READY = "the command is no longer waiting on the host"
_NOT_FOUND = 127  # exit code of a shell
_QUOTED = 300  # characters of a greeting that errors quote, its first ones


def outcome_of(command: HostCommand, process: Process, label: str, exit_reason: ExitReason) -> Outcome:
    """The outcome of a program that has ended, or whose end is unknown; ``label`` names the host.

    If a process has ended without a start mark, it ran nothing. If it may still be running, it may still start.
    """
    reason = {
        ExitReason.EXITED: f"{label} ended the command before its end was reported",
        ExitReason.KILLED: f"{label} ended the command by a signal before its end was reported",
        ExitReason.LOST: f"the connection to {label} was lost before the command ended",
        ExitReason.TIMED_OUT: f"no answer within {command.timeout:g} s; the command may still be running",
    }[exit_reason]
    delivery = Delivery.LOST
    if process.exit is not None:
        delivery, reason = Delivery.ANSWERED, ""
    elif not process.has_started:
        reason = f"{reason}; {quote_greeting(process)}"
        if exit_reason in (ExitReason.EXITED, ExitReason.KILLED):
            delivery, reason = Delivery.NOT_SENT, not_started(process, label)
    return Outcome(
        delivery,
        exit=process.exit,
        stdout=process.stdout,
        stderr=process.stderr,
        error="; ".join(filter(None, (reason, process.note))),
    )


def quote_greeting(process: Process) -> str:
    """The text that the host printed instead of the start mark."""
    text = printable(process.greeting, _QUOTED)
    return f"the host printed {text!r}" if text else "the host printed nothing"


def not_started(process: Process, label: str) -> str:
    """The error for a command whose process has ended without a start mark."""
    return f"the command did not start on {label}: {quote_greeting(process)}"


def login_error(process: Process, exit_code: int | None, settings: HostSettings) -> NodefallError:
    """The error for a command over SSH that has ended without its start mark; ``exit_code`` is the login shell's."""
    name, user = settings.name, settings.user
    if not process.has_shell:
        hint = f"the login shell of {user} must run commands: check its start-up files, ForceCommand and command="
        return Unreachable(not_started(process, settings.label), hint=hint)
    said = quote_greeting(process)
    if exit_code == _NOT_FOUND:
        return Refused(f"sudo is not installed on {name}: {said}", hint="install it, or log in as root")
    line = f"{user} ALL=(root) NOPASSWD: ALL"
    return Refused(
        f"sudo on {name} did not start the command for {user}: {said}",
        hint=f"put the line `{line}` in /etc/sudoers.d/nodefall there",
    )


class ArmedCommand:
    """Implements ``chaos.core.ports.Armed``: a command that waits on the host to be released or cancelled.

    ``process`` runs the shell script of ``script``; ``outcome`` maps how the process ended to the command's outcome.
    """

    def __init__(
        self, command: HostCommand, process: Process, clock: HostClock, outcome: Callable[[ExitReason], Outcome]
    ) -> None:
        self._command, self._process, self._clock, self._outcome = command, process, clock, outcome
        self._is_released = False
        self._not_sent: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:
        """Measure the host's clock; a failure meanwhile shows in the result of :meth:`wait`."""
        self._process.extend(monotonic() + CALIBRATION_TIMEOUT)
        try:
            return self._clock.measure(now, self._process.send, self._process.read_line)
        except (OSError, EOFError):
            return False

    def release(self, at: float | None = None) -> None:
        """Release the command with one write; not sent if the command is no longer waiting."""
        if self._is_released:
            return
        self._is_released, process = True, self._process
        if not process.is_running:
            self._not_sent = Outcome(Delivery.NOT_SENT, stderr=process.stderr, error=_NO_LONGER_READY)
            return
        process.extend(monotonic() + self._command.timeout)
        try:
            process.send(self._clock.clock_argument(at))
        except (OSError, EOFError) as error:
            self._not_sent = Outcome(Delivery.NOT_SENT, error=f"the connection was lost before: {error}")
            return
        process.write_stdin(self._command.stdin)

    def wait(self) -> Outcome:
        """Release the command if it is still armed, and wait for its end. May be called once."""
        with closing(self._process) as process:
            self.release()
            if self._not_sent:
                return self._not_sent
            self._not_sent = Outcome(Delivery.NOT_SENT, error=_NO_LONGER_READY)
            start = self._clock.read_start_time(process.read_line)
            return structs.replace(self._outcome(process.wait()), began=start)

    def cancel(self) -> None:
        """Close the input: the script ends without running anything."""
        self._process.close()


class ArmingSession(ABC):
    """A session each of whose commands is armed first, so that "not sent" is certain. Thread safe."""

    def __init__(self, pin: HostKeyPin | None, ready_timeout: float) -> None:
        self._pin, self._ready_timeout = pin or HostKeyPin(), ready_timeout
        self._processes: list[Process] = []
        self._lock = Lock()

    @abstractmethod
    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting on the host. Raises NodefallError; then nothing has run."""

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; failures are in the outcome."""
        try:
            armed = self.arm(command)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=with_hint(error))
        return armed.wait()

    def close(self) -> None:
        """Disconnect. Running commands continue on the host; armed commands end without running."""
        with self._lock:
            for process in self._processes:
                process.kill()

    def _armed(self, command: HostCommand, process: Process, label: str, version: str) -> ArmedCommand:
        """The command waiting in ``process``; its shell has reported ``version``."""
        with self._lock:
            self._processes = [each for each in self._processes if not each.closed] + [process]
        clock = HostClock(bool(version))
        return ArmedCommand(command, process, clock, lambda reason: outcome_of(command, process, label, reason))


def with_hint(error: NodefallError) -> str:
    """The message of an error, with its hint."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


class DeferredCommand:
    """Implements ``chaos.core.ports.Armed`` by ``run``, which sends a command and waits for its end.

    The connection is open, so that the command starts with one request; the start is not reported by the host.
    """

    def __init__(self, command: HostCommand, run: Callable[[HostCommand], Outcome]) -> None:
        self._command, self._run = command, run
        self._thread: ContextThread | None = None
        self._is_cancelled = False
        self._outcome: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:  # noqa: ARG002 - a start at a set time is impossible
        """False: the command starts when it is released."""
        return False

    def release(self, at: float | None = None) -> None:  # noqa: ARG002 - never calibrated
        """Send the command, without waiting."""
        if self._thread is None and not self._is_cancelled:
            self._thread = ContextThread(self._send)
            self._thread.start()

    def wait(self) -> Outcome:
        """Release the command if it is still armed, and wait for its end. May be called once."""
        self.release()
        if self._thread is not None:
            self._thread.join()
        outcome, self._outcome, self._is_cancelled = self._outcome, None, True
        return outcome or Outcome(Delivery.NOT_SENT, error="the command is no longer armed")

    def cancel(self) -> None:
        """Never send the command, unless it was already sent."""
        self._is_cancelled = True

    def _send(self) -> None:
        self._outcome = Outcome(Delivery.LOST, error="sending the command failed; it may have run")  # if run raises
        self._outcome = self._run(self._command)


class RetryingSession:
    """At most ``tries`` attempts, ``pause`` seconds of cluster time apart; stops when the clock is woken."""

    def __init__(self, session: Session, clock: Clock, tries: int = 3, pause: float = 1.0) -> None:
        self._session, self._clock, self._tries, self._pause = session, clock, tries, pause

    def run(self, command: HostCommand) -> Outcome:
        """Run a command, with retries; lost and answered commands are not retried."""
        outcome = self._session.run(command)
        for _ in range(self._tries - 1):
            if outcome.delivery != Delivery.NOT_SENT or not self._clock.sleep(self._pause):
                break
            outcome = self._session.run(command)
        return outcome

    def arm(self, command: HostCommand) -> Armed:
        """Arm a command, with retries: arming has no effect on the host."""
        for _ in range(self._tries - 1):
            try:
                return self._session.arm(command)
            except Unreachable:
                if not self._clock.sleep(self._pause):
                    break
        return self._session.arm(command)

    def client_address(self) -> str:
        """The address that the session reports, or ""."""
        return self._session.client_address() if isinstance(self._session, ServiceSession) else ""

    def service_quotas(self) -> dict[str, int]:
        """The quotas that the session reports, or {}."""
        return self._session.service_quotas() if isinstance(self._session, ServiceSession) else {}

    def connect(self) -> None:
        """Connect now, if the session would connect only when first needed."""
        if isinstance(self._session, RelayedSession):
            self._session.connect()

    def peer(self) -> dict[str, str | int]:
        """The peer that the session reports; {} if its programs can see it themselves."""
        return self._session.peer() if isinstance(self._session, RelayedSession) else {}

    def close(self) -> None:
        """Close the session."""
        self._session.close()
