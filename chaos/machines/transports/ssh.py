"""Sessions over SSH: one connection per host, many commands on it, three-valued delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock, Timer
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import structs

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.machines.host_key_pin import HostKeyPin
from chaos.machines.transports.channel_io import ChannelProcess, ExitReason, is_disconnected
from chaos.machines.transports.connection import SshConnection, close_quietly, connect
from chaos.machines.transports.deferred import DeferredCommand
from chaos.machines.transports.host_clock import CALIBRATION_TIMEOUT, HostClock
from chaos.machines.transports.script import armed_command_line, command_line, has_host_clock, is_ready, sudo_refusal
from chaos.machines.transports.settings import HostSettings
from chaos.machines.windows_command_line import normalize_line_ends, shell_command_line

if TYPE_CHECKING:
    from paramiko import Channel

_NO_LONGER_READY = "the command is no longer waiting on the host"
MAX_CHANNELS = 8  # at once; sshd's MaxSessions is 10
_SESSION_END_GRACE = 2.0  # seconds in which sshd may still count sessions that have ended
_RETRY_INTERVAL = 0.05


class LostBeforeStart(Exception):
    """The connection broke after the command was sent and before the host confirmed: it may have run."""


@dataclass(slots=True)
class RemoteCommand:
    """A program on a channel. Closing it closes the channel and releases its slot, once."""

    channel: Channel
    process: ChannelProcess
    release_slot: Callable[[], None]
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
            close_quietly(self.channel.close)
            self.release_slot()


def open_session(settings: HostSettings, pin: HostKeyPin | None = None) -> SshSession:
    """A connected session. Raises Unreachable, or Refused for host keys or identity files that cannot be used."""
    session = SshSession(settings, pin)
    session.connect()
    return session


class SshSession:
    """Thread safe; implements ``chaos.core.ports.Session``. Connects when first needed, and again after a loss.

    Each connection must present the host key of ``pin``.
    """

    def __init__(self, settings: HostSettings, pin: HostKeyPin | None = None) -> None:
        self.settings = settings
        self._pin = pin or HostKeyPin()
        self._connection: SshConnection | None = None
        self._lock = Lock()
        self._slots = BoundedSemaphore(MAX_CHANNELS)

    def connect(self) -> SshConnection:
        """The connection, opened if there is none. Raises Unreachable or Refused."""
        with self._lock:
            if self._connection is None or not self._connection.is_alive:
                self._disconnect()
                self._connection = connect(self.settings, self._pin)
            return self._connection

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; failures are in the outcome."""
        deadline = monotonic() + command.timeout
        try:
            remote = self._start(self._command_line(command), deadline)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=_describe(error))
        except LostBeforeStart as error:
            return Outcome(Delivery.LOST, error=str(error))
        with remote:
            remote.process.write_stdin(command.stdin)
            return self._outcome(command, remote, remote.process.wait())

    def arm(self, command: HostCommand) -> ArmedCommand | DeferredCommand:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused if sudo rejects it.

        On Windows nothing waits there: one request on the open connection starts it.
        """
        if self.settings.windows_shell:
            self._command_line(command)
            self.connect()
            return DeferredCommand(command, self.run)
        timeout = self.settings.connect_timeout
        try:
            remote = self._start(armed_command_line(command.argv, self._prefix(command)), monotonic() + timeout)
        except LostBeforeStart as error:
            raise Unreachable(str(error)) from error
        first_line = remote.process.read_line()
        if is_ready(first_line):
            return ArmedCommand(command, remote, HostClock(has_host_clock(first_line)), self._outcome)
        with remote:
            refusal = self._refusal(command, remote.process.stderr)
            if refusal:
                raise Refused(refusal)
            why = remote.process.stderr.strip() or f"no answer within {timeout:g} s"
            raise Unreachable(f"{command} could not be armed on {self.settings.label}: {why}")

    def close(self) -> None:
        """Disconnect. Programs that run on the host go on."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _command_line(self, command: HostCommand) -> str:
        """For the login shell. Raises Refused for what cannot be sent to Windows."""
        if shell := self.settings.windows_shell:
            return shell_command_line(command.argv, shell)
        return command_line(command.argv, self._prefix(command))

    def _prefix(self, command: HostCommand) -> tuple[str, ...]:
        return self.settings.sudo_prefix if command.sudo else ()

    def _start(self, text: str, deadline: float) -> RemoteCommand:
        """Start ``text`` on a new channel. Raises NodefallError (not sent) or LostBeforeStart."""
        if not self._slots.acquire(timeout=max(deadline - monotonic(), 0)):
            raise Unreachable(f"{MAX_CHANNELS} commands are already running on {self.settings.label}")
        try:
            connection, channel = self._open_channel()
            try:
                self._execute(connection, channel, text, deadline)
            except BaseException:
                close_quietly(channel.close)
                raise
            return RemoteCommand(channel, ChannelProcess(channel, connection.transport, deadline), self._slots.release)
        except BaseException:
            self._slots.release()
            raise

    def _open_channel(self) -> tuple[SshConnection, Channel]:
        """A new channel. A connection that turns out to be broken is replaced once: nothing was sent on it."""
        import paramiko  # noqa: PLC0415 - slow

        for last in (False, True):
            connection = self.connect()
            try:
                return connection, self._open_session_channel(connection)
            except (paramiko.SSHException, EOFError, OSError) as error:
                connection.close()
                if last:
                    raise Unreachable(
                        f"{self.settings.label} rejected a channel: {error or 'the connection is dead'}"
                    ) from error
        raise AssertionError  # the loop returns or raises

    def _open_session_channel(self, connection: SshConnection) -> Channel:
        """A channel of the connection. A rejection is retried: sshd may still count sessions that have ended."""
        import paramiko  # noqa: PLC0415 - slow

        until = monotonic() + _SESSION_END_GRACE
        while True:
            try:
                return connection.transport.open_session(timeout=self.settings.connect_timeout)
            except paramiko.SSHException as error:
                # Of two rejections at one moment paramiko raises ChannelException for one only.
                is_rejection = isinstance(error, paramiko.ChannelException) or str(error) == "Unable to open channel."
                if not is_rejection or not connection.is_alive:
                    raise
                if monotonic() >= until:
                    raise Unreachable(
                        f"{self.settings.label} rejected more channels: {error}", hint="raise MaxSessions of its sshd"
                    ) from error
            connection.transport.join(_RETRY_INTERVAL)

    def _execute(self, connection: SshConnection, channel: Channel, text: str, deadline: float) -> None:
        """Request the execution of ``text`` and wait for the confirmation; paramiko alone would wait for ever."""
        import paramiko  # noqa: PLC0415 - slow

        timer = Timer(max(deadline - monotonic(), 0), channel.close)
        timer.daemon = True
        timer.start()
        try:
            channel.exec_command(text.encode())
        except (paramiko.SSHException, EOFError, OSError) as error:
            if monotonic() >= deadline or is_disconnected(connection.transport):
                raise LostBeforeStart(
                    f"the connection to {self.settings.label} was lost while the command was sent"
                ) from error
            raise Unreachable(f"{self.settings.label} rejected the command: {error}") from error
        finally:
            timer.cancel()

    def _outcome(self, command: HostCommand, remote: RemoteCommand, exit_reason: ExitReason) -> Outcome:
        process = remote.process
        stdout, stderr = process.stdout, process.stderr
        if self.settings.windows_shell:
            stdout, stderr = normalize_line_ends(stdout), normalize_line_ends(stderr)
        base = Outcome(Delivery.ANSWERED, stdout=stdout, stderr=stderr, error=process.note)
        if exit_reason is ExitReason.EXITED:
            refusal = self._refusal(command, process.stderr) if remote.channel.exit_status in (1, 127) else ""
            delivery = Delivery.NOT_SENT if refusal else Delivery.ANSWERED
            return structs.replace(
                base, delivery=delivery, exit=remote.channel.exit_status, error=refusal or base.error
            )
        reason = {
            ExitReason.KILLED: "the command was ended by a signal",
            ExitReason.LOST: f"the connection to {self.settings.label} was lost before the command ended",
            ExitReason.TIMED_OUT: f"no answer within {command.timeout:g} s; the command may still be running",
        }[exit_reason]
        delivery = Delivery.ANSWERED if exit_reason is ExitReason.KILLED else Delivery.LOST
        return structs.replace(base, delivery=delivery, error="; ".join(filter(None, (reason, base.error))))

    def _refusal(self, command: HostCommand, stderr: str) -> str:
        if not self._prefix(command):
            return ""
        return sudo_refusal(stderr, self.settings.name, self.settings.user)


