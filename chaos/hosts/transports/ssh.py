"""Sessions over SSH: one connection per host, many commands on it, three-valued delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock, Timer
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import structs

from chaos.hosts.driver import HostContext, TransportDriver
from chaos.hosts.transports.channel_io import ChannelProcess, ExitReason, is_disconnected
from chaos.hosts.transports.connection import SshConnection, close_quietly, connect
from chaos.hosts.transports.host_clock import CALIBRATION_TIMEOUT, HostClock
from chaos.hosts.transports.script import armed_command_line, command_line, has_host_clock, is_ready, sudo_refusal
from chaos.hosts.transports.settings import HostSettings, host_settings
from chaos.model.command import Delivery, HostCommand, Outcome
from chaos.model.errors import NodefallError, Refused, Unreachable

if TYPE_CHECKING:
    from paramiko import Channel

_NO_LONGER_READY = "it no longer waits on the host"
MAX_CHANNELS = 8  # at once; sshd's MaxSessions is 10
_SESSION_END_GRACE = 2.0  # seconds in which sshd may still count sessions that have ended
_RETRY_INTERVAL = 0.05


class LostBeforeStart(Exception):
    """The line broke after the command was sent and before the host said yes: it may have run."""


@dataclass(slots=True)
class RemoteCommand:
    """A program on a channel; leaving it closes the channel and gives its slot back, once."""

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


def open_session(settings: HostSettings) -> SshSession:
    """An open session. Raises Unreachable, or Refused where the host or our key cannot be trusted or used."""
    session = SshSession(settings)
    session.connect()
    return session


class SshSession:
    """Thread safe; implements ``chaos.model.ports.Session``. Connects when first needed, and again after a loss."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self._connection: SshConnection | None = None
        self._lock = Lock()
        self._slots = BoundedSemaphore(MAX_CHANNELS)

    def connect(self) -> SshConnection:
        """The line, opened if there is none. Raises Unreachable or Refused."""
        with self._lock:
            if self._connection is None or not self._connection.is_alive:
                self._disconnect()
                self._connection = connect(self.settings)
            return self._connection

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; what goes wrong is told by the outcome."""
        deadline = monotonic() + command.timeout
        try:
            job = self._start(command_line(command.argv, self._prefix(command)), deadline)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=_describe(error))
        except LostBeforeStart as error:
            return Outcome(Delivery.LOST, error=str(error))
        with job:
            job.process.write_stdin(command.stdin)
            return self._outcome(command, job, job.process.wait())

    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused if sudo does not let us."""
        timeout = self.settings.connect_timeout
        try:
            job = self._start(armed_command_line(command.argv, self._prefix(command)), monotonic() + timeout)
        except LostBeforeStart as error:
            raise Unreachable(str(error)) from error
        said = job.process.read_line()
        if is_ready(said):
            return ArmedCommand(command, job, HostClock(has_host_clock(said)), self._outcome)
        with job:
            refusal = self._refusal(command, job.process.stderr)
            if refusal:
                raise Refused(refusal)
            why = job.process.stderr.strip() or f"no answer in {timeout:g} s"
            raise Unreachable(f"{command} could not be made ready on {self.settings.label}: {why}")

    def close(self) -> None:
        """Hang up; programs that still run there are left alone."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        line, self._connection = self._connection, None
        if line:
            line.close()

    def _prefix(self, command: HostCommand) -> tuple[str, ...]:
        return self.settings.sudo_prefix if command.sudo else ()

    def _start(self, text: str, deadline: float) -> RemoteCommand:
        """Start ``text`` on a channel of its own. Raises NodefallError (not sent) or LostAtStart."""
        if not self._slots.acquire(timeout=max(deadline - monotonic(), 0)):
            raise Unreachable(f"{MAX_CHANNELS} commands are already running on {self.settings.label}")
        try:
            line, channel = self._open_channel()
            try:
                self._execute(line, channel, text, deadline)
            except BaseException:
                close_quietly(channel.close)
                raise
            return RemoteCommand(channel, ChannelProcess(channel, line.transport, deadline), self._slots.release)
        except BaseException:
            self._slots.release()
            raise

    def _open_channel(self) -> tuple[SshConnection, Channel]:
        """A new channel; a line that turns out to be dead is replaced once, as nothing was sent on it."""
        import paramiko  # noqa: PLC0415 - slow

        for last in (False, True):
            line = self.connect()
            try:
                return line, self._open_session_channel(line)
            except (paramiko.SSHException, EOFError, OSError) as error:
                line.close()
                if last:
                    raise Unreachable(
                        f"{self.settings.label} opens no channel: {error or 'the line is dead'}"
                    ) from error
        raise AssertionError  # the loop returns or raises

    def _open_session_channel(self, line: SshConnection) -> Channel:
        """A refusal is asked about again: sshd may still count sessions that have ended. Nothing was sent."""
        import paramiko  # noqa: PLC0415 - slow

        until = monotonic() + _SESSION_END_GRACE
        while True:
            try:
                return line.transport.open_session(timeout=self.settings.connect_timeout)
            except paramiko.SSHException as error:
                # Of two refusals at one moment paramiko tells only one what it is.
                refused = isinstance(error, paramiko.ChannelException) or str(error) == "Unable to open channel."
                if not refused or not line.is_alive:
                    raise
                if monotonic() >= until:
                    raise Unreachable(
                        f"{self.settings.label} opens no more channels: {error}", hint="raise MaxSessions of its sshd"
                    ) from error
            line.transport.join(_RETRY_INTERVAL)

    def _execute(self, line: SshConnection, channel: Channel, text: str, deadline: float) -> None:
        """Ask the host to run ``text`` and wait for its yes; paramiko itself would wait for ever."""
        import paramiko  # noqa: PLC0415 - slow

        timer = Timer(max(deadline - monotonic(), 0), channel.close)
        timer.daemon = True
        timer.start()
        try:
            channel.exec_command(text.encode())
        except (paramiko.SSHException, EOFError, OSError) as error:
            if monotonic() >= deadline or is_disconnected(line.transport):
                raise LostBeforeStart(
                    f"the line to {self.settings.label} was lost while the command was sent"
                ) from error
            raise Unreachable(f"{self.settings.label} refuses to run commands: {error}") from error
        finally:
            timer.cancel()

    def _outcome(self, command: HostCommand, job: RemoteCommand, ended: ExitReason) -> Outcome:
        exchange = job.process
        base = Outcome(Delivery.ANSWERED, stdout=exchange.stdout, stderr=exchange.stderr, error=exchange.note)
        if ended is ExitReason.EXITED:
            refusal = self._refusal(command, exchange.stderr) if job.channel.exit_status in (1, 127) else ""
            delivery = Delivery.NOT_SENT if refusal else Delivery.ANSWERED
            return structs.replace(base, delivery=delivery, exit=job.channel.exit_status, error=refusal or base.error)
        reason = {
            ExitReason.KILLED: "it was ended by a signal",
            ExitReason.LOST: f"the line to {self.settings.label} was lost before it ended",
            ExitReason.TIMED_OUT: f"no answer in {command.timeout:g} s; it may still be running",
        }[ended]
        delivery = Delivery.ANSWERED if ended is ExitReason.KILLED else Delivery.LOST
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
        job: RemoteCommand,
        clock: HostClock,
        outcome: Callable[[HostCommand, RemoteCommand, ExitReason], Outcome],
    ) -> None:
        self._command, self._remote, self._clock, self._outcome = command, job, clock, outcome
        self._is_released = False
        self._not_sent: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:
        """A few questions and answers; a line that breaks meanwhile is told by :meth:`go`."""
        exchange, channel = self._remote.process, self._remote.channel
        exchange.extend(monotonic() + CALIBRATION_TIMEOUT)
        try:
            return self._clock.measure(now, lambda text: channel.sendall(text.encode()), exchange.read_line)
        except (OSError, EOFError):
            return False

    def release(self, at: float | None = None) -> None:
        """One write. Not sent if it no longer waits."""
        if self._is_released:
            return
        self._is_released, job = True, self._remote
        if job.closed or job.channel.exit_status_ready():
            self._not_sent = Outcome(Delivery.NOT_SENT, stderr=job.process.stderr, error=_NO_LONGER_READY)
            return
        job.process.extend(monotonic() + self._command.timeout)
        try:
            job.channel.sendall(self._clock.clock_argument(at).encode())
        except (OSError, EOFError) as error:
            self._not_sent = Outcome(Delivery.NOT_SENT, error=f"the line was lost before: {error}")
            return
        job.process.write_stdin(self._command.stdin)

    def wait(self) -> Outcome:
        """Go, if it has not, and wait for the end. Once."""
        job = self._remote
        with job:
            self.release()
            if self._not_sent:
                return self._not_sent
            self._not_sent = Outcome(Delivery.NOT_SENT, error=_NO_LONGER_READY)
            began = self._clock.read_start_time(job.process.read_line)
            outcome = self._outcome(self._command, job, job.process.wait())
            return structs.replace(outcome, began=began)

    def cancel(self) -> None:
        """Close its input: the script ends without running anything."""
        self._remote.close()


def _describe(error: NodefallError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


class SshTransport(TransportDriver):
    """OpenSSH servers, through jump hosts where the inventory names some."""

    name = "ssh"

    def open_session(self, host: HostContext) -> SshSession:
        address = "" if host.host.address else host.find_address()
        return open_session(host_settings(host.inventory, host.key, host.local, address))

    def jump_hosts(self, host: HostContext) -> tuple[HostSettings, ...]:
        return host_settings(host.inventory, host.key, host.local, host.node).jumps

    def sudo_user(self, host: HostContext) -> str:
        settings = host_settings(host.inventory, host.key, host.local)
        return settings.user if settings.sudo_prefix else ""


DRIVER = SshTransport()
