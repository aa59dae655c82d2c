"""Sessions into containers by ``docker exec`` or ``podman exec``: nodes that are containers and have no sshd.

Every command waits inside for one line, as an armed one does: until that is sent nothing has run, and so "not sent" is
certain. The exit code is the one that the shell inside tells: one that the engine reports may be its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from threading import Lock
from time import monotonic

from chaos.hosts.driver import HostContext, TransportDriver
from chaos.hosts.transports.channel_io import ExitReason
from chaos.hosts.transports.containers import Container, container_of, engine_error
from chaos.hosts.transports.host_clock import CALIBRATION_TIMEOUT, HostClock
from chaos.hosts.transports.local_process import LocalProcess
from chaos.hosts.transports.script import exit_code_argv, has_host_clock, is_ready
from chaos.model.command import Delivery, HostCommand, Outcome
from chaos.model.errors import NodefallError, Unreachable

_NO_LONGER_READY = "it no longer waits on the host"
READY_TIMEOUT = 15.0  # of wall time, until the shell inside waits


class DockerSession:
    """Thread safe; implements ``chaos.model.ports.Session``. Commands run as root; each is an exec of its own."""

    def __init__(self, container: Container, ready_timeout: float = READY_TIMEOUT) -> None:
        self._container, self._ready_timeout = container, ready_timeout
        self._processes: list[LocalProcess] = []
        self._lock = Lock()

    @property
    def label(self) -> str:
        return f"{self._container.engine} container {self._container.name}"

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; what goes wrong is told by the outcome."""
        try:
            armed = self.arm(command)
        except NodefallError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Outcome(Delivery.NOT_SENT, error=f"{error.message}{hint}")
        return armed.wait()

    def arm(self, command: HostCommand) -> ArmedExec:
        """Start ``command`` waiting in the container. Raises Unreachable, or Refused if it is not the same any more."""
        seen = self._container.inspect()
        if seen.power != "on":
            raise Unreachable(f"{self.label} does not run: it is {seen.status}", hint="power it on")
        mark = f"nodefall-{secrets.token_hex(8)}"
        what = (self._container.engine, "exec", "--interactive", "--user", "0", seen.id)
        deadline = monotonic() + min(self._ready_timeout, command.timeout)
        try:
            piped = LocalProcess((*what, *exit_code_argv(command.argv, mark)), mark, deadline)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{command} cannot be sent to {self.label}: {error}") from error
        first = piped.read_line()
        if not is_ready(first):
            piped.wait()
            piped.close()
            raise self._start_error(piped.stderr or first or "")  # runc's own errors come on stdout
        with self._lock:
            self._processes = [kept for kept in self._processes if not kept.closed] + [piped]
        return ArmedExec(command, piped, HostClock(has_host_clock(first)), self.label)

    def close(self) -> None:
        """Hang up; programs that still run there are left alone, those that wait end without running."""
        with self._lock:
            for piped in self._processes:
                piped.kill()

    def _start_error(self, said: str) -> NodefallError:
        """Nothing has run: that can be tried again, whatever it was."""
        error = engine_error(f"exec in {self.label}", said or f"no answer in {self._ready_timeout:g} s")
        return Unreachable(error.message, hint=error.hint)


class ArmedExec:
    """Implements ``chaos.model.ports.Armed``; waits in the container until it is fired or cancelled, once."""

    def __init__(self, command: HostCommand, piped: LocalProcess, clock: HostClock, label: str) -> None:
        self._command, self._process, self._clock, self._label = command, piped, clock, label
        self._is_released = False
        self._not_sent: Outcome | None = None

    def calibrate(self, now: Callable[[], float]) -> bool:
        """A few questions and answers; what breaks meanwhile is told by :meth:`go`."""
        self._process.extend(monotonic() + CALIBRATION_TIMEOUT)
        try:
            return self._clock.measure(now, self._process.send, self._process.read_line)
        except OSError:
            return False

    def release(self, at: float | None = None) -> None:
        """One write. Not sent if it no longer waits."""
        if self._is_released:
            return
        self._is_released, piped = True, self._process
        if not piped.is_running:
            self._not_sent = Outcome(Delivery.NOT_SENT, stderr=piped.stderr, error=_NO_LONGER_READY)
            return
        piped.extend(monotonic() + self._command.timeout)
        try:
            piped.send(self._clock.clock_argument(at))
        except OSError as error:
            self._not_sent = Outcome(Delivery.NOT_SENT, error=f"the line was lost before: {error}")
            return
        piped.write_stdin(self._command.stdin)

    def wait(self) -> Outcome:
        """Go, if it has not, and wait for the end. Once."""
        piped = self._process
        with closing(piped):
            self.release()
            if self._not_sent:
                return self._not_sent
            self._not_sent = Outcome(Delivery.NOT_SENT, error=_NO_LONGER_READY)
            began = self._clock.read_start_time(piped.read_line)
            return self._outcome(piped, piped.wait(), began)

    def cancel(self) -> None:
        """Close its input: the shell ends without running anything."""
        self._process.close()

    def _outcome(self, piped: LocalProcess, ended: ExitReason, began: float | None) -> Outcome:
        reason = {
            ExitReason.LOST: f"the line to {self._label} was lost before it ended",
            ExitReason.TIMED_OUT: f"no answer in {self._command.timeout:g} s; it may still be running",
        }.get(ended, "")
        return Outcome(
            Delivery.ANSWERED if ended is ExitReason.EXITED else Delivery.LOST,
            exit=piped.exit,
            stdout=piped.stdout,
            stderr=piped.stderr,
            began=began,
            error="; ".join(filter(None, (reason, piped.note))),
        )


class DockerTransport(TransportDriver):
    """``docker exec`` or ``podman exec``; commands run as root."""

    name = "docker"

    def open_session(self, host: HostContext) -> DockerSession:
        engine = host.host.engine or host.inventory.defaults.engine
        return DockerSession(container_of(host.shared, host.host.container or host.node, engine))


DRIVER = DockerTransport()
