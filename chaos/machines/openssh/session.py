"""A session by the ssh program: each command is armed on the shared connection, and released with one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import BoundedSemaphore, Lock
from time import monotonic

from chaos.core.command import HostCommand
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.text import printable
from chaos.machines.openssh.call import SshCall, SshConfig
from chaos.machines.openssh.master import Master, start_master
from chaos.machines.sessions.arming import ArmedCommand, ArmingSession, login_error, quote_greeting
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.local_process import LocalProcess
from chaos.machines.sessions.login_slots import JUMP_LIMITER
from chaos.machines.sessions.process import ExitReason
from chaos.machines.sessions.script import armed_argv, draw_mark, login_line
from chaos.machines.sessions.settings import HostSettings

MAX_CLIENTS = 8  # at once; sshd's MaxSessions is 10
_SESSION_END_GRACE = 2.0  # seconds in which sshd may still count sessions that have ended
_END_GRACE = 0.2  # seconds in which a master ends whose connection has, and a client that has no output
_MAX_COMMAND = 200  # characters that errors quote
_OWN_ERROR = 255  # exit code of ssh itself
_REJECTED = "session request failed"  # what its client prints


class ClientProcess(LocalProcess):
    """A client of a master. Closing it calls ``release_slot``, once."""

    def __init__(self, argv: Sequence[str], mark: str, deadline: float, release_slot: Callable[[], None]) -> None:
        super().__init__(argv, mark, deadline)
        self._release_slot = release_slot

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._release_slot()


class OpensshSession(ArmingSession):
    """Thread safe; implements ``chaos.core.ports.Session``. Connects when first needed, and again after a loss.

    Each connection must present the host key of ``pin``.
    """

    def __init__(self, call: SshCall, config: SshConfig, settings: HostSettings, pin: HostKeyPin | None = None) -> None:
        super().__init__(pin, settings.connect_timeout)
        self.settings = settings
        self._call, self._config = call, config
        self._master: Master | None = None
        self._connecting = Lock()
        self._slots = BoundedSemaphore(MAX_CLIENTS)

    def connect(self) -> Master:
        """The connection, which is opened if necessary. Raises Unreachable or Refused."""
        with self._connecting:
            if self._master is None or not self._master.is_alive:
                self._disconnect()
                with _login_slots(self.settings, self._config):
                    self._master = start_master(self._call, self._config, self.settings, self._pin)
            return self._master

    def arm(self, command: HostCommand) -> ArmedCommand:
        """Start ``command`` waiting on the host. Raises Unreachable, or Refused if sudo rejects it: nothing has run."""
        until, is_second = monotonic() + _SESSION_END_GRACE, False
        while True:
            master = self.connect()
            process = self._start(master, command)
            version = process.await_start()
            if version is not None:
                return self._armed(command, process, self.settings.label, version)
            error = self._failure(process, command)
            process.close()
            if (
                master.wait_end(_END_GRACE) or not master.is_alive
            ):  # nothing has run on what turned out to be broken: once more on another one
                if is_second:
                    why = f"the connection to {self.settings.label} was lost before it started"
                    raise Unreachable(f"{printable(str(command), _MAX_COMMAND)} could not be armed: {why}")
                is_second = True
            elif _REJECTED not in process.greeting or monotonic() >= until:
                raise error

    def close(self) -> None:
        """Disconnect. Running programs continue on the host; armed programs end without running."""
        super().close()
        with self._connecting:
            self._disconnect()

    def _disconnect(self) -> None:
        master, self._master = self._master, None
        if master:
            master.close()

    def _start(self, master: Master, command: HostCommand) -> ClientProcess:
        """A client whose shell reports that it waits. Raises NodefallError."""
        mark = draw_mark()
        prefix = self.settings.sudo_prefix if command.sudo else ()
        line = login_line(armed_argv(command.argv, mark), mark, prefix)
        if not self._slots.acquire(timeout=command.timeout):
            raise Unreachable(f"{MAX_CLIENTS} commands are already running on {self.settings.label}")
        try:
            argv = master.client_argv("--", "host", line)
            return ClientProcess(argv, mark, monotonic() + self._limit(command), self._slots.release)
        except (OSError, ValueError) as error:
            self._slots.release()
            what = printable(str(command), _MAX_COMMAND)
            raise Unreachable(f"{what} cannot be sent to {self.settings.label}: {error}") from error

    def _limit(self, command: HostCommand) -> float:
        """Seconds in which a command must report that it waits."""
        return min(self._ready_timeout, command.timeout)

    def _failure(self, process: ClientProcess, command: HostCommand) -> NodefallError:
        """Error of a command that is not waiting."""
        label = self.settings.label
        if process.wait() is ExitReason.TIMED_OUT:
            limit = f"{self._limit(command):g} s"
            return Unreachable(f"{label} started no command within {limit}; {quote_greeting(process)}")
        code = process.await_exit(_END_GRACE)
        if code == _OWN_ERROR and _REJECTED in process.greeting:
            return Unreachable(f"{label} rejected more sessions", hint="raise MaxSessions of its sshd")
        return login_error(process, code, self.settings)


@contextmanager
def _login_slots(settings: HostSettings, config: SshConfig) -> Iterator[None]:
    """Not too many logins at once through one jump host, or through one ProxyCommand, whose path is not known."""
    with ExitStack() as stack:
        if command := config.get("proxycommand"):  # which may have secrets in it
            stack.enter_context(JUMP_LIMITER.hold(command, "the ProxyCommand", settings.connect_timeout))
        for hop in settings.jumps:
            stack.enter_context(JUMP_LIMITER.slot(hop))
        yield
