"""Sessions over SSH: one connection per host, many commands on it, three-valued delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock, Timer
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import structs

from chaos.model.command import ANSWERED, LOST, NOT_SENT, HostCommand, Outcome
from chaos.model.errors import NodefallError, Refused, Unreachable
from chaos.transports.exchange import Ended, Exchange, is_dying
from chaos.transports.hostclock import TUNING, HostClock
from chaos.transports.line import Line, open_line, part
from chaos.transports.script import armed_line, command_line, sudo_refusal, tells, waits
from chaos.transports.settings import HostSettings

if TYPE_CHECKING:
    from paramiko import Channel

_OVER = "it no longer waits on the host"
CHANNELS = 8  # at once; sshd's MaxSessions is 10
_ENDING = 2.0  # seconds in which sshd may still count sessions that have ended
_AGAIN = 0.05


class LostAtStart(Exception):
    """The line broke after the command was sent and before the host said yes: it may have run."""


@dataclass(slots=True)
class Job:
    """A program on a channel; leaving it closes the channel and gives its slot back, once."""

    channel: Channel
    exchange: Exchange
    release: Callable[[], None]
    closed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            part(self.channel.close)
            self.release()


def open_session(settings: HostSettings) -> SshSession:
    """An open session. Raises Unreachable, or Refused where the host or our key cannot be trusted or used."""
    session = SshSession(settings)
    session.connect()
    return session


class SshSession:
    """Thread safe; implements ``chaos.model.ports.Session``. Connects when first needed, and again after a loss."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self._line: Line | None = None
        self._lock = Lock()
        self._slots = BoundedSemaphore(CHANNELS)

    def connect(self) -> Line:
        """The line, opened if there is none. Raises Unreachable or Refused."""
        with self._lock:
            if self._line is None or not self._line.alive:
                self._drop()
                self._line = open_line(self.settings)
            return self._line

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; what goes wrong is told by the outcome."""
        deadline = monotonic() + command.timeout
        try:
            job = self._start(command_line(command.argv, self._prefix(command)), deadline)
        except NodefallError as error:
            return Outcome(NOT_SENT, error=_told(error))
        except LostAtStart as error:
            return Outcome(LOST, error=str(error))
        with job:
            job.exchange.feed(command.stdin)
            return self._outcome(command, job, job.exchange.finish())

    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused if sudo does not let us."""
        timeout = self.settings.connect_timeout
        try:
            job = self._start(armed_line(command.argv, self._prefix(command)), monotonic() + timeout)
        except LostAtStart as error:
            raise Unreachable(str(error)) from error
        said = job.exchange.line()
        if waits(said):
            return ArmedCommand(command, job, HostClock(tells(said)), self._outcome)
        with job:
            refusal = self._refusal(command, job.exchange.stderr)
            if refusal:
                raise Refused(refusal)
            why = job.exchange.stderr.strip() or f"no answer in {timeout:g} s"
            raise Unreachable(f"{command} could not be made ready on {self.settings.label}: {why}")

    def close(self) -> None:
        """Hang up; programs that still run there are left alone."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        line, self._line = self._line, None
        if line:
            line.close()

    def _prefix(self, command: HostCommand) -> tuple[str, ...]:
        return self.settings.prefix if command.sudo else ()

    def _start(self, text: str, deadline: float) -> Job:
        """Start ``text`` on a channel of its own. Raises NodefallError (not sent) or LostAtStart."""
        if not self._slots.acquire(timeout=max(deadline - monotonic(), 0)):
            raise Unreachable(f"{CHANNELS} commands are already running on {self.settings.label}")
        try:
            line, channel = self._channel()
            try:
                self._execute(line, channel, text, deadline)
            except BaseException:
                part(channel.close)
                raise
            return Job(channel, Exchange(channel, line.transport, deadline), self._slots.release)
        except BaseException:
            self._slots.release()
            raise

    def _channel(self) -> tuple[Line, Channel]:
        """A new channel; a line that turns out to be dead is replaced once, as nothing was sent on it."""
        import paramiko  # noqa: PLC0415 - slow

        for last in (False, True):
            line = self.connect()
            try:
                return line, self._open(line)
            except (paramiko.SSHException, EOFError, OSError) as error:
                line.close()
                if last:
                    raise Unreachable(
                        f"{self.settings.label} opens no channel: {error or 'the line is dead'}"
                    ) from error
        raise AssertionError  # the loop returns or raises

    def _open(self, line: Line) -> Channel:
        """A refusal is asked about again: sshd may still count sessions that have ended. Nothing was sent."""
        import paramiko  # noqa: PLC0415 - slow

        until = monotonic() + _ENDING
        while True:
            try:
                return line.transport.open_session(timeout=self.settings.connect_timeout)
            except paramiko.SSHException as error:
                # Of two refusals at one moment paramiko tells only one what it is.
                refused = isinstance(error, paramiko.ChannelException) or str(error) == "Unable to open channel."
                if not refused or not line.alive:
                    raise
                if monotonic() >= until:
                    raise Unreachable(
                        f"{self.settings.label} opens no more channels: {error}", hint="raise MaxSessions of its sshd"
                    ) from error
            line.transport.join(_AGAIN)

    def _execute(self, line: Line, channel: Channel, text: str, deadline: float) -> None:
        """Ask the host to run ``text`` and wait for its yes; paramiko itself would wait for ever."""
        import paramiko  # noqa: PLC0415 - slow

        timer = Timer(max(deadline - monotonic(), 0), channel.close)
        timer.daemon = True
        timer.start()
        try:
            channel.exec_command(text.encode())
        except (paramiko.SSHException, EOFError, OSError) as error:
            if monotonic() >= deadline or is_dying(line.transport):
                raise LostAtStart(f"the line to {self.settings.label} was lost while the command was sent") from error
            raise Unreachable(f"{self.settings.label} refuses to run commands: {error}") from error
        finally:
            timer.cancel()

    def _outcome(self, command: HostCommand, job: Job, ended: Ended) -> Outcome:
        exchange = job.exchange
        base = Outcome(ANSWERED, stdout=exchange.stdout, stderr=exchange.stderr, error=exchange.note)
        if ended is Ended.EXITED:
            refusal = self._refusal(command, exchange.stderr) if job.channel.exit_status in (1, 127) else ""
            delivery = NOT_SENT if refusal else ANSWERED
            return structs.replace(base, delivery=delivery, exit=job.channel.exit_status, error=refusal or base.error)
        reason = {
            Ended.KILLED: "it was ended by a signal",
            Ended.LOST: f"the line to {self.settings.label} was lost before it ended",
            Ended.LATE: f"no answer in {command.timeout:g} s; it may still be running",
        }[ended]
        delivery = ANSWERED if ended is Ended.KILLED else LOST
        return structs.replace(base, delivery=delivery, error="; ".join(filter(None, (reason, base.error))))

    def _refusal(self, command: HostCommand, stderr: str) -> str:
        if not self._prefix(command):
            return ""
        return sudo_refusal(stderr, self.settings.name, self.settings.user)


class ArmedCommand:
    """Implements ``chaos.model.ports.Armed``; waits on the host until it is fired or cancelled, once."""

    def __init__(
        self,
        command: HostCommand,
        job: Job,
        clock: HostClock,
        outcome: Callable[[HostCommand, Job, Ended], Outcome],
    ) -> None:
        self._command, self._job, self._clock, self._outcome = command, job, clock, outcome
        self._gone = False
        self._unsent: Outcome | None = None

    def tune(self, now: Callable[[], float]) -> bool:
        """A few questions and answers; a line that breaks meanwhile is told by :meth:`go`."""
        exchange, channel = self._job.exchange, self._job.channel
        exchange.extend(monotonic() + TUNING)
        try:
            return self._clock.measure(now, lambda text: channel.sendall(text.encode()), exchange.line)
        except (OSError, EOFError):
            return False

    def go(self, at: float | None = None) -> None:
        """One write. Not sent if it no longer waits."""
        if self._gone:
            return
        self._gone, job = True, self._job
        if job.closed or job.channel.exit_status_ready():
            self._unsent = Outcome(NOT_SENT, stderr=job.exchange.stderr, error=_OVER)
            return
        job.exchange.extend(monotonic() + self._command.timeout)
        try:
            job.channel.sendall(self._clock.word(at).encode())
        except (OSError, EOFError) as error:
            self._unsent = Outcome(NOT_SENT, error=f"the line was lost before: {error}")
            return
        job.exchange.feed(self._command.stdin)

    def fire(self) -> Outcome:
        """Go, if it has not, and wait for the end. Once."""
        job = self._job
        with job:
            self.go()
            if self._unsent:
                return self._unsent
            self._unsent = Outcome(NOT_SENT, error=_OVER)
            began = self._clock.began(job.exchange.line)
            outcome = self._outcome(self._command, job, job.exchange.finish())
            return structs.replace(outcome, began=began)

    def cancel(self) -> None:
        """Close its input: the script ends without running anything."""
        self._job.close()


def _told(error: NodefallError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