class ArmedCommand:
    """Implements ``chaos.core.ports.Armed``: a command that waits on the host to be released or cancelled."""

    def __init__(
        self,
        command: HostCommand,
        remote: RemoteCommand,
        clock: HostClock,
        outcome: Callable[[HostCommand, RemoteCommand, ExitReason], Outcome],
    ) -> None:
        self._command, self._remote, self._clock, self._outcome = command, remote, clock, outcome
        self._is_released = False
        self._not_sent: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:
        """Measure the host's clock; a connection that breaks meanwhile shows in the result of :meth:`wait`."""
        process, channel = self._remote.process, self._remote.channel
        process.extend(monotonic() + CALIBRATION_TIMEOUT)
        try:
            return self._clock.measure(now, lambda text: channel.sendall(text.encode()), process.read_line)
        except (OSError, EOFError):
            return False

    def release(self, at: float | None = None) -> None:
        """Release the command with one write; not sent if the command is no longer waiting."""
        if self._is_released:
            return
        self._is_released, remote = True, self._remote
        if remote.closed or remote.channel.exit_status_ready():
            self._not_sent = Outcome(Delivery.NOT_SENT, stderr=remote.process.stderr, error=_NO_LONGER_READY)
            return
        remote.process.extend(monotonic() + self._command.timeout)
        try:
            remote.channel.sendall(self._clock.clock_argument(at).encode())
        except (OSError, EOFError) as error:
            self._not_sent = Outcome(Delivery.NOT_SENT, error=f"the connection was lost before: {error}")
            return
        remote.process.write_stdin(self._command.stdin)

    def wait(self) -> Outcome:
        """Release the command if it is still armed, and wait for its end. Once."""
        remote = self._remote
        with remote:
            self.release()
            if self._not_sent:
                return self._not_sent
            self._not_sent = Outcome(Delivery.NOT_SENT, error=_NO_LONGER_READY)
            start = self._clock.read_start_time(remote.process.read_line)
            outcome = self._outcome(self._command, remote, remote.process.wait())
            return structs.replace(outcome, began=start)

    def cancel(self) -> None:
        """Close the input: the script ends without running anything."""
        self._remote.close()


def _describe(error: NodefallError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
