"""Transport to OpenSSH servers: one connection per host, many commands on it, three-valued delivery."""

from __future__ import annotations

from contextlib import closing, suppress
from threading import BoundedSemaphore, Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import structs

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Unreachable
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.sessions.arming import (
    ArmedCommand,
    DeferredCommand,
    login_error,
    outcome_of,
    quote_greeting,
    with_hint,
)
from chaos.machines.sessions.host_keys import HostKeyPin, KnownKeys, known_hosts_name, load_known_hosts
from chaos.machines.sessions.process import ExitReason
from chaos.machines.sessions.script import HostClock, armed_argv, draw_mark, framed_argv, login_line
from chaos.machines.sessions.settings import HostSettings, host_settings
from chaos.machines.transports.channel_io import ChannelProcess, is_disconnected
from chaos.machines.transports.connection import SshConnection, close_quietly, connect
from chaos.machines.windows_command_line import normalize_line_ends, shell_command_line

if TYPE_CHECKING:
    from paramiko import Channel

MAX_CHANNELS = 8  # at once; sshd's MaxSessions is 10
_SESSION_END_GRACE = 2.0  # seconds in which sshd may still count sessions that have ended
_RETRY_INTERVAL = 0.05


class LostBeforeStart(Exception):
    """The connection broke after the command was sent and before the host confirmed: it may have run."""


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
            process = self._start(*self._command_line(command), deadline)
        except NodefallError as error:
            return Outcome(Delivery.NOT_SENT, error=with_hint(error))
        except LostBeforeStart as error:
            return Outcome(Delivery.LOST, error=str(error))
        with closing(process):
            process.write_stdin(command.stdin)
            return self._outcome(command, process, process.wait())

    def arm(self, command: HostCommand) -> ArmedCommand | DeferredCommand:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused if sudo rejects it.

        On Windows nothing waits there: one request on the open connection starts it.
        """
        if self.settings.windows_shell:
            self._command_line(command)
            self.connect()
            return DeferredCommand(command, self.run)
        timeout, mark = self.settings.connect_timeout, draw_mark()
        line = login_line(armed_argv(command.argv, mark), mark, self._prefix(command))
        try:
            process = self._start(line, mark, monotonic() + timeout)
        except LostBeforeStart as error:
            raise Unreachable(str(error)) from error
        version = process.await_start()
        if version is not None:
            return ArmedCommand(
                command, process, HostClock(bool(version)), lambda reason: self._outcome(command, process, reason)
            )
        with closing(process):
            reason = process.wait()
            if reason in (ExitReason.EXITED, ExitReason.KILLED):
                raise login_error(process, process.channel_exit, self.settings)
            why = f"no answer within {timeout:g} s" if reason is ExitReason.TIMED_OUT else "the connection was lost"
            what = f"{command} could not be armed on {self.settings.label}"
            raise Unreachable(f"{what}: {why}; {quote_greeting(process)}")

    def close(self) -> None:
        """Disconnect. Programs that run on the host continue."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _command_line(self, command: HostCommand) -> tuple[str, str]:
        """The line for the login shell, and its output mark ("" on Windows). Raises Refused if it cannot be sent."""
        if shell := self.settings.windows_shell:
            return shell_command_line(command.argv, shell), ""
        mark = draw_mark()
        return login_line(framed_argv(command.argv, mark), mark, self._prefix(command)), mark

    def _prefix(self, command: HostCommand) -> tuple[str, ...]:
        return self.settings.sudo_prefix if command.sudo else ()

    def _start(self, text: str, mark: str, deadline: float) -> ChannelProcess:
        """Start ``text``, whose outputs ``mark`` frames, on a new channel.

        Raises NodefallError (not sent) or LostBeforeStart.
        """
        if not self._slots.acquire(timeout=max(deadline - monotonic(), 0)):
            raise Unreachable(f"{MAX_CHANNELS} commands are already running on {self.settings.label}")
        try:
            connection, channel = self._open_channel()
            try:
                self._execute(connection, channel, text, deadline)
            except BaseException:
                close_quietly(channel.close)
                raise
            return ChannelProcess(channel, connection.transport, mark, deadline, self._slots.release)
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

    def _outcome(self, command: HostCommand, process: ChannelProcess, exit_reason: ExitReason) -> Outcome:
        outcome = outcome_of(command, process, self.settings.label, exit_reason)
        if self.settings.windows_shell:
            stdout, stderr = normalize_line_ends(outcome.stdout), normalize_line_ends(outcome.stderr)
            outcome = structs.replace(outcome, stdout=stdout, stderr=stderr)
        if outcome.delivery is Delivery.NOT_SENT:
            outcome = structs.replace(
                outcome, error=with_hint(login_error(process, process.channel_exit, self.settings))
            )
        return outcome


class SshTransport(TransportDriver):
    """OpenSSH servers, through the jump hosts in the inventory."""

    name = "ssh"
    systems = frozenset({"linux", "windows"})

    def open_session(self, host: HostContext) -> SshSession:
        address = "" if host.host.address else host.find_address()
        return open_session(host_settings(host.inventory, host.key, host.local, address), host.pin)

    def jump_hosts(self, host: HostContext) -> tuple[HostSettings, ...]:
        return host_settings(host.inventory, host.key, host.local, host.node).jumps

    def known_keys(self, host: HostContext) -> frozenset[str]:
        with suppress(NodefallError):  # reported where the host is used
            settings = host_settings(host.inventory, host.key, host.local)
            path = settings.known_hosts
            known = host.shared.get(("known keys", path), lambda: KnownKeys(load_known_hosts(settings)))
            return known.of(known_hosts_name(settings))
        return frozenset()

    def sudo_user(self, host: HostContext) -> str:
        settings = host_settings(host.inventory, host.key, host.local)
        return settings.user if settings.sudo_prefix else ""


DRIVER = SshTransport()
